//! Compiles a Manager's seed pages into instructions.
//!
//! The core is pure: pages in, instructions out, the same for the same pages. [`extract`] reads a
//! page, [`terms`] and [`names`] find what it is about, [`feeds`] where to listen, and [`compile`]
//! puts them together. [`background`] knows how common words are.

pub mod background;
pub mod extract;
pub mod terms;
