//! Decides for which of all Managers a post is worth a person's attention, and says why.
//!
//! [`Plan::compile`] brings a Manager's instructions into a [`Plan`], [`PostText`] a post into words;
//! [`evaluate`] decides on one post for one plan, and defines what a decision is. [`LiveIndex`] decides
//! on a post for all plans at once, and answers the same. [`likeness`] tells posts that say the same.
//! [`text`] cuts posts, pages and terms into words by the same rules.
//!
//! No I/O, no async, no lock on the way of a post; any input is taken without panic. The same post,
//! plan and release give the same decision, bit for bit, on every machine.

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
pub mod text;
mod topic_scale;
mod words;

pub use background::{Background, NameUsage};
pub use decision::{Decision, Field, Reason, Span, evaluate};
pub use evidence::{EVIDENCE, Evidence};
pub use explain::explain;
pub use index::{Change, Index, LiveIndex};
pub use language::Language;
pub use model::threshold;
pub use plan::{Plan, PlanError};
pub use post::PostText;
pub use screen::{Candidate, Kept, Screen};
pub use signals::Signals;
