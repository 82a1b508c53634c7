//! The client against well-behaved and misbehaving servers, scripted on loopback.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, which clippy does not know as such"
)]

mod exchange;
mod fetch;
mod proxy;
mod rebinding;
mod support;
mod tls;
