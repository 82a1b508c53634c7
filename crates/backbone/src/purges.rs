//! Deletes the data of deleted resources in the background: see [`store::purges`].
//!
//! Every process does this; the database distributes the work. There is a short pause between batches, so that
//! a large purge uses a part of one core and never all connections.

use std::time::Duration;

use runtime::Periodic;
use store::{
    Pool,
    purges::{self, Step},
};
use tokio_util::sync::CancellationToken;

/// Interval of checks while there is no work; each is one read of a small table.
const INTERVAL: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(20);

/// Runs until `stop`. Another task reports an unavailable database.
pub(crate) async fn run(pool: &Pool, stop: &CancellationToken) {
    let mut rounds = Periodic::new(stop);
    let mut wait = Duration::ZERO;
    while rounds.after(wait).await {
        wait = match step(pool).await {
            Ok(Step::Purged(_)) => BREATH,
            Ok(Step::Idle) => INTERVAL,
            Err(error) => {
                tracing::debug!("cannot purge now: {error:#}");
                INTERVAL
            }
        };
    }
}

async fn step(pool: &Pool) -> Result<Step, store::Error> {
    let mut conn = pool.get().await?;
    Ok(purges::step(&mut conn).await?)
}
