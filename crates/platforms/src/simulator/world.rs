//! What the simulator knows: the posts, what was asked for, and what was served when.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::Timestamp;
use serde::{Deserialize, Serialize};

use super::{HACKER_NEWS, faults::Faults};

/// A post to publish.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewPost {
    /// `hackernews`, `lemmy`, or `feed:<name>`.
    pub platform: String,
    /// On Lemmy the community; on Hacker News `job` makes a job.
    #[serde(default)]
    pub community: Option<String>,
    pub title: String,
    /// Markdown on Lemmy, else HTML.
    #[serde(default)]
    pub text: Option<String>,
    pub author: String,
    /// Now, when left out.
    #[serde(default)]
    pub time: Option<Timestamp>,
    /// What the post links to.
    #[serde(default)]
    pub url: Option<String>,
    /// Lemmy: pinned to the top.
    #[serde(default)]
    pub featured: bool,
    /// Hacker News: how long the search does not know it.
    #[serde(default)]
    pub index_lag_ms: u64,
    /// Hacker News: how often its item reads `null` at first.
    #[serde(default)]
    pub null_reads: u32,
}

/// A post that was published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// The simulator's own number, by which it is deleted.
    pub id: u64,
    /// The `Post.id` that Earshot gives it, with the platform names of the simulator's settings.
    pub post_id: String,
}

/// A post that stands.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    pub(super) id: u64,
    pub(super) new: NewPost,
    pub(super) time: Timestamp,
    pub(super) published: Timestamp,
    pub(super) post_id: String,
}

pub(super) struct World {
    base_url: String,
    state: Mutex<State>,
    pub(super) faults: Faults,
}

struct State {
    /// By id, ascending.
    posts: Vec<Stored>,
    next_id: u64,
    requests: BTreeMap<String, u64>,
    /// When each post was first part of an answer, in microseconds.
    served: BTreeMap<String, i64>,
}

/// Paths counted apart from each other.
const MAX_PATHS: usize = 10_000;

/// Ids grow with the seconds, so that a simulator started anew does not reuse those of its last life.
fn first_id() -> u64 {
    u64::try_from(Timestamp::now().micros() / 1_000_000).unwrap_or(1)
}

impl World {
    pub(super) fn new(base_url: String) -> Self {
        Self {
            base_url,
            state: Mutex::new(State {
                posts: Vec::new(),
                next_id: first_id(),
                requests: BTreeMap::new(),
                served: BTreeMap::new(),
            }),
            faults: Faults::default(),
        }
    }

    pub(super) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(super) fn publish(&self, posts: Vec<NewPost>) -> Vec<Published> {
        let now = Timestamp::now();
        let mut state = self.state();
        let mut published = Vec::new();
        for new in posts {
            let id = state.next_id;
            state.next_id += 1;
            let post_id = self.post_id(&new.platform, id);
            published.push(Published {
                id,
                post_id: post_id.clone(),
            });
            state.posts.push(Stored {
                id,
                time: new.time.unwrap_or(now),
                published: now,
                post_id,
                new,
            });
        }
        published
    }

    fn post_id(&self, platform: &str, id: u64) -> String {
        match platform.split_once(':') {
            Some((_, name)) => self.entry_url(name, id),
            None if platform == HACKER_NEWS => format!("{HACKER_NEWS}:{id}"),
            None => format!("{}/lemmy/post/{id}", self.base_url),
        }
    }

    pub(super) fn entry_url(&self, feed: &str, id: u64) -> String {
        format!("{}/feeds/{feed}/{id}", self.base_url)
    }

    pub(super) fn delete(&self, id: u64) -> bool {
        let mut state = self.state();
        let before = state.posts.len();
        state.posts.retain(|post| post.id != id);
        state.posts.len() < before
    }

    pub(super) fn reset(&self) {
        let mut state = self.state();
        state.posts.clear();
        state.requests.clear();
        state.served.clear();
        self.faults.clear();
    }

    /// The posts of `platform`, newest first.
    pub(super) fn posts(&self, platform: &str) -> Vec<Stored> {
        let mut posts: Vec<Stored> = self
            .state()
            .posts
            .iter()
            .filter(|post| post.new.platform == platform)
            .cloned()
            .collect();
        posts.sort_by_key(|post| std::cmp::Reverse((post.time, post.id)));
        posts
    }

    pub(super) fn post(&self, id: u64) -> Option<Stored> {
        self.state()
            .posts
            .iter()
            .find(|post| post.id == id)
            .cloned()
    }

    /// Whether the item still reads as `null`, counting this read.
    pub(super) fn reads_null(&self, id: u64) -> bool {
        let mut state = self.state();
        let post = state.posts.iter_mut().find(|post| post.id == id);
        post.is_some_and(|post| {
            let null = post.new.null_reads > 0;
            post.new.null_reads = post.new.null_reads.saturating_sub(1);
            null
        })
    }

    pub(super) fn max_id(&self) -> u64 {
        self.state().next_id - 1
    }

    /// Notes that these posts are part of an answer.
    pub(super) fn serve<'a>(&self, posts: impl IntoIterator<Item = &'a Stored>) {
        let now = Timestamp::now().micros();
        let mut state = self.state();
        for post in posts {
            if !state.served.contains_key(&post.post_id) {
                state.served.insert(post.post_id.clone(), now);
            }
        }
    }

    pub(super) fn served(&self) -> BTreeMap<String, i64> {
        self.state().served.clone()
    }

    pub(super) fn count(&self, path: &str) {
        let mut state = self.state();
        if let Some(count) = state.requests.get_mut(path) {
            *count += 1;
        } else if state.requests.len() < MAX_PATHS {
            state.requests.insert(path.to_owned(), 1);
        }
    }

    pub(super) fn requests(&self) -> BTreeMap<String, u64> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stored {
    /// Whether Hacker News' search knows it.
    pub(super) fn is_indexed(&self) -> bool {
        let lag = Duration::from_millis(self.new.index_lag_ms);
        self.published.plus(lag) <= Timestamp::now()
    }

    pub(super) fn seconds(&self) -> i64 {
        self.time.micros().div_euclid(1_000_000)
    }
}
