//! Common test support: a database per test, default rows, replicas that can be killed, a scripted server. Use
//! it only as a dev-dependency.

mod builders;
pub mod certificates;
mod database;
mod lateness;
mod replica;
mod server;
mod sql;

use std::time::{Duration, Instant};

pub use builders::{Fixture, instructions, post};
pub use database::TestDatabase;
pub use lateness::Lateness;
pub use replica::{Replica, config};
pub use server::{Answer, Request, TestServer};

/// Waits until `holds`, and returns how long that took.
///
/// # Panics
/// If it takes longer than `limit`; the message contains `what`.
pub async fn eventually(
    what: &str,
    limit: Duration,
    mut holds: impl AsyncFnMut() -> bool,
) -> Duration {
    let begin = Instant::now();
    while !holds().await {
        assert!(begin.elapsed() < limit, "not within {limit:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begin.elapsed()
}
