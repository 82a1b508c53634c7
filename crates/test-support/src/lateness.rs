//! How late things are on this machine, for tests that hold something to a time: what a busy machine adds is measured,
//! not guessed.

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

/// Between two looks at how late it is.
const LOOK: Duration = Duration::from_millis(25);

/// Wakes time and again and asks the database for nothing, in the test's own runtime; remembers how much longer than it
/// should that took. Ends when dropped.
pub struct Lateness {
    worst_micros: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Lateness {
    /// # Panics
    /// When the server does not answer.
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

    /// The latest that it was so far.
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
