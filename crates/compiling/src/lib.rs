//! Compiles seed pages into instructions. Pure: pages in, instructions out, the same for the same pages.
//!
//! [`extract`] reads a page, [`terms`] and [`names`] find its subject, [`feeds`] selects the feeds, and [`compile`] combines
//! the results. [`background`] contains word frequencies, and [`evaluate`] measures the quality of decisions on labelled
//! posts.

pub mod background;
pub mod compile;
pub mod evaluate;
pub mod extract;
pub mod feeds;
pub mod names;
pub mod page;
pub mod terms;

mod figures;
mod language;
mod topic;
mod word_lists;
