//! The promises of both buses.

use std::sync::Arc;

use bus::{Bus, InProcess, NewsReader};
use domain::{Id, ManagerName};
use events::{ManagerChanged, ManagerNews, TraceContext};
use test_support::TIMEOUT;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::support::{QUEUE, Running, outgoing, poison, rabbitmq, start, submitted};

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
                    super::$test(Arc::new(rabbitmq().await)).await;
                }
            )+
        }
    };
}

both! {
    each_event_reaches_one_of_two_consumers
    an_unreadable_event_stops_no_other
    a_broadcast_reaches_every_subscriber
    the_trace_context_travels_with_the_message
}

async fn each_event_reaches_one_of_two_consumers(bus: Arc<dyn Bus>) {
    let mut one = start(Arc::clone(&bus)).await;
    let mut other = start(Arc::clone(&bus)).await;
    // They do not read broadcasts.
    bus.publish(&outgoing(changed(1))).await.unwrap();
    for generation in 0..100 {
        bus.publish(&outgoing(submitted(generation))).await.unwrap();
    }
    let mut seen = Vec::new();
    while seen.len() < 100 {
        seen.push(next_of(&mut one, &mut other).await);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
    // Nothing comes twice. Both still read: the broker may send an event to a consumer that is ending.
    bus.publish(&outgoing(submitted(100))).await.unwrap();
    assert_eq!(next_of(&mut one, &mut other).await, 100);
    assert_eq!((one.now(), other.now()), (None, None));
    one.stop().await;
    other.stop().await;
}

/// The generation of the next event that reaches either.
async fn next_of(one: &mut Running, other: &mut Running) -> i64 {
    tokio::select! {
        generation = one.next() => generation,
        generation = other.next() => generation,
    }
}

async fn an_unreadable_event_stops_no_other(bus: Arc<dyn Bus>) {
    let mut consumer = start(Arc::clone(&bus)).await;
    bus.publish(&poison()).await.unwrap();
    bus.publish(&outgoing(submitted(2))).await.unwrap();
    assert_eq!(consumer.next().await, 2);
    consumer.stop().await;
}

async fn a_broadcast_reaches_every_subscriber(bus: Arc<dyn Bus>) {
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

    bus.publish(&outgoing(changed(5))).await.unwrap();
    // Work is not for these readers.
    bus.publish(&outgoing(submitted(6))).await.unwrap();
    bus.publish(&outgoing(changed(7))).await.unwrap();

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

    let mut subscription = bus.work(QUEUE, &["manager.submitted"]);
    let received = tokio::time::timeout(TIMEOUT, subscription.next()).await;
    assert!(matches!(received, Ok(bus::Received::Connected)));
    bus.publish(&message).await.unwrap();
    let received = tokio::time::timeout(TIMEOUT, subscription.next()).await;
    let Ok(bus::Received::Delivery(delivery)) = received else {
        panic!("not a delivery");
    };
    assert_eq!(delivery.trace, trace);
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

    async fn on_broadcast(&self, event: ManagerNews) -> anyhow::Result<()> {
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
