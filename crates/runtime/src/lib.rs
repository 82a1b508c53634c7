//! What every process of Earshot needs before it does anything of its own: configuration, logs and
//! traces, health endpoints, signals.
//!
//! A service is a function `run(Arc<Config>, Context)`. [`service_main`] turns it into a binary;
//! `earshot dev` runs four of them over one configuration, one [`ops`] server and one set of logs.
//! This is the only crate that reads the environment, and it does so once, at start.

mod allocator;
pub mod backoff;
pub mod build_info;
pub mod cli;
pub mod config;
pub mod crypto;
pub mod environment;
pub mod health;
pub mod ops;
pub mod service;
pub mod shutdown;
pub mod telemetry;

use tokio_util::sync::CancellationToken;

pub use backoff::Backoff;
pub use config::{Config, ConfigError};
pub use health::{Check, Health};
pub use service::service_main;

/// What a running service is given beside its configuration.
#[derive(Debug, Clone)]
pub struct Context {
    /// Cancelled when the service shall stop taking work and finish what it holds.
    pub shutdown: CancellationToken,
    /// Where the service says how it is.
    pub health: Health,
    /// The name of the binary: `scanner`.
    pub service: &'static str,
}
