//! Measures delays on this machine, for tests that assert a time: the delay of a busy machine is measured, not
//! guessed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use diesel::sql_query;
use diesel_async::RunQueryDsl;
use tokio::task::JoinHandle;

use crate::TestDatabase;

/// Interval between two measurements.
const LOOK: Duration = Duration::from_millis(25);

/// Wakes repeatedly and sends an empty query to the database, in the test's runtime. Records how much longer
/// than expected this took. Ends when dropped.
pub struct Lateness {
    worst_micros: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Lateness {
    /// # Panics
    /// If the server does not answer.
    pub async fn watch(database: &TestDatabase) -> Self {
        let mut conn = database.connect().await;
        let worst_micros: Arc<AtomicU64> = Arc::default();
        let worst = Arc::clone(&worst_micros);
        let task = tokio::spawn(async move {
            loop {
                let due = Instant::now() + LOOK;
                tokio::time::sleep_until(due.into()).await;
                if sql_query("SELECT").execute(&mut conn).await.is_err() {
                    return;
                }
                let late = u64::try_from(due.elapsed().as_micros()).unwrap_or(u64::MAX);
                worst.fetch_max(late, Ordering::Relaxed);
            }
        });
        Self { worst_micros, task }
    }

    /// The maximum delay so far.
    #[must_use]
    pub fn worst(&self) -> Duration {
        Duration::from_micros(AtomicU64::load(&self.worst_micros, Ordering::Relaxed))
    }
}

impl Drop for Lateness {
    fn drop(&mut self) {
        self.task.abort();
    }
}
