//! Common test support: a database per test, default rows, replicas that can be killed, a scripted server. Use
//! it only as a dev-dependency.

mod alerts;
mod builders;
pub mod certificates;
mod commits;
mod database;
mod proxy;
mod replica;
mod server;
mod sql;

use std::time::{Duration, Instant};

pub use alerts::Alert;
pub use builders::{Fixture, QUOTAS, instructions, post};
pub use commits::Commits;
pub use database::{LATER_VERSION, TestDatabase, run_later_migration};
pub use proxy::Proxy;
pub use replica::{Replica, config, publish};
pub use server::{Answer, Request, TestServer};

/// Says that a test, or a part of it, does not run, because this machine lacks something.
///
/// # Panics
/// In CI, which has everything: a test that is skipped there runs nowhere.
#[track_caller]
pub fn skip(reason: &str) {
    #[expect(
        clippy::disallowed_methods,
        reason = "tests are no service: there is no configuration to read"
    )]
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(!is_ci, "{reason}");
    eprintln!("SKIPPED: {reason}");
}

/// Limit for waiting in a test. It only ends a test that would hang; a busy machine must not reach it.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// Waits until `holds`.
///
/// # Panics
/// After [`TIMEOUT`]; the message contains `what`.
pub async fn eventually(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let begin = Instant::now();
    let waiting = async {
        while !holds().await {
            // Each look costs CPU time, so it looks less often the longer it takes.
            let pause = begin.elapsed() / 10;
            let pause = pause.clamp(Duration::from_millis(10), Duration::from_millis(100));
            tokio::time::sleep(pause).await;
        }
    };
    let waited = tokio::time::timeout(TIMEOUT, waiting).await;
    assert!(waited.is_ok(), "not within {TIMEOUT:?}: {what}");
}
