//! Runs replays, more slowly than new deliveries: in small batches with pauses, and not while the Connection has
//! enough to do.
//!
//! A batch only reopens deliveries; they are claimed and sent like all others, in the lane of their Connection. So
//! a replay takes no extra capacity, and each batch stores its progress in the database: if a replica dies, any
//! other continues.
//!
//! While Scans arrive, new deliveries must not wait behind the fifty requests of a batch, so batches are smaller
//! then.

use std::{sync::Arc, time::Duration};

use store::{
    AsyncConnection,
    fair::Round,
    replays::{self, Advanced, Pace},
};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

/// At most 500 deliveries a second for the replays of an account, over all replicas.
const PACE: Pace = Pace {
    batch: 50,
    backlog: 24,
    pause: PAUSE,
    count_timeout: Duration::from_secs(5),
};
/// Pace while Scans arrive: at most 100 a second. Each replica only counts its own Scans.
const YIELDING: Pace = Pace { batch: 10, ..PACE };
/// Time after the last Scan until none is expected.
const LULL: Duration = Duration::from_secs(1);
/// Interval between two checks for due replays while any is in progress.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Number of batches in a row, before tests are checked.
const TURNS: u32 = 20;

/// Gives due replays their turns, which accounts take one after the other. Returns true if deliveries were reopened,
/// so that the next turn should follow soon.
pub(crate) async fn work(
    dispatcher: &Arc<Dispatcher>,
    round: &mut Round,
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
            .transaction(async |conn| replays::advance(conn, pace, round).await)
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
            // Counting takes seconds, and tests wait until this round ends.
            Advanced::Counted => return Ok(true),
            Advanced::Waiting => continue,
        }
        // At its own pace, not at the next check, which comes once a second.
        dispatcher.signals.note([replay.connection_name()]);
    }
    Ok(goes_on)
}
