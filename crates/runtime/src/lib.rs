//! The base of every Earshot process: configuration, logs, metrics and traces, health endpoints, signals.
//!
//! A service is a function `run(Arc<Config>, Context)`. [`service_main`] turns it into a binary; `earshot dev`
//! runs four of them with one configuration, one [`ops`] server and one log. This is the only crate that reads
//! the environment, and it does so once, at start.

#[cfg(feature = "jemalloc")]
mod allocator;
pub mod background;
pub mod backoff;
pub mod build_info;
pub mod cli;
pub mod config;
pub mod crypto;
pub mod environment;
pub mod health;
pub mod metrics;
pub mod ops;
pub mod periodic;
pub mod retry;
pub mod service;
pub mod shutdown;
pub mod telemetry;

use tokio_util::sync::CancellationToken;

pub use backoff::Backoff;
pub use config::{Config, ConfigError};
pub use health::{Check, Health};
pub use periodic::{Periodic, Sparing};
pub use retry::retry;
pub use service::service_main;

/// Arguments of a running service, in addition to its configuration.
#[derive(Debug, Clone)]
pub struct Context {
    /// Cancelled when the service must take no more work and finish its current work.
    pub shutdown: CancellationToken,
    /// The service reports its health here.
    pub health: Health,
    /// The name of the binary: `scanner`.
    pub service: &'static str,
}
