//! Database connections that an HTTP worker has to itself.
//!
//! A connection is driven by a task on the runtime that opened it. Where that is the worker that waits for
//! the answer, a query goes without the way to another thread and back, which costs this process about as
//! much as a short query itself.
//!
//! They are part of `database.max_connections`, taken from what the process shares. A worker whose own are
//! all in use turns to those, so no request waits for a worker's while another is free.

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
    /// Takes the connections of so many workers from those that `shared` may open; none, when there are
    /// too few for all.
    pub(crate) fn take(config: &Config, shared: &Pool, workers: usize) -> Option<Self> {
        let all = usize::try_from(config.database.max_connections).unwrap_or(usize::MAX);
        let size = of_each(all, workers)?;
        shared.resize(all - size * workers);
        Some(Self {
            url: config.database.url.clone(),
            size,
        })
    }

    /// This thread is a worker from now on.
    pub(crate) fn enter(&self) {
        // The address was read before, for the pool that all share.
        let pool = store::connect(self.url.expose_secret(), self.size).ok();
        OWN.set(pool);
    }
}

fn of_each(all: usize, workers: usize) -> Option<usize> {
    let shared = (all / 4).max(LEAST_SHARED);
    let size = all.checked_sub(shared)?.checked_div(workers)?;
    (size > 0).then_some(size)
}

/// A connection of this worker, if it has one that is not in use.
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
    fn workers_leave_connections_to_the_process() {
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
