//! Maintenance of the gateway: returns unspent points and deletes old idempotent responses.

use std::{sync::Arc, time::Duration};

use runtime::Periodic;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{ApiError, database::Database, state::AppState};

const SETTLE_EVERY: Duration = Duration::from_secs(1);
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Maximum rows per statement, and statements in a row, so that other work gets its turn.
const PURGE_ROWS: i64 = 1_000;
const PURGE_STATEMENTS: usize = 50;
/// Time limit for returning unspent points at shutdown.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs until `stop`. Failed work is retried in the next round. Other components log a lost database.
pub(crate) async fn run(state: Arc<AppState>, stop: CancellationToken) {
    let mut purge_due = Instant::now() + SETTLE_EVERY;
    let mut rounds = Periodic::new(&stop);
    while rounds.every(SETTLE_EVERY).await {
        if let Err(error) = state.rates.settle(&state.database, false).await {
            tracing::debug!("points are not given back: {error}");
        }
        if Instant::now() >= purge_due {
            purge_due = Instant::now() + PURGE_EVERY;
            if let Err(error) = purge(&state.database).await {
                tracing::debug!("old answers are not purged: {error}");
            }
        }
    }
    // If this fails, the points count as spent and become available again in a minute.
    let _ = timeout(LAST_WORDS, state.rates.settle(&state.database, true)).await;
}

async fn purge(database: &Database) -> Result<(), ApiError> {
    for _ in 0..PURGE_STATEMENTS {
        let mut conn = database.connection().await?;
        let purged = store::idempotency::purge(&mut conn, PURGE_ROWS).await?;
        if i64::try_from(purged).unwrap_or(i64::MAX) < PURGE_ROWS {
            break;
        }
    }
    Ok(())
}
