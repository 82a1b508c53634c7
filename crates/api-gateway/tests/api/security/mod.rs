//! Attacks of a hostile client. docs/security.md names these tests.

mod audit;
mod exhaustion;
mod injection;
mod isolation;
mod roles;
mod throttle;
