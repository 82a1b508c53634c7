//! Lost connections, lost queues and lost brokers.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bus::{Bus, Outcome};
use lapin::options::QueueDeleteOptions;
use test_support::eventually;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::support::{
    QUEUE, amqp_url, delete_queues, outgoing, publish, publish_until_taken, rabbitmq, rabbitmq_at,
    start, submitted, topology,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_reopened() {
    let url = tokio::task::spawn_blocking(amqp_url).await.unwrap();
    let broker: lapin::uri::AMQPUri = url.parse().unwrap();
    let line = Line::to(format!(
        "{}:{}",
        broker.authority.host, broker.authority.port
    ))
    .await;
    let mut through = broker.clone();
    through.authority.host = line.address.ip().to_string();
    through.authority.port = line.address.port();
    let bus = rabbitmq_at(&through.to_string(), &topology());
    let mut consumer = start(Arc::new(bus.clone()), |_, _| Outcome::Done);

    for generation in 0..4 {
        publish_until_taken(&bus, outgoing(submitted(generation))).await;
        // A message may come twice if the cut took its acknowledgement or its confirm.
        while consumer.next().await != generation {}
        line.cut();
    }
    consumer.stop().await;
    delete_queues(&bus, &url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_queue_is_declared_again() {
    let bus = rabbitmq().await;
    let mut consumer = start(Arc::new(bus.clone()), |_, _| Outcome::Done);
    publish(&bus, outgoing(submitted(1))).await;
    assert_eq!(consumer.next().await, 1);
    assert!(consumer.health.report().is_ready());

    delete_queues(&bus, &amqp_url()).await;
    // For at least half a second.
    eventually("the loss shows", async || {
        !consumer.health.report().is_ready()
    })
    .await;
    eventually("the consumer is ready again", async || {
        consumer.health.report().is_ready()
    })
    .await;

    publish(&bus, outgoing(submitted(2))).await;
    assert_eq!(consumer.next().await, 2);
    consumer.stop().await;

    // There is no reader, so the publisher declares it.
    delete_queues(&bus, &amqp_url()).await;
    publish(&bus, outgoing(submitted(3))).await;
    assert_eq!(bus.depth(QUEUE).await.unwrap().ready, 1);
    delete_queues(&bus, &amqp_url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_consumer_waits_for_a_queue_that_has_other_arguments() {
    let bus = rabbitmq().await;
    let queue = bus.work_queues().remove(0);
    let connection =
        lapin::Connection::connect(&amqp_url(), lapin::ConnectionProperties::default())
            .await
            .unwrap();
    let channel = connection.create_channel().await.unwrap();
    let options = lapin::options::QueueDeclareOptions::durable();
    channel
        .queue_declare(queue.as_str().into(), options, Default::default())
        .await
        .unwrap();

    let mut consumer = start(Arc::new(bus.clone()), |_, _| Outcome::Done);
    consumer.nothing_for(Duration::from_secs(1)).await;
    channel
        .queue_delete(queue.as_str().into(), QueueDeleteOptions::default())
        .await
        .unwrap();

    publish(&bus, outgoing(submitted(1))).await;
    assert_eq!(consumer.next().await, 1);
    consumer.stop().await;
    delete_queues(&bus, &amqp_url()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_broker_loses_no_confirmed_message() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().to_owned();
    let mut broker =
        tokio::task::spawn_blocking(move || private_servers::RabbitMq::start(&path).unwrap())
            .await
            .unwrap();
    let bus = rabbitmq_at(&broker.amqp_url(), &topology());

    // Confirmed, and not consumed yet.
    for generation in 0..50 {
        publish(&bus, outgoing(submitted(generation))).await;
    }
    let mut consumer = start(Arc::new(bus.clone()), |_, _| {
        std::thread::sleep(Duration::from_millis(20));
        Outcome::Done
    });
    let mut seen = vec![consumer.next().await];
    // RabbitMQ 3.10 loses a quorum queue that was created just before the broker was killed.
    tokio::time::sleep(Duration::from_secs(3)).await;
    for generation in 50..100 {
        publish(&bus, outgoing(submitted(generation))).await;
    }
    broker.kill();
    assert!(bus.publish(&[outgoing(submitted(101))]).await[0].is_err());
    let broker = tokio::task::spawn_blocking(move || {
        broker.restart().unwrap();
        broker
    })
    .await
    .unwrap();

    publish_until_taken(&bus, outgoing(submitted(100))).await;
    while (0..=100).any(|generation| !seen.contains(&generation)) {
        seen.push(consumer.next().await);
    }
    consumer.stop().await;
    eventually("all is acknowledged", async || {
        bus.depth(QUEUE).await.is_ok_and(|depth| depth.ready == 0)
    })
    .await;
    assert_eq!(bus.depth(QUEUE).await.unwrap().dead_letters, 0);
    drop(broker);
}

/// A proxy to a broker that can be cut without the broker.
struct Line {
    address: SocketAddr,
    cuts: watch::Sender<()>,
}

impl Line {
    async fn to(broker: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (cuts, cut) = watch::channel(());
        tokio::spawn(async move {
            while let Ok((mut here, _)) = listener.accept().await {
                let broker = broker.clone();
                let mut cut = cut.clone();
                cut.mark_unchanged();
                tokio::spawn(async move {
                    let mut there = TcpStream::connect(broker).await.unwrap();
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut here, &mut there) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self { address, cuts }
    }

    fn cut(&self) {
        self.cuts.send_replace(());
    }
}
