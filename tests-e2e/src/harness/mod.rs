//! What the scenarios stand on.
//!
//! [`stack`] is the service under test, [`process`] and [`programs`] are what it is made of;
//! [`simulator`], [`site`], [`receiver`] and [`collector`] are the world around it; [`api`] is a client.

pub(crate) mod api;
pub(crate) mod collector;
pub(crate) mod config;
pub(crate) mod process;
pub(crate) mod programs;
pub(crate) mod proxy;
pub(crate) mod receiver;
mod server;
pub(crate) mod shape;
pub(crate) mod simulator;
pub(crate) mod site;
mod stack;
mod wait;

pub use stack::Kind;
pub(crate) use stack::{Part, Stack, busy_address, dev_command, free_address, word};
pub(crate) use wait::eventually;

/// Microseconds since 1970, as the simulator tells them.
pub(crate) fn now_micros() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    i64::try_from(since.unwrap().as_micros()).unwrap()
}
