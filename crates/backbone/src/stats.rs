//! Maintains the points of `stats`: aggregates the counts, and deletes old points.
//!
//! Every process does this; the store lets one at a time aggregate.

use std::time::Duration;

use domain::Timestamp;
use runtime::Periodic;
use store::{Floor, Pool, stats};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Approximate maximum delay of the points.
const FOLD_INTERVAL: Duration = Duration::from_secs(2);
const FOLDED_AT_ONCE: i64 = 1_000;
const PURGE_INTERVAL: Duration = Duration::from_secs(3_600);
const PURGED_AT_ONCE: i64 = 5_000;

pub(crate) async fn run(pool: &Pool, stop: &CancellationToken) {
    let mut purge_due = Instant::now();
    let mut rounds = Periodic::new(stop);
    let mut floor = Floor::default();
    while rounds.every(FOLD_INTERVAL).await {
        let round = async {
            fold(pool, stop, &mut floor).await?;
            if Instant::now() >= purge_due {
                purge(pool, stop).await?;
                purge_due = Instant::now() + PURGE_INTERVAL;
            }
            Ok::<_, store::Error>(())
        };
        rounds.log_once("aggregate statistics", round.await);
    }
}

async fn fold(
    pool: &Pool,
    stop: &CancellationToken,
    floor: &mut Floor,
) -> Result<(), store::Error> {
    loop {
        let mut conn = pool.get().await?;
        let floor = floor.get(&mut conn).await?;
        let folded = stats::fold(&mut conn, floor, FOLDED_AT_ONCE).await?;
        let full = folded.is_some_and(|count| i64::try_from(count) == Ok(FOLDED_AT_ONCE));
        if !full || stop.is_cancelled() {
            return Ok(());
        }
    }
}

async fn purge(pool: &Pool, stop: &CancellationToken) -> Result<(), store::Error> {
    let mut conn = pool.get().await?;
    let now = Timestamp::now();
    while !stop.is_cancelled() {
        let old = stats::purge_old(&mut conn, now, PURGED_AT_ONCE).await?;
        let orphans = stats::purge_orphans(&mut conn, PURGED_AT_ONCE).await?;
        if old + orphans == 0 {
            break;
        }
    }
    Ok(())
}
