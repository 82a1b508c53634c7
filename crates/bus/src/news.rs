//! The news loop: tells a reader what happened, and when to read the database instead.
//!
//! News is no work: it is told once, in no promised order, and a reader that was away has missed it.
//! So every (re)connect begins with a resync, and news that came meanwhile follows after it.

use std::{sync::Arc, time::Duration};

use events::{EventSet, Message};
use runtime::{Backoff, Check};
use tokio_util::sync::CancellationToken;

use crate::transport::{Bus, Delivery, Received};

/// Hears every event of some kinds, beside all other readers.
pub trait NewsReader: Send + Sync + 'static {
    type Event: EventSet;

    /// Something happened. An error leads to a resync.
    fn hear(&self, event: Self::Event) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// News may have been missed: read the state as it is. Repeated until it succeeds.
    fn resync(&self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Keeps `reader` told until `shutdown`, and `check` of whether news flows: only degraded where it does not,
/// since readers look at the database by themselves too.
pub async fn read_news<R: NewsReader>(
    bus: Arc<dyn Bus>,
    reader: Arc<R>,
    check: Option<Check>,
    shutdown: CancellationToken,
) {
    let mut subscription = bus.news(R::Event::KEYS);
    let telling = async {
        loop {
            match subscription.next().await {
                Received::Connected => {
                    resync(&*reader).await;
                    check.iter().for_each(Check::ok);
                }
                Received::Lost => check
                    .iter()
                    .for_each(|check| check.degraded("not subscribed")),
                Received::Delivery(delivery) => tell(&*reader, delivery).await,
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = telling => {}
    }
    subscription.stop().await;
}

async fn resync<R: NewsReader>(reader: &R) {
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    let mut failed = false;
    while let Err(error) = reader.resync().await {
        if !std::mem::replace(&mut failed, true) {
            tracing::warn!("cannot read what the news missed, trying until it works: {error:#}");
        }
        backoff.wait().await;
    }
    if failed {
        tracing::info!("read what the news missed");
    }
}

async fn tell<R: NewsReader>(reader: &R, delivery: Delivery) {
    let event = Message::decode(&delivery.payload)
        .map(|message| R::Event::from_any(message.event))
        .unwrap_or_else(|error| {
            tracing::warn!(key = delivery.key, "unreadable news: {error}");
            None
        });
    if let Some(event) = event
        && let Err(error) = reader.hear(event).await
    {
        tracing::debug!("news could not be handled, reading the state instead: {error:#}");
        resync(reader).await;
    }
    // News is not repeated, so an acknowledgement that fails is of no consequence.
    let _ = delivery.settle.ack().await;
}
