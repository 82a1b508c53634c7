//! Tests the gateway over HTTP with a real PostgreSQL, only through its public interface.
//!
//! [`client`] checks every response against `openapi.yaml` ([`contract`]).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod app;
mod audit;
mod client;
mod contract;
mod estate;

mod alerts;
mod availability;
mod browsers;
mod changes;
mod connections;
mod console;
mod deletions;
mod deliveries;
mod docs;
mod document;
mod feeds_of_scans;
mod hostile;
mod http2;
mod idempotency;
mod keys;
mod large_pages;
mod lists;
mod mail;
mod malformed;
mod managers;
mod mcp;
mod namespaces;
mod past;
mod polling;
mod previews;
mod provider;
mod quotas;
mod rates;
mod scans;
mod security;
mod sign_in;
mod slow;
mod spec;
mod stats;
mod stopping;
mod surface;
mod test_mode;
mod tls;
