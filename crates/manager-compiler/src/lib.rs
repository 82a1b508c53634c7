//! Compiles a Manager's seed pages into instructions.
//!
//! The core is pure: pages in, instructions out, the same for the same pages. [`extract`] reads a page, [`terms`] and
//! [`names`] find its subject, [`feeds`] selects the feeds, and [`compile`] combines the results. [`background`]
//! contains word frequencies, and [`evaluate`] measures the quality of decisions on labelled posts.
//!
//! Around the core, `seeds` fetches the pages, `queue` claims submissions, `service` compiles them and stores the
//! results, `discovery` searches for communities, `refine` asks the operator's model if there is one, `recompile`
//! recompiles applied Managers, and `feedback` applies the customers' verdicts on matches.

pub mod background;
pub mod compile;
mod discovery;
pub mod evaluate;
pub mod extract;
pub mod feeds;
pub mod names;
pub mod page;
pub mod terms;
mod topic;

mod arrivals;
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
