//! Metrics of the Managers' states.
//!
//! Costs one statement per [`LOOK`], over at most [`COUNTED`] Managers and those that wait or failed, and a hundredth of
//! the time at most.

use std::time::Duration;

use domain::manager::ManagerState;
use runtime::{Periodic, Sparing};
use store::{Pool, managers};
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_secs(15);
/// Above this number, applied Managers are estimated.
const COUNTED: i64 = 100_000;

runtime::metrics! {
    static MANAGERS: IntGaugeVec = "earshot_managers",
        "Managers, by state", ["state"];
    static QUEUE_AGE: Gauge = "earshot_compile_queue_age_seconds",
        "Seconds that the oldest submission has waited for its compilation";
}

pub(crate) async fn run(pool: &Pool, shutdown: &CancellationToken) {
    let mut rounds = Periodic::new(shutdown);
    let mut sparing = Sparing::new(100);
    while rounds.every(LOOK).await {
        if let Some(Err(error)) = sparing.run(measure(pool)).await {
            // Another component reports that the database is unavailable.
            tracing::debug!("cannot count the Managers by state: {error:#}");
        }
    }
}

async fn measure(pool: &Pool) -> Result<(), store::Error> {
    let mut conn = pool.get().await?;
    let counts = managers::count_by_state(&mut conn, COUNTED).await?;
    drop(conn);
    let mut age = 0.0;
    for state in [
        ManagerState::PendingApply,
        ManagerState::Applied,
        ManagerState::ApplyFailed,
    ] {
        let word = state.as_str();
        let found = counts.iter().find(|found| found.state == word);
        let count = found.map_or(0, |found| found.count);
        MANAGERS.with_label_values(&[word]).set(count);
        if state == ManagerState::PendingApply {
            age = found.map_or(0.0, |found| found.oldest_seconds);
        }
    }
    QUEUE_AGE.set(age);
    Ok(())
}
