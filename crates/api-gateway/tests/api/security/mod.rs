//! What a hostile client tries: docs/security.md names these tests.

mod estate;
mod exhaustion;
mod injection;
mod isolation;
mod roles;
mod throttle;
