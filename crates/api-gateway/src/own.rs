//! Worker-local database connections.
//!
//! A connection is driven by a task on the runtime that opened it. If that is the worker that waits for the result,
//! a query needs no switch to another thread and back, which costs about as much CPU as a short query itself.
//!
//! These connections count towards `database.max_connections` and reduce the shared pool. A worker whose local
//! connections are all in use takes one from the shared pool, so no request waits for a worker's connection while
//! another is free.

use std::cell::RefCell;

use runtime::Config;
use secrecy::{ExposeSecret as _, SecretString};
use store::{Connection, Pool};

/// Minimum number of connections for the process: for maintenance, and for workers whose own ones are in use.
const LEAST_SHARED: usize = 2;

thread_local! {
    static OWN: RefCell<Option<Pool>> = const { RefCell::new(None) };
}

/// Number of connections that each worker may open.
#[derive(Clone)]
pub(crate) struct Own {
    url: SecretString,
    size: usize,
}

impl Own {
    /// Reserves the connections of `workers` workers from the pool `shared`. Returns `None` if there are too few
    /// for all.
    pub(crate) fn take(config: &Config, shared: &Pool, workers: usize) -> Option<Self> {
        let all = usize::try_from(config.database.max_connections).unwrap_or(usize::MAX);
        let size = of_each(all, workers)?;
        shared.resize(all - size * workers);
        Some(Self {
            url: config.database.url.clone(),
            size,
        })
    }

    /// Marks this thread as a worker.
    pub(crate) fn enter(&self) {
        // The address is known to be valid: the shared pool uses it too.
        let pool = store::connect(self.url.expose_secret(), self.size).ok();
        OWN.set(pool);
    }
}

fn of_each(all: usize, workers: usize) -> Option<usize> {
    let shared = (all / 4).max(LEAST_SHARED);
    let size = all.checked_sub(shared)?.checked_div(workers)?;
    (size > 0).then_some(size)
}

/// Returns a connection of this worker, if it has an idle one.
pub(crate) async fn connection() -> Result<Option<Connection>, store::Error> {
    let Some(pool) = OWN.with_borrow(Clone::clone) else {
        return Ok(None);
    };
    store::unused(&pool).await
}

#[cfg(test)]
mod tests {
    use super::of_each;

    #[test]
    fn workers_leave_connections_for_the_shared_pool() {
        for (all, workers, size) in [
            (10, 2, Some(4)),
            (10, 8, Some(1)),
            (40, 2, Some(15)),
            (4, 2, Some(1)),
            (3, 2, None),
            (2, 1, None),
            (10, 9, None),
            (10, 0, None),
        ] {
            assert_eq!(of_each(all, workers), size, "{all} for {workers}");
        }
    }
}
