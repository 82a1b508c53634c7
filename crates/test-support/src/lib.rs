//! What tests of several crates need: databases of their own, and rows that a test does not care
//! about. A dev-dependency only.

mod builders;
mod database;

pub use builders::{Fixture, instructions, post};
pub use database::TestDatabase;
