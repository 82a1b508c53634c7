//! The gateway over HTTP and a real PostgreSQL, by its public face alone.
//!
//! [`client`] holds every answer that it sees to `openapi.yaml` ([`contract`]).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod app;
mod client;
mod contract;

mod availability;
mod connections;
mod hostile;
mod keys;
mod lists;
mod managers;
mod namespaces;
mod scans;
mod stopping;
mod surface;
mod test_mode;
