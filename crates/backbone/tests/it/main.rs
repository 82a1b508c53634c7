//! The backbone with a real database: when a service may work, and its upkeep tasks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod events;
mod keys;
mod readiness;
mod replicas;
mod support;
mod work;
