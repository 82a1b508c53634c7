//! The compiler on invented pages, and the service around it with a real database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod fair;
mod guard;
mod model;
mod outcomes;
mod quotas;
mod recompile;
mod restricted;
mod service;
mod support;
