//! The backbone over a real database: when a service may work, and what runs beside it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod keys;
mod outbox;
mod readiness;
mod replicas;
mod support;
