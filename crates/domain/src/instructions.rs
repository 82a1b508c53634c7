//! Instructions: the criteria of a Manager, compiled from pages or written by hand.

use serde::{Deserialize, Serialize};

use crate::FeedName;

mod parse;
mod sells;
mod term;

pub use parse::parse;
pub(crate) use sells::parse as parse_sells;
pub use sells::{MAX_PHRASES, MAX_SUMMARY_CHARS, Sells};
pub use term::term;

pub const MAX_FEEDS: usize = 200;
pub const MAX_TERMS: usize = 500;
pub const MAX_GROUPS: usize = 20;
pub const MAX_RELATED_TERMS: usize = 100;
pub const MAX_OFFERS: usize = 50;
pub const MAX_TERM_CHARS: usize = 100;
/// Bound of weights and thresholds: their sums stay exact enough to compare.
pub const MAX_WEIGHT: f64 = 1e6;
pub const MAX_BRIEF_CHARS: usize = 2_000;

/// The reason why a post is worth attention, in addition to its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Focus {
    /// Someone wants to choose, buy or hire.
    Sales,
    /// A competitor is mentioned, compared or rated.
    Competitor,
    /// Someone complains about the customer.
    Crisis,
}

impl Focus {
    pub const ALL: [Self; 3] = [Self::Sales, Self::Competitor, Self::Crisis];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sales => "SALES",
            Self::Competitor => "COMPETITOR",
            Self::Crisis => "CRISIS",
        }
    }
}

/// The input of the scanner. Two Managers with the same instructions make the same decisions, regardless of who
/// wrote them (MATCHING.md part 1).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Instructions {
    /// The feeds to watch.
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
    /// Any of these excludes the post.
    #[serde(default)]
    pub exclude: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<Focus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Topic scores that one in ten, in a hundred and in a thousand ordinary posts reach. With a focus they
    /// show how unusual a post's topic is; without them typical values are assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_scores: Option<[f64; 3]>,
    /// Words that ordinary posts about the topic contain. With a focus they show whether a mention of a name is
    /// about the topic. They never make a post match alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_terms: Vec<String>,
    /// Words for the customer's products, weights 0 to 1. With the focus SALES, a post that contains none of
    /// them scores low.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offers: Vec<Term>,
    /// Posts are compared by meaning with what the customer sells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sells: Option<Sells>,
    /// Description of relevant posts, in a sentence or two of plain words.
    #[serde(default)]
    pub brief: String,
}

/// A word or phrase and its weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Term {
    pub text: String,
    pub weight: f64,
}

/// The owner of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum NameKind {
    /// The customer's own brand, product or handle.
    Own,
    /// Someone else's: a competitor's, or one the customer entered.
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
    /// If given, the name counts only if one of these occurs too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<String>,
    /// Percentage of ordinary posts with the name that are about the subject: 3 for `Mint` if money is the
    /// subject, because Linux has the name too. With a focus, a lower value requires more of the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_topic_percent: Option<u8>,
    /// Number of posts with the name among 10,000 ordinary posts. With a focus, mentions of a common name
    /// require more of the topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordinary_posts: Option<u16>,
}
