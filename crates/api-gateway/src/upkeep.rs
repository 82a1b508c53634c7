//! Maintenance of the gateway: returns unspent points, stores uses of keys, warns of keys that expire, and deletes old
//! idempotent responses and sessions.

use std::{sync::Arc, time::Duration};

use runtime::Periodic;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::{ApiError, authenticate::expiring::ExpiringKeys, state::AppState};

const SETTLE_EVERY: Duration = Duration::from_secs(1);
const PURGE_EVERY: Duration = Duration::from_secs(60);
const EXPIRING_EVERY: Duration = Duration::from_secs(15);
/// Maximum rows per statement, and statements in a row, so that other work gets its turn.
const PURGE_ROWS: u16 = 1_000;
const PURGE_STATEMENTS: usize = 50;
/// Time limit for the last writes at shutdown.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs until `stop`. Failed work is retried in the next round. Other components log a lost database.
pub(crate) async fn run(state: Arc<AppState>, stop: CancellationToken) {
    let mut purge_due = Instant::now() + SETTLE_EVERY;
    let mut expiring_due = purge_due;
    let mut expiring = ExpiringKeys::default();
    let mut rounds = Periodic::new(&stop);
    while rounds.every(SETTLE_EVERY).await {
        if let Err(error) = state.rates.settle(&state.database, false).await {
            tracing::debug!("points are not given back: {error}");
        }
        if let Err(error) = state.keys.store_uses(&state.database).await {
            tracing::debug!("uses of keys are not stored: {error}");
        }
        if Instant::now() >= purge_due {
            purge_due = Instant::now() + PURGE_EVERY;
            let purged = purge_answers(&state)
                .await
                .and(purge_sessions(&state).await);
            rounds.log_once("purge old answers and sessions", purged);
        }
        if Instant::now() >= expiring_due {
            expiring_due = Instant::now() + EXPIRING_EVERY;
            if let Err(error) = expiring.update(&state.database).await {
                tracing::debug!("keys that expire are not counted: {error}");
            }
        }
    }
    // If this fails, the points count as spent and become available again in a minute.
    let _ = timeout(LAST_WORDS, state.rates.settle(&state.database, true)).await;
    let _ = timeout(LAST_WORDS, state.keys.store_uses(&state.database)).await;
}

async fn purge_answers(state: &AppState) -> Result<(), ApiError> {
    for _ in 0..PURGE_STATEMENTS {
        let mut conn = state.database.connection().await?;
        let purged = store::idempotency::purge(&mut conn, PURGE_ROWS.into()).await?;
        if purged < usize::from(PURGE_ROWS) {
            break;
        }
    }
    Ok(())
}

async fn purge_sessions(state: &AppState) -> Result<(), ApiError> {
    for _ in 0..PURGE_STATEMENTS {
        let mut conn = state.database.connection().await?;
        let keep = state.keep_sessions;
        let purged = store::sessions::purge(&mut conn, keep, PURGE_ROWS.into()).await?;
        if purged < usize::from(PURGE_ROWS) {
            break;
        }
    }
    Ok(())
}
