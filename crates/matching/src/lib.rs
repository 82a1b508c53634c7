//! Decides which Managers should receive a post, and says why.
//!
//! [`Plan::compile`] compiles a Manager's instructions into a [`Plan`], and [`PostText`] cuts a post into words.
//! [`evaluate`] decides on one post for one plan, and defines what a decision is. [`LiveIndex`] decides on a post for
//! all plans at once, with the same result. [`likeness`] finds posts that say the same. [`text`] cuts posts, pages and
//! terms into words by the same rules.
//!
//! Deciding on a post uses no I/O, no async and no lock; any input is accepted without a panic. The same post, plan and
//! release give the same decision, bit for bit, on every machine.

mod background;
mod decision;
mod evidence;
mod explain;
mod features;
pub mod heads;
mod index;
mod language;
pub mod likeness;
mod model;
pub mod model_file;
mod phrase;
mod plan;
mod post;
mod screen;
mod signals;
mod steps;
mod strength;
pub mod text;
mod topic_scale;
mod words;

pub use background::{Background, NameUsage};
pub use decision::{Decision, Reason, Span, evaluate};
pub use evidence::{EVIDENCE, Evidence};
pub use explain::explain;
pub use index::{Change, Index, IndexBuilder, LiveIndex};
pub use language::Language;
pub use model::threshold;
pub use plan::{Plan, PlanError};
pub use post::{Field, PostText};
pub use screen::{Candidate, Kept, Screen, is_english};
pub use signals::Signals;
