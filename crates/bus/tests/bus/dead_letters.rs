//! Dead letters on RabbitMQ: listed, put back, and set aside by the broker.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::anyhow;
use bus::Outcome;
use lapin::options::{BasicGetOptions, BasicRejectOptions};
use test_support::eventually;

use crate::support::{
    QUEUE, amqp_url, delete_queues, has_dead_letters, outgoing, poison, publish, rabbitmq, start,
    submitted,
};

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_are_listed_with_their_reasons_and_requeued() {
    let bus = rabbitmq().await;
    let mended = Arc::new(AtomicBool::new(false));
    let mut consumer = start(Arc::new(bus.clone()), {
        let mended = Arc::clone(&mended);
        move |_, _| match mended.load(Ordering::Relaxed) {
            true => Outcome::Done,
            false => Outcome::Reject(anyhow!("cause").context("no such state")),
        }
    });
    publish(&bus, outgoing(submitted(1))).await;
    publish(&bus, poison()).await;
    has_dead_letters(&bus, 2).await;

    for _ in 0..2 {
        let mut letters = bus.dead_letters(QUEUE, 10).await.unwrap();
        letters.sort_by_key(|letter| letter.reason.clone());
        let reasons: Vec<_> = letters
            .iter()
            .map(|letter| letter.reason.as_deref().unwrap())
            .collect();
        assert_eq!(reasons[0], "rejected: no such state: cause");
        assert!(
            reasons[1].starts_with("unreadable: not an envelope: "),
            "{reasons:?}"
        );
        assert!(letters[0].event.starts_with("ManagerSubmitted("));
        assert!(letters[0].message_id.is_some() && letters[0].create_time.is_some());
        // The broker returns listed messages only after the list has arrived.
        has_dead_letters(&bus, 2).await;
    }
    assert_eq!(bus.dead_letters(QUEUE, 1).await.unwrap().len(), 1);
    has_dead_letters(&bus, 2).await;

    for _ in 0..3 {
        consumer.next().await;
    }
    mended.store(true, Ordering::Relaxed);
    assert_eq!(bus.requeue_dead_letters(QUEUE, 100).await.unwrap(), 2);

    assert_eq!(consumer.next().await, 1);
    // An invalid message stays invalid.
    has_dead_letters(&bus, 1).await;
    consumer.stop().await;
    delete_queues(&bus, &amqp_url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_many_frames_arrives_complete() {
    let bus = rabbitmq().await;
    let mut consumer = start(Arc::new(bus.clone()), |_, _| Outcome::Done);
    let mut large = poison();
    large.message.payload = vec![0xff; 1_000_000].into();
    publish(&bus, large).await;
    publish(&bus, outgoing(submitted(1))).await;

    assert_eq!(consumer.next().await, 1);
    has_dead_letters(&bus, 1).await;
    let letters = bus.dead_letters(QUEUE, 1).await.unwrap();
    assert_eq!(letters[0].size_bytes, 1_000_000);
    consumer.stop().await;
    delete_queues(&bus, &amqp_url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_kills_its_consumers_is_dead_lettered_by_the_broker() {
    let bus = rabbitmq().await;
    let message = outgoing(submitted(1));
    publish(&bus, message.clone()).await;
    let connection =
        lapin::Connection::connect(&amqp_url(), lapin::ConnectionProperties::default())
            .await
            .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let queue = bus.work_queues().remove(0);

    let mut deliveries = 0;
    eventually("no more deliveries", async || {
        let queue = queue.as_str().into();
        let options = BasicGetOptions::default();
        if let Some(message) = channel.basic_get(queue, options).await.unwrap() {
            deliveries += 1;
            let properties = &message.delivery.properties;
            assert_eq!(*properties.delivery_mode(), Some(2));
            assert_eq!(
                properties.kind().as_ref().unwrap().as_str(),
                "earshot.events.v1.ManagerSubmitted"
            );
            let options = BasicRejectOptions { requeue: true };
            message.delivery.reject(options).await.unwrap();
        }
        use bus::Bus;
        bus.depth(QUEUE).await.unwrap().dead_letters == 1
    })
    .await;

    assert!((20..=21).contains(&deliveries), "{deliveries}");
    let letters = bus.dead_letters(QUEUE, 10).await.unwrap();
    assert_eq!(letters[0].reason, None);
    assert_eq!(
        letters[0].message_id.as_deref(),
        Some(message.message.id.to_string().as_str())
    );
    delete_queues(&bus, &amqp_url()).await;
}
