//! Dispatchers with a real database and scripted receivers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod breaker;
mod changed;
mod clocks;
mod conformance;
mod email;
mod endings;
mod erased;
mod failures;
mod isolation;
mod lost_answers;
mod refused_formats;
mod replays;
mod replicas;
mod request;
mod service_events;
mod signing;
mod support;
mod trial_deliveries;
mod unreachable;
mod waiting;
