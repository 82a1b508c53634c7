//! Compiles a Manager's seed pages into instructions.
//!
//! The core is pure: pages in, instructions out, the same for the same pages. [`extract`] reads a
//! page, [`terms`] and [`names`] find what it is about, [`feeds`] where to listen, and [`compile`]
//! puts them together. [`background`] knows how common words are, and [`evaluate`] measures how well
//! it all decides on labelled posts. Around the core, `seeds` fetches the pages, `queue` claims
//! submissions, `service` compiles them and stores what came of them, `discovery` looks for communities, `refine` asks the operator's model where there is one,
//! `recompile` does so again for what is applied, and `feedback` heeds what customers said of the matches.

pub mod background;
pub mod compile;
mod discovery;
pub mod evaluate;
pub mod extract;
pub mod feeds;
pub mod names;
pub mod terms;
mod topic;

mod feedback;
mod figures;
mod language;
mod monitor;
mod queue;
mod recompile;
mod refine;
mod seeds;
mod service;

pub use service::run;
