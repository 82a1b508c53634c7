//! The kinds of platforms, and the rules of their settings: one block for each kind.
//!
//! All else about a kind is in its folder in the crate `platforms`, which this crate must not know.

use domain::manager::SourceType::{self, Forum, Microblog, Network};

use super::{access::Access, setting::choice};

/// Rules of a kind's settings.
pub(super) struct Rules {
    /// Source type of its platforms; `None` if the operator must choose it.
    pub(super) source: Option<SourceType>,
    pub(super) default_base_url: Option<&'static str>,
    pub(super) has_items_url: bool,
    /// A setting that is required, next to `source` and `base_url`.
    pub(super) required: Option<Required>,
    /// A setting that has a prescribed form.
    pub(super) form: Option<Form>,
}

pub(super) struct Required {
    pub(super) name: &'static str,
    pub(super) is_set: fn(&Access) -> bool,
}

pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) expected: &'static str,
    pub(super) value: fn(&Access) -> Option<&str>,
    pub(super) holds: fn(&str) -> bool,
}

/// A kind that needs the address of an instance.
const INSTANCE: Rules = Rules {
    source: Some(Forum),
    default_base_url: None,
    has_items_url: false,
    required: None,
    form: None,
};

macro_rules! kinds {
    ($($variant:ident = $word:literal: $rules:expr,)+) => {
        choice! {
            /// Kind of a platform's adapter.
            pub enum Kind { $($variant = $word,)+ }
        }

        impl Kind {
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            pub(super) fn rules(self) -> Rules {
                match self { $(Self::$variant => $rules,)+ }
            }

            /// The kind with this word in the configuration.
            pub fn named(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == word)
            }
        }
    };
}

kinds! {
    HackerNews = "hackernews": Rules {
        default_base_url: Some("https://hn.algolia.com/api/v1"),
        has_items_url: true,
        ..INSTANCE
    },
    Lemmy = "lemmy": INSTANCE,
    Lobsters = "lobsters": Rules {
        default_base_url: Some("https://lobste.rs"),
        ..INSTANCE
    },
    Discourse = "discourse": INSTANCE,
    Reddit = "reddit": Rules {
        default_base_url: Some("https://oauth.reddit.com"),
        required: Some(Required {
            name: "user_agent",
            is_set: |access| access.user_agent.is_some(),
        }),
        form: Some(Form {
            name: "user_agent",
            expected: "`<platform>:<app id>:<version> (by /u/<name>)`",
            value: |access| access.user_agent.as_deref(),
            holds: is_reddit_user_agent,
        }),
        ..INSTANCE
    },
    Bluesky = "bluesky": Rules {
        source: Some(Microblog),
        default_base_url: Some("wss://jetstream2.us-east.bsky.network"),
        has_items_url: true,
        ..INSTANCE
    },
    Mastodon = "mastodon": Rules {
        source: Some(Microblog),
        ..INSTANCE
    },
    X = "x": Rules {
        source: Some(Microblog),
        default_base_url: Some("https://api.x.com"),
        required: Some(Required {
            name: "posts_per_day",
            is_set: |access| access.posts_per_day.is_some(),
        }),
        ..INSTANCE
    },
    LinkedIn = "linkedin": Rules {
        source: Some(Network),
        default_base_url: Some("https://api.linkedin.com"),
        required: Some(Required {
            name: "api_version",
            is_set: |access| access.api_version.is_some(),
        }),
        form: Some(Form {
            name: "api_version",
            expected: "six digits such as `202610`",
            value: |access| access.api_version.as_deref(),
            holds: is_year_and_month,
        }),
        ..INSTANCE
    },
    Facebook = "facebook": Rules {
        source: Some(Network),
        default_base_url: Some("https://graph.facebook.com"),
        form: Some(Form {
            name: "api_version",
            expected: "a version such as `v25.0`",
            value: |access| access.api_version.as_deref(),
            holds: is_graph_version,
        }),
        ..INSTANCE
    },
    Feed = "feed": Rules {
        source: None,
        ..INSTANCE
    },
}

impl Kind {
    /// Source type of platforms of this kind; a feed may have any.
    pub fn source(self) -> Option<SourceType> {
        self.rules().source
    }
}

fn is_year_and_month(version: &str) -> bool {
    version.len() == 6 && version.bytes().all(|b| b.is_ascii_digit())
}

fn is_graph_version(version: &str) -> bool {
    let number =
        |part: &str| (1..=3).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    let parts = version
        .strip_prefix('v')
        .and_then(|rest| rest.split_once('.'));
    parts.is_some_and(|(major, minor)| number(major) && number(minor))
}

/// Returns true if a User-Agent has the form that Reddit prescribes.
fn is_reddit_user_agent(agent: &str) -> bool {
    let Some((program, rest)) = agent.split_once(" (by /u/") else {
        return false;
    };
    let named = rest.strip_suffix(')').is_some_and(|name| !name.is_empty());
    let parts: Vec<&str> = program.split(':').collect();
    named && parts.len() == 3 && parts.iter().all(|part| !part.trim().is_empty())
}
