//! The pool of connections that a process shares.

use std::time::Duration;

use diesel_async::{
    AsyncPgConnection,
    pooled_connection::{AsyncDieselConnectionManager, deadpool},
};

/// Cheap to clone: all clones share the connections.
pub type Pool = deadpool::Pool<AsyncPgConnection>;

/// The pool could not be made; that a server answers is found out at first use.
#[derive(Debug, thiserror::Error)]
#[error("invalid database settings")]
pub struct ConnectError(#[source] deadpool::BuildError);

/// A pool of up to `size` connections to `url`, opened when they are needed. Whoever waits longer than
/// five seconds for one gets an error instead.
///
/// # Errors
/// When the settings contradict each other.
pub fn connect(url: &str, size: usize) -> Result<Pool, ConnectError> {
    let manager = AsyncDieselConnectionManager::<AsyncPgConnection>::new(url);
    Pool::builder(manager)
        .max_size(size)
        .runtime(::deadpool::Runtime::Tokio1)
        .wait_timeout(Some(Duration::from_secs(5)))
        .create_timeout(Some(Duration::from_secs(5)))
        .build()
        .map_err(ConnectError)
}
