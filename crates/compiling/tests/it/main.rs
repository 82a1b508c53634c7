//! The compiler on invented pages.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compile;
mod languages;
mod quality;
