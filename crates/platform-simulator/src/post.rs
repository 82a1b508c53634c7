//! Posts, before and after they are published.

use std::{sync::Arc, time::Duration};

use domain::Timestamp;
use serde::{Deserialize, Serialize};

/// A post to publish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPost {
    /// The kind of a platform, or `feed:<name>`.
    pub platform: String,
    /// Lemmy: the community. Hacker News: `job` makes a job. LinkedIn: the organization's number. Facebook: the
    /// Page's number.
    #[serde(default)]
    pub community: Option<String>,
    pub title: String,
    /// Markdown on Lemmy, else HTML.
    #[serde(default)]
    pub text: Option<String>,
    pub author: String,
    /// Default: now.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// Link target of the post.
    #[serde(default)]
    pub url: Option<String>,
    /// Pinned: Lemmy lists it first, and `keep_newest` keeps it. LinkedIn: a draft.
    #[serde(default)]
    pub featured: bool,
    /// Hacker News: time until the search knows it.
    #[serde(default)]
    pub index_lag_ms: u64,
    /// Hacker News does not show it until it is revealed, and Discourse shows it without its text.
    #[serde(default)]
    pub hidden: bool,
    /// Hacker News: number of reads that return `null` at first.
    #[serde(default)]
    pub null_reads: u32,
    /// The simulator's number of the post that this comments on.
    #[serde(default)]
    pub parent: Option<u64>,
}

/// A post that was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The simulator's number of the post, for deleting it.
    pub id: u64,
    /// The `Post.id` that Earshot assigns to it, with the platform names of the simulator's settings.
    pub post_id: String,
}

/// A stored post.
#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub(crate) id: u64,
    /// Shared, because lists copy it.
    pub(crate) new: Arc<NewPost>,
    pub(crate) time: Timestamp,
    pub(crate) published: Timestamp,
    pub(crate) post_id: String,
    pub(crate) edited: Option<Timestamp>,
    /// Its author deleted it; some platforms still show that it existed.
    pub(crate) deleted: bool,
}

impl Stored {
    /// Returns true if Hacker News' search knows it.
    pub(crate) fn is_indexed(&self, now: Timestamp) -> bool {
        let lag = Duration::from_millis(self.new.index_lag_ms);
        self.published.plus(lag) <= now
    }

    pub(crate) fn seconds(&self) -> i64 {
        self.time.micros().div_euclid(1_000_000)
    }
}
