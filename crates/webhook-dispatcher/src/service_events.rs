//! Gives service events to the Connections that receive them.
//!
//! Events are rare, so replicas look for them each second, and nothing wakes them earlier. Their deliveries wait in the
//! database and are claimed from there, like those of Scans that are not sent at once. An event that the database refuses
//! is retried alone, and blocks no other.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use runtime::Periodic;
use store::{keyed, lanes, service_events};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, refused::Refused};

const LOOK: Duration = Duration::from_secs(1);
/// Maximum number of events in one transaction, and of their deliveries, unless one event has more.
const BATCH: i64 = 64;
const DELIVERIES: i64 = 500;

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut refused = Refused::default();
    let mut rounds = Periodic::new(&shutdown);
    while rounds.after(LOOK).await {
        if dispatcher.backbone.is_suspended() {
            continue;
        }
        let given = give_all(dispatcher, &mut refused, &shutdown).await;
        rounds.log_once("look for service events", given);
    }
}

async fn give_all(
    dispatcher: &Dispatcher,
    refused: &mut Refused<i64>,
    shutdown: &CancellationToken,
) -> Result<(), store::Error> {
    for event in refused.due(Instant::now()) {
        if shutdown.is_cancelled() {
            break;
        }
        give_alone(dispatcher, refused, event).await?;
    }
    while !shutdown.is_cancelled() {
        let mut conn = dispatcher.backbone.pool.get().await?;
        let events = service_events::list(&mut conn, BATCH, &refused.all(), DELIVERIES).await?;
        drop(conn);
        let given = match give(dispatcher, &events).await {
            Err(error) if error.may_blame_values() => {
                let mut given = 0;
                for event in &events {
                    given += give_alone(dispatcher, refused, *event).await?;
                }
                given
            }
            given => given?,
        };
        if given == 0 {
            // None is left, or they are refused or in the hands of other dispatchers.
            break;
        }
    }
    Ok(())
}

/// Gives one event; postpones it if the database refuses it. Returns how many it gave.
async fn give_alone(
    dispatcher: &Dispatcher,
    refused: &mut Refused<i64>,
    event: i64,
) -> Result<usize, store::Error> {
    match give(dispatcher, &[event]).await {
        Ok(given) => {
            refused.remove(event);
            Ok(given)
        }
        Err(error) if error.may_blame_values() => {
            let wait = refused.put_off(event, Instant::now());
            let error = format!("{:#}", anyhow::Error::from(error));
            tracing::error!(event, error, retry_in = ?wait, "the database refuses deliveries of a service event");
            Ok(0)
        }
        Err(error) => Err(error),
    }
}

/// Returns the number of events that it gave. If the process dies between the commit and the hints, the sweep finds the
/// deliveries.
async fn give(dispatcher: &Dispatcher, events: &[i64]) -> Result<usize, store::Error> {
    if events.is_empty() {
        return Ok(0);
    }
    let mut conn = dispatcher.backbone.pool.get().await?;
    keyed::begin(&mut conn).await?;
    let given = service_events::fan_out(&mut conn, events).await;
    let given = keyed::end(&mut conn, given).await?;
    if !given.waiting.is_empty() {
        lanes::mark_due(&mut conn, &given.waiting).await?;
        dispatcher.signals.query_at(tokio::time::Instant::now());
    }
    Ok(given.events)
}
