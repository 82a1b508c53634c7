//! Small statements with a short limit of time.

use std::time::Duration;

use anyhow::anyhow;
use store::{AsyncPgConnection, Pool, QueryResult};
use tokio::time::{Instant, timeout_at};

/// A database that takes longer for one of these small statements counts as unavailable.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// Runs `work` with a time limit of [`PATIENCE`], and returns an error after it. The connection is then closed,
/// because its server may be gone and another one may be the primary.
pub(crate) async fn with_timeout<T>(
    pool: &Pool,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> QueryResult<T>,
) -> anyhow::Result<T> {
    let end = Instant::now() + PATIENCE;
    let conn = timeout_at(end, pool.get())
        .await
        .map_err(|_elapsed| late())?;
    let mut conn = conn.map_err(store::Error::from)?;
    match timeout_at(end, work(&mut conn)).await {
        Ok(done) => Ok(done.map_err(store::Error::from)?),
        Err(_elapsed) => {
            drop(store::Connection::take(conn));
            Err(late())
        }
    }
}

pub(crate) fn late() -> anyhow::Error {
    anyhow!("no answer within {PATIENCE:?}")
}
