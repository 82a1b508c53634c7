//! Instructions: what a Manager looks for, compiled from pages or written by hand.

use serde::{Deserialize, Serialize};

use crate::FeedName;

mod parse;

pub use parse::{parse, term};

pub const MAX_FEEDS: usize = 200;
pub const MAX_TERMS: usize = 500;
pub const MAX_GROUPS: usize = 20;
pub const MAX_RELATED_TERMS: usize = 100;
pub const MAX_OFFERS: usize = 50;
pub const MAX_TERM_CHARS: usize = 100;
/// Of weights and thresholds: sums of them stay exact enough to compare.
pub const MAX_WEIGHT: f64 = 1e6;
pub const MAX_BRIEF_CHARS: usize = 2_000;

/// What makes a post worth attention, beside its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Focus {
    /// Somebody wants to choose, buy or hire.
    Sales,
    /// A competitor is named, compared or judged.
    Competitor,
    /// Somebody complains about the customer.
    Crisis,
}

impl Focus {
    pub const ALL: [Self; 3] = [Self::Sales, Self::Competitor, Self::Crisis];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sales => "SALES",
            Self::Competitor => "COMPETITOR",
            Self::Crisis => "CRISIS",
        }
    }
}

/// What the scanner executes. A Manager with the same instructions decides the same, whoever wrote
/// them (MATCHING.md part 1).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instructions {
    /// Which feeds to watch.
    #[serde(default)]
    pub feeds: Vec<FeedName>,
    /// Every group must have at least one term that occurs.
    #[serde(default)]
    pub require: Vec<Vec<String>>,
    /// Terms that add to the score.
    #[serde(default)]
    pub include: Vec<Term>,
    #[serde(default)]
    pub names: Vec<WatchedName>,
    /// Any of these vetoes.
    #[serde(default)]
    pub exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Topic scores that one in ten, in a hundred and in a thousand ordinary posts reach. With a focus
    /// they tell how unusual a post's topic is; without them usual figures are assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_scores: Option<[f64; 3]>,
    /// Words that ordinary posts about the topic contain. With a focus they tell whether a mention of a
    /// name is about the topic. They never make a post match by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_terms: Vec<String>,
    /// Words of what the customer sells, weights 0 to 1. With the focus SALES a post that names none of it
    /// scores low.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Term>,
    /// What is relevant, in a sentence or two of plain words.
    #[serde(default)]
    pub brief: String,
}

/// A word or phrase and what it counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub text: String,
    pub weight: f64,
}

/// Whose name it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NameKind {
    /// The customer's own brand, product or handle.
    Own,
    /// Another's: a competitor's, or one the customer entered.
    Watched,
}

/// A name to look for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WatchedName {
    pub text: String,
    pub kind: NameKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// For names that are also words: `Apple`, not `apple`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub case_sensitive: bool,
    /// When given, one of these must occur too for the name to count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Percentage of ordinary posts with the name that are about the subject: 3 for `Mint` where money is
    /// the subject, and Linux has the name too. With a focus, less of it asks for more of the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_topic_percent: Option<u8>,
    /// How many of 10,000 ordinary posts contain the name. With a focus, mentions of a name that everyone
    /// uses need more of the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary_posts: Option<u16>,
}
