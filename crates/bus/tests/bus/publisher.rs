//! Events that services publish.

use std::sync::Arc;

use async_trait::async_trait;
use bus::{Bus, Error, EventPublisher, InProcess, Outgoing, Subscription};
use test_support::eventually;
use tokio_util::sync::CancellationToken;

use crate::support::{start, submitted};

/// A bus whose broker does not answer.
struct Away;

#[async_trait]
impl Bus for Away {
    fn system(&self) -> &'static str {
        "away"
    }

    fn exchange(&self) -> &'static str {
        "away"
    }

    async fn publish(&self, _: &Outgoing) -> Result<(), Error> {
        Err(Error::Away("the broker is away".into()))
    }

    fn work(&self, _: &str, _: &[&str]) -> Box<dyn Subscription> {
        unreachable!("nothing subscribes")
    }

    fn news(&self, _: &[&str]) -> Box<dyn Subscription> {
        unreachable!("nothing subscribes")
    }

    async fn check(&self) -> Result<(), Error> {
        Err(Error::Away("the broker is away".into()))
    }
}

#[tokio::test]
async fn events_are_sent_in_the_background_and_at_the_end() {
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    let mut consumer = start(Arc::clone(&bus)).await;
    let (events, stop) = (EventPublisher::default(), CancellationToken::new());
    let (own, until) = (events.clone(), stop.clone());
    let sending = tokio::spawn(async move { own.run(&*bus, &until).await });
    events.publish(submitted(1));
    events.publish_all([submitted(2), submitted(3)]);
    for generation in 1..=3 {
        assert_eq!(consumer.next().await, generation);
    }
    stop.cancel();
    events.publish(submitted(4));
    sending.await.unwrap();
    assert_eq!(consumer.next().await, 4);
    consumer.stop().await;
}

#[tokio::test]
async fn events_are_dropped_while_the_broker_is_away() {
    let (events, stop) = (EventPublisher::default(), CancellationToken::new());
    let (own, until) = (events.clone(), stop.clone());
    let sending = tokio::spawn(async move { own.run(&Away, &until).await });
    events.publish_all((0..100).map(submitted));
    eventually("they are dropped", async || events.waiting().is_empty()).await;
    stop.cancel();
    sending.await.unwrap();
}

#[tokio::test]
async fn the_oldest_events_are_dropped_when_too_many_wait() {
    let events = EventPublisher::default();
    events.publish_all((0..10_010).map(submitted));
    assert_eq!(events.waiting().len(), 10_000);
}
