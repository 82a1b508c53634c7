//! The backbone with a real database: when a service may work, and its upkeep tasks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod keys;
mod outbox;
mod readiness;
mod replicas;
mod support;
mod work;
