//! Deletes, in the background, what deleted resources left behind: see [`store::purges`].
//!
//! Every process does; the database shares out the work. Batches follow one another with a breath
//! between them, so that a large purge takes a part of one core and never all connections.

use std::time::Duration;

use store::{
    Pool,
    purges::{self, Step},
};
use tokio_util::sync::CancellationToken;

/// Between looks when nothing is due; each is one read of a small table.
const INTERVAL: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(20);

/// Runs until `stop`. A database that is away is told by others.
pub(crate) async fn run(pool: &Pool, stop: &CancellationToken) {
    loop {
        let wait = match step(pool).await {
            Ok(Step::Purged(_)) => BREATH,
            Ok(Step::Idle) => INTERVAL,
            Err(error) => {
                tracing::debug!("cannot purge now: {error:#}");
                INTERVAL
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

async fn step(pool: &Pool) -> Result<Step, store::Error> {
    let mut conn = pool.get().await?;
    Ok(purges::step(&mut conn).await?)
}
