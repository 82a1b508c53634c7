//! The broadcast loop: passes events to a reader, or asks it to read the database instead.
//!
//! A broadcast is not work: it is sent once, in no promised order, and a disconnected reader misses it. So
//! every (re)connect starts with a resync, and broadcasts that came meanwhile follow after it.

use std::sync::Arc;

use events::{EventSet, Message};
use runtime::Check;
use tokio_util::sync::CancellationToken;

use crate::transport::{Bus, Delivery, Received};

/// Receives every event of some kinds, independently of all other readers.
pub trait NewsReader: Send + Sync + 'static {
    type Event: EventSet;

    /// Handles an event. An error leads to a resync.
    fn on_broadcast(&self, event: Self::Event) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// Reads the current state, because broadcasts may have been missed. Repeated until it succeeds.
    fn resync(&self) -> impl Future<Output = anyhow::Result<()>> + Send;
}

/// Passes broadcasts to `reader` until `shutdown`, and reports in `check` whether they arrive. If not, the
/// service is only degraded, because readers also check the database themselves.
pub async fn read_news<R: NewsReader>(
    bus: Arc<dyn Bus>,
    reader: Arc<R>,
    check: Option<Check>,
    shutdown: CancellationToken,
) {
    let mut subscription = bus.news(R::Event::KEYS);
    let reading = async {
        loop {
            match subscription.next().await {
                Received::Connected => {
                    resync(&*reader, &shutdown).await;
                    check.iter().for_each(Check::ok);
                }
                Received::Lost => check
                    .iter()
                    .for_each(|check| check.degraded("not subscribed")),
                Received::Delivery(delivery) => handle(&*reader, delivery, &shutdown).await,
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = reading => {}
    }
}

async fn resync<R: NewsReader>(reader: &R, shutdown: &CancellationToken) {
    let task = "read missed changes from the database";
    runtime::retry(task, shutdown, || reader.resync()).await;
}

async fn handle<R: NewsReader>(reader: &R, delivery: Delivery, shutdown: &CancellationToken) {
    let event = Message::decode(&delivery.payload)
        .map(|message| R::Event::from_any(message.event))
        .unwrap_or_else(|error| {
            tracing::warn!(key = delivery.key, "unreadable broadcast: {error}");
            None
        });
    if let Some(event) = event
        && let Err(error) = reader.on_broadcast(event).await
    {
        tracing::debug!("could not handle a broadcast, reading the database instead: {error:#}");
        resync(reader, shutdown).await;
    }
}
