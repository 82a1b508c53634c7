//! Dispatchers over a real database, and receivers that behave as they are told.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod breaker;
mod conformance;
mod connection_tests;
mod endings;
mod failures;
mod isolation;
mod replays;
mod replicas;
mod request;
mod signing;
mod support;
mod waiting;
