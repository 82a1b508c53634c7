//! Gives service events to the Connections that receive them.
//!
//! Events are rare, so replicas look for them each second, and nothing wakes them earlier. Their deliveries wait in the
//! database and are claimed from there, like those of Scans that are not sent at once.

use std::{sync::Arc, time::Duration};

use runtime::Periodic;
use store::{keyed, lanes, service_events};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::Dispatcher;

const LOOK: Duration = Duration::from_secs(1);
/// Number of events in one transaction. A Namespace may have a hundred Connections.
const BATCH: u32 = 64;

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut rounds = Periodic::new(&shutdown);
    while rounds.after(LOOK).await {
        if dispatcher.backbone.is_suspended() {
            continue;
        }
        let given = give(dispatcher, &shutdown).await;
        rounds.log_once("look for service events", given);
    }
}

/// Gives all events. If the process dies between the commit and the hints, the sweep finds the deliveries.
async fn give(dispatcher: &Dispatcher, shutdown: &CancellationToken) -> Result<(), store::Error> {
    while !shutdown.is_cancelled() {
        let mut conn = dispatcher.backbone.pool.get().await?;
        keyed::begin(&mut conn).await?;
        let given = service_events::fan_out(&mut conn, i64::from(BATCH)).await;
        let given = keyed::end(&mut conn, given).await?;
        if !given.waiting.is_empty() {
            lanes::mark_due(&mut conn, &given.waiting).await?;
            dispatcher.signals.query_at(Instant::now());
        }
        if given.events < BATCH as usize {
            break;
        }
    }
    Ok(())
}
