//! Maintenance of the gateway: it returns unspent points and deletes old idempotent responses.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use crate::{ApiError, rates::Meter, state::AppState};

const SETTLE_EVERY: Duration = Duration::from_secs(1);
const PURGE_EVERY: Duration = Duration::from_secs(60);
/// Rows in one statement, and statements in a row: others get their turn.
const PURGE_ROWS: i64 = 1_000;
const PURGE_STATEMENTS: usize = 50;
/// For giving back what is left at the end.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs until `stop`. Failed work is tried again at the next turn; others log a lost database.
pub(crate) async fn keep(state: Arc<AppState>, stop: CancellationToken) {
    let mut ticks = interval(SETTLE_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut purge_due = Instant::now() + SETTLE_EVERY;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = ticks.tick() => {}
        }
        if let Err(error) = Meter::settle(&state, false).await {
            tracing::debug!("points are not given back: {error}");
        }
        if Instant::now() >= purge_due {
            purge_due = Instant::now() + PURGE_EVERY;
            if let Err(error) = purge(&state).await {
                tracing::debug!("old answers are not purged: {error}");
            }
        }
    }
    // Where that fails, they count as spent, and come back in a minute.
    let _ = timeout(LAST_WORDS, Meter::settle(&state, true)).await;
}

async fn purge(state: &AppState) -> Result<(), ApiError> {
    for _ in 0..PURGE_STATEMENTS {
        let mut conn = state.connection().await?;
        let purged = store::idempotency::purge(&mut conn, PURGE_ROWS).await?;
        if i64::try_from(purged).unwrap_or(i64::MAX) < PURGE_ROWS {
            break;
        }
    }
    Ok(())
}
