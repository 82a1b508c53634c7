//! What tests of several crates need: databases of their own, rows that a test does not care about,
//! replicas that can be killed, a server that answers as told. A dev-dependency only.

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
/// When it does not within `limit`; with `what` was waited for.
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
