//! The promises of both buses.

use std::{sync::Arc, time::Duration};

use anyhow::anyhow;
use bus::{Bus, InProcess, NewsReader, Outcome, Published};
use domain::{Id, ManagerName};
use events::{ManagerChanged, ManagerNews, TraceContext};
use test_support::{TIMEOUT, eventually};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::{
    QUEUE, amqp_url, delete_queues, has_dead_letters, outgoing, poison, publish, rabbitmq, start,
    submitted,
};

macro_rules! both {
    ($($test:ident)+) => {
        mod in_process {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(Arc::new(InProcess::new())).await;
                }
            )+
        }

        mod over_rabbitmq {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    let bus = rabbitmq().await;
                    super::$test(Arc::new(bus.clone())).await;
                    delete_queues(&bus, &amqp_url()).await;
                }
            )+
        }
    };
}

both! {
    a_published_message_is_consumed_once
    two_consumers_share_the_work
    a_message_outlives_its_consumer
    suspended_consumer_leaves_messages_to_others
    a_held_message_is_retried_until_it_works
    a_held_message_is_returned_on_shutdown
    a_rejected_message_becomes_a_dead_letter
    a_panic_fails_only_its_own_message
    undecodable_bytes_become_a_dead_letter
    an_event_without_a_queue_is_unroutable
    a_broadcast_reaches_every_subscriber
    the_trace_context_travels_with_the_message
}

async fn a_published_message_is_consumed_once(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    eventually("it is subscribed", async || {
        bus.depth(QUEUE)
            .await
            .is_ok_and(|depth| depth.consumers == 1)
    })
    .await;
    consumer.nothing_for(Duration::from_millis(300)).await;

    let batch: Vec<_> = (0..300)
        .map(|generation| outgoing(submitted(generation)))
        .collect();
    for result in bus.publish(&batch).await {
        assert_eq!(result.unwrap(), Published::Routed);
    }

    let mut seen = Vec::new();
    for _ in 0..300 {
        seen.push(consumer.next().await);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..300).collect::<Vec<_>>());
    consumer.nothing_for(Duration::from_millis(300)).await;
    consumer.stop().await;
    let depth = bus.depth(QUEUE).await.unwrap();
    assert_eq!((depth.ready, depth.dead_letters), (0, 0));
}

async fn two_consumers_share_the_work(bus: Arc<dyn Bus>) {
    let mut one = start(Arc::clone(&bus), |_, _| {
        std::thread::sleep(Duration::from_millis(2));
        Outcome::Done
    });
    let mut other = start(Arc::clone(&bus), |_, _| {
        std::thread::sleep(Duration::from_millis(2));
        Outcome::Done
    });
    eventually("both are subscribed", async || {
        bus.depth(QUEUE)
            .await
            .is_ok_and(|depth| depth.consumers == 2)
    })
    .await;

    let batch: Vec<_> = (0..100)
        .map(|generation| outgoing(submitted(generation)))
        .collect();
    bus.publish(&batch).await;

    let (mut by_one, mut by_other) = (0, 0);
    while by_one + by_other < 100 {
        tokio::select! {
            _ = one.next() => by_one += 1,
            _ = other.next() => by_other += 1,
        }
    }
    assert!(by_one > 0 && by_other > 0, "{by_one} and {by_other}");
    one.nothing_for(Duration::from_millis(200)).await;
    other.nothing_for(Duration::from_millis(200)).await;
}

async fn suspended_consumer_leaves_messages_to_others(bus: Arc<dyn Bus>) {
    let mut suspended = start(Arc::clone(&bus), |_, _| Outcome::Done);
    eventually("it is subscribed", async || {
        suspended.health.report().is_ready()
    })
    .await;
    suspended.suspended.send_replace(true);
    eventually("it is suspended", async || {
        !suspended.health.report().is_ready()
    })
    .await;
    let mut other = start(Arc::clone(&bus), |_, _| Outcome::Done);
    for generation in 0..8 {
        publish(&*bus, outgoing(submitted(generation))).await;
        assert_eq!(other.next().await, generation);
    }
    other.stop().await;
    publish(&*bus, outgoing(submitted(8))).await;
    suspended.suspended.send_replace(false);
    assert_eq!(suspended.next().await, 8);
    suspended.suspended.send_replace(true);
    suspended.stop().await;
}

async fn a_message_outlives_its_consumer(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Retry(anyhow!("not yet")));
    publish_after_subscribing(&bus, 7).await;
    assert_eq!(consumer.next().await, 7);

    drop(consumer);

    let mut successor = start(bus, |_, _| Outcome::Done);
    assert_eq!(successor.next().await, 7);
    successor.stop().await;
}

async fn a_held_message_is_retried_until_it_works(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |event, count| {
        if event.generation == 1 && count < 5 {
            Outcome::Retry(anyhow!("the database is away"))
        } else {
            Outcome::Done
        }
    });
    publish_after_subscribing(&bus, 1).await;
    assert_eq!(consumer.next().await, 1);

    // Other messages overtake the held one.
    publish(&*bus, outgoing(submitted(2))).await;
    let mut seen = Vec::new();
    for _ in 0..6 {
        seen.push(consumer.next().await);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 1, 1, 1, 1, 2]);
    consumer.nothing_for(Duration::from_millis(900)).await;
    consumer.stop().await;
    let depth = bus.depth(QUEUE).await.unwrap();
    assert_eq!((depth.ready, depth.dead_letters), (0, 0));
}

async fn a_held_message_is_returned_on_shutdown(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Retry(anyhow!("not yet")));
    publish_after_subscribing(&bus, 1).await;
    consumer.next().await;

    consumer.stop().await;

    eventually("the message is ready again", async || {
        bus.depth(QUEUE).await.is_ok_and(|depth| depth.ready == 1)
    })
    .await;
}

async fn a_rejected_message_becomes_a_dead_letter(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |event, _| match event.generation {
        1 => Outcome::Reject(anyhow!("no such state")),
        _ => Outcome::Done,
    });
    publish_after_subscribing(&bus, 1).await;

    for _ in 0..3 {
        assert_eq!(consumer.next().await, 1);
    }
    has_dead_letters(&*bus, 1).await;
    publish(&*bus, outgoing(submitted(2))).await;
    assert_eq!(consumer.next().await, 2);
    consumer.stop().await;
    assert_eq!(bus.depth(QUEUE).await.unwrap().ready, 0);
}

async fn a_panic_fails_only_its_own_message(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |event, _| {
        assert!(event.generation != 1, "a fault in the consumer");
        Outcome::Done
    });
    publish_after_subscribing(&bus, 1).await;
    publish(&*bus, outgoing(submitted(2))).await;

    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(consumer.next().await);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 1, 1, 2]);
    has_dead_letters(&*bus, 1).await;
    consumer.stop().await;
}

async fn undecodable_bytes_become_a_dead_letter(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    publish_after_subscribing(&bus, 1).await;
    assert_eq!(consumer.next().await, 1);

    publish(&*bus, poison()).await;
    publish(&*bus, outgoing(submitted(2))).await;

    has_dead_letters(&*bus, 1).await;
    assert_eq!(consumer.next().await, 2);
    consumer.stop().await;
}

async fn an_event_without_a_queue_is_unroutable(bus: Arc<dyn Bus>) {
    // Declares the queues, which the RabbitMQ variant deletes at the end.
    let consumer = start(Arc::clone(&bus), |_, _| Outcome::Done);
    publish_after_subscribing(&bus, 1).await;

    let result = bus.publish(&[outgoing(changed(1))]).await.remove(0);

    assert_eq!(result.unwrap(), Published::Unroutable);
    consumer.stop().await;
}

async fn a_broadcast_reaches_every_subscriber(bus: Arc<dyn Bus>) {
    publish_after_subscribing(&bus, 1).await;
    let shutdown = CancellationToken::new();
    let mut readers: Vec<_> = (0..2)
        .map(|_| {
            let (sender, seen) = mpsc::unbounded_channel();
            let reader = Arc::new(Reader(sender));
            tokio::spawn(bus::read_news(
                Arc::clone(&bus),
                reader,
                None,
                shutdown.clone(),
            ));
            seen
        })
        .collect();
    for seen in &mut readers {
        assert_eq!(next(seen).await, Seen::Resync);
    }

    publish(&*bus, outgoing(changed(5))).await;
    // Work is not for these readers.
    publish(&*bus, outgoing(submitted(6))).await;
    publish(&*bus, outgoing(changed(7))).await;

    for seen in &mut readers {
        assert_eq!(next(seen).await, Seen::Version(5));
        // The reader asks for a resync by failing at 5.
        assert_eq!(next(seen).await, Seen::Resync);
        assert_eq!(next(seen).await, Seen::Version(7));
    }
    shutdown.cancel();
}

async fn the_trace_context_travels_with_the_message(bus: Arc<dyn Bus>) {
    let trace = TraceContext {
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        tracestate: Some("vendor=value".into()),
    };
    let mut message = outgoing(submitted(1));
    message.trace = trace.clone();

    let mut subscription = bus.work(QUEUE, &["manager.submitted"], 1);
    let mut received = subscription.next().await;
    publish(&*bus, message).await;
    let delivery = loop {
        match received {
            bus::Received::Delivery(delivery) => break delivery,
            bus::Received::Connected | bus::Received::Lost => {
                received = subscription.next().await;
            }
        }
    };

    assert_eq!(delivery.trace, trace);
    assert!(!delivery.redelivered);
    delivery.settle.ack().await.unwrap();
}

/// On RabbitMQ, publishing declares the queues; in a process, subscribing does.
async fn publish_after_subscribing(bus: &Arc<dyn Bus>, generation: i64) {
    drop(bus.work(QUEUE, &["manager.submitted"], 1));
    publish(&**bus, outgoing(submitted(generation))).await;
}

fn changed(plan_version: i64) -> ManagerChanged {
    ManagerChanged {
        name: ManagerName {
            namespace: Id::generate(),
            manager: Id::generate(),
        },
        plan_version,
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Resync,
    Version(i64),
}

struct Reader(mpsc::UnboundedSender<Seen>);

impl NewsReader for Reader {
    type Event = ManagerNews;

    async fn hear(&self, event: ManagerNews) -> anyhow::Result<()> {
        self.0.send(Seen::Version(event.plan_version()))?;
        anyhow::ensure!(event.plan_version() != 5, "cannot load the plan");
        Ok(())
    }

    async fn resync(&self) -> anyhow::Result<()> {
        self.0.send(Seen::Resync)?;
        Ok(())
    }
}

async fn next(seen: &mut mpsc::UnboundedReceiver<Seen>) -> Seen {
    tokio::time::timeout(TIMEOUT, seen.recv())
        .await
        .expect("a message arrives")
        .unwrap()
}
