//! Dispatchers over a real database, and receivers that behave as they are told.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod breaker;
mod failures;
mod isolation;
mod replicas;
mod request;
mod support;
mod waiting;
