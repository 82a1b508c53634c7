//! The compiler on invented pages, and the service around it with a real database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod compile;
mod guard;
mod languages;
mod model;
mod outcomes;
mod quality;
mod quotas;
mod recompile;
mod restricted;
mod service;
mod support;
