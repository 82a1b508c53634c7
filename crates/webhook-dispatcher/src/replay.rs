//! Works replays off, slower than what is new: small batches with pauses, and none while the Connection
//! has enough to do.
//!
//! A batch only reopens deliveries; they are claimed and sent as all others are, in the lane of their
//! Connection. So a replay takes no extra place, and what it did is in the database with each batch:
//! a replica that dies leaves the rest to any other.
//!
//! While Scans come, new deliveries must not wait behind the fifty requests of a batch: batches are
//! smaller then.

use std::{sync::Arc, time::Duration};

use store::{
    AsyncConnection,
    replays::{self, Advanced, Pace},
};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

/// At most 500 a second for the replays of an account, over all replicas.
const PACE: Pace = Pace {
    batch: 50,
    backlog: 24,
    pause: PAUSE,
    count_timeout: Duration::from_secs(5),
};
/// Pace while Scans arrive: at most 100 a second. Each replica counts the Scans that it gets itself.
const YIELDING: Pace = Pace { batch: 10, ..PACE };
/// Time after the last Scan until none is expected.
const LULL: Duration = Duration::from_secs(1);
/// Between two looks for replays' turns while any goes on.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Duration of one turn; tests are looked for in between.
const TURNS: u32 = 20;

/// Gives each replay that is due its turn; whether some of one was reopened, so that more is to be soon.
pub(crate) async fn work(
    dispatcher: &Arc<Dispatcher>,
    shutdown: &CancellationToken,
) -> Result<bool, store::Error> {
    let mut conn = dispatcher.backbone.pool.get().await?;
    if !replays::any_due(&mut conn).await? {
        return Ok(false);
    }
    let quiet = dispatcher
        .signals
        .since_scan()
        .is_none_or(|since| since > LULL);
    let pace = if quiet { PACE } else { YIELDING };
    let mut goes_on = false;
    for _ in 0..TURNS {
        if shutdown.is_cancelled() {
            break;
        }
        let turn = conn
            .transaction(async |conn| replays::advance(conn, pace).await)
            .await?;
        let Some((replay, advanced)) = turn else {
            break;
        };
        match advanced {
            Advanced::Reopened(count) => {
                goes_on = true;
                metrics::REPLAYED.inc_by(count.try_into().unwrap_or(0));
            }
            Advanced::Done => {
                tracing::info!(replay.name = %replay, "a replay has reopened all its deliveries");
            }
            Advanced::Waiting | Advanced::Counted => continue,
        }
        // Not at the next look, which comes once a second: at its pace.
        dispatcher.signals.note([replay.connection_name()]);
    }
    Ok(goes_on)
}
