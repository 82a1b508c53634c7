//! The test harness of the scenarios.
//!
//! [`stack`] is the service under test, built from [`process`] and [`programs`]. [`simulator`], [`site`], [`receiver`]
//! and [`collector`] are its environment; [`api`] is a client.

pub(crate) mod api;
pub(crate) mod chart;
pub(crate) mod collector;
pub(crate) mod config;
pub(crate) mod identities;
pub(crate) mod mcp;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod proxy;
pub(crate) mod receiver;
pub(crate) mod server;
pub(crate) mod service;
pub(crate) mod shape;
pub(crate) mod simulator;
pub(crate) mod site;
pub(crate) mod sql;
mod stack;
mod wait;

use tempfile::TempDir;

pub use stack::Kind;
pub(crate) use stack::{Part, Stack, busy_address, dev_command, free_address, word};
pub(crate) use wait::{LOSS, NOT_POLLED, WAITING, eventually, eventually_or_lost};

/// Returns a new directory for servers and their logs. `cargo xtask test` sets a place in memory, because each server creates
/// a thousand files.
#[expect(
    clippy::disallowed_methods,
    reason = "tests are configured by environment variables, like Cargo's own"
)]
pub(crate) fn server_directory() -> TempDir {
    let directory = match std::env::var_os("EARSHOT_TEST_SERVERS") {
        Some(place) => tempfile::tempdir_in(place),
        None => tempfile::tempdir(),
    };
    directory.unwrap()
}

/// Microseconds since 1970.
pub(crate) fn now_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_micros()).unwrap()
}
