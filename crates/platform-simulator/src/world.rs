//! State of the simulator: the posts, the requests, and when each post was served.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use domain::Timestamp;

use super::{
    bill::Till,
    faults::Faults,
    ids,
    instance::Rules,
    names::BLUESKY,
    post::{NewPost, Published, Stored},
    stream::Log,
};

pub(crate) struct World {
    base_url: String,
    state: Mutex<State>,
    /// Reddit's tokens: which ones are valid, and how many seconds new ones live.
    token_number: AtomicI64,
    token_lifetime: AtomicI64,
    /// The clock in microseconds if a test controls it; [`NOT_HELD`] otherwise.
    held: AtomicI64,
    pub(super) faults: Faults,
    pub(super) jetstream: Log,
    pub(super) mastodon: Rules,
    pub(super) x: Till,
}

const NOT_HELD: i64 = i64::MIN;

struct State {
    /// Ascending by id.
    posts: Vec<Stored>,
    next_id: u64,
    requests: BTreeMap<String, u64>,
    /// When each post was first part of a response, in microseconds.
    served: BTreeMap<String, i64>,
}

/// Maximum number of paths with separate counts.
const MAX_PATHS: usize = 10_000;

/// Ids grow with the seconds, so that a restarted simulator does not reuse ids.
fn first_id() -> u64 {
    u64::try_from(Timestamp::now().micros() / 1_000_000).unwrap_or(1)
}

impl World {
    pub(crate) fn new(base_url: String) -> Self {
        Self {
            base_url,
            state: Mutex::new(State {
                posts: Vec::new(),
                next_id: first_id(),
                requests: BTreeMap::new(),
                served: BTreeMap::new(),
            }),
            token_number: AtomicI64::new(0),
            token_lifetime: AtomicI64::new(0),
            held: AtomicI64::new(NOT_HELD),
            faults: Faults::default(),
            jetstream: Log::default(),
            mastodon: Rules::default(),
            x: Till::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let held = self.held.load(Ordering::Relaxed);
        let held = Some(held).filter(|held| *held != NOT_HELD);
        held.and_then(Timestamp::from_micros)
            .unwrap_or_else(Timestamp::now)
    }

    pub(crate) fn set_now(&self, now: Timestamp) {
        self.held.store(now.micros(), Ordering::Relaxed);
    }

    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    pub(crate) fn token_number(&self) -> i64 {
        self.token_number.load(Ordering::Relaxed)
    }

    pub(crate) fn token_lifetime(&self) -> Option<i64> {
        let seconds = self.token_lifetime.load(Ordering::Relaxed);
        Some(seconds).filter(|seconds| *seconds > 0)
    }

    /// Invalidates all tokens, and new ones live so many seconds.
    pub(crate) fn renew_tokens(&self, lifetime_seconds: i64) {
        self.token_number.fetch_add(1, Ordering::Relaxed);
        self.token_lifetime
            .store(lifetime_seconds, Ordering::Relaxed);
    }

    pub(crate) fn publish(&self, posts: Vec<NewPost>) -> Vec<Published> {
        let now = self.now();
        let mut state = self.state();
        let mut published = Vec::new();
        for new in posts {
            let id = state.next_id;
            state.next_id += 1;
            let time = new.time.unwrap_or(now);
            let post_id = self.post_id(&new, id, time);
            published.push(Published {
                id,
                post_id: post_id.clone(),
            });
            let post = Stored {
                id,
                time,
                published: now,
                post_id,
                edited: None,
                deleted: false,
                new: Arc::new(new),
            };
            if post.new.platform == BLUESKY {
                self.jetstream.created(&post, now);
            }
            state.posts.push(post);
        }
        published
    }

    /// Sends posts over the stream without storing them, for load.
    pub(crate) fn stream(&self, posts: Vec<NewPost>) {
        let now = self.now();
        for new in posts {
            let id = {
                let mut state = self.state();
                state.next_id += 1;
                state.next_id - 1
            };
            let post = Stored {
                id,
                time: now,
                published: now,
                post_id: String::new(),
                edited: None,
                deleted: false,
                new: Arc::new(new),
            };
            self.jetstream.created(&post, now);
        }
    }

    fn post_id(&self, new: &NewPost, id: u64, time: Timestamp) -> String {
        if let Some((_, feed)) = new.platform.split_once(':') {
            return self.entry_url(feed, id);
        }
        ids::post_id(&self.base_url, new, id, time)
    }

    pub(crate) fn entry_url(&self, feed: &str, id: u64) -> String {
        format!("{}/feeds/{feed}/{id}", self.base_url)
    }

    pub(crate) fn delete(&self, id: u64) -> bool {
        let now = self.now();
        self.change(id, |post| {
            post.deleted = true;
            if post.new.platform == BLUESKY {
                self.jetstream.deleted(post, now);
            }
        })
    }

    pub(crate) fn set_hidden(&self, id: u64, hidden: bool) -> bool {
        self.change(id, |post| Arc::make_mut(&mut post.new).hidden = hidden)
    }

    pub(crate) fn edit(&self, id: u64, text: &str) -> bool {
        let now = self.now();
        self.change(id, |post| {
            Arc::make_mut(&mut post.new).text = Some(text.to_owned());
            post.edited = Some(now);
            if post.new.platform == BLUESKY {
                self.jetstream.edited(post, now);
            }
        })
    }

    fn change(&self, id: u64, change: impl FnOnce(&mut Stored)) -> bool {
        let mut state = self.state();
        let at = state.posts.binary_search_by_key(&id, |post| post.id);
        let post = at.ok().and_then(|at| state.posts.get_mut(at));
        post.filter(|post| !post.deleted).map(change).is_some()
    }

    pub(crate) fn keep_newest(&self, number: usize) {
        let posts = &mut self.state().posts;
        let mut old = posts.len().saturating_sub(number);
        posts.retain(|post| {
            let is_old = old > 0;
            old = old.saturating_sub(1);
            !is_old || post.new.featured
        });
    }

    pub(crate) fn reset(&self) {
        let mut state = self.state();
        state.posts.clear();
        state.requests.clear();
        state.served.clear();
        self.faults.clear();
        self.jetstream.clear();
    }

    /// The posts of `platform` without comments, newest first.
    pub(crate) fn posts(&self, platform: &str) -> Vec<Stored> {
        self.select(platform, |post| post.new.parent.is_none())
    }

    /// The comments of `platform`, newest first.
    pub(crate) fn comments(&self, platform: &str) -> Vec<Stored> {
        self.select(platform, |post| post.new.parent.is_some())
    }

    /// The existing posts of `platform` that match `wanted`, newest first.
    pub(crate) fn select(&self, platform: &str, wanted: impl Fn(&Stored) -> bool) -> Vec<Stored> {
        let state = self.state();
        let own = |post: &&Stored| post.new.platform == platform && !post.deleted && wanted(post);
        let mut posts: Vec<Stored> = state.posts.iter().filter(own).cloned().collect();
        posts.sort_by_key(|post| std::cmp::Reverse((post.time, post.id)));
        posts
    }

    pub(crate) fn post(&self, id: u64) -> Option<Stored> {
        self.even_deleted(id).filter(|post| !post.deleted)
    }

    /// A post, even if it is deleted.
    pub(crate) fn even_deleted(&self, id: u64) -> Option<Stored> {
        let state = self.state();
        let at = state.posts.binary_search_by_key(&id, |post| post.id);
        at.ok().and_then(|at| state.posts.get(at)).cloned()
    }

    /// The post that a comment finally belongs to; for a post, itself.
    pub(crate) fn story_of(&self, post: &Stored) -> Option<Stored> {
        let mut story = post.clone();
        while let Some(parent) = story.new.parent {
            // A parent has a smaller number; anything else is a cycle.
            story = self.even_deleted(parent).filter(|_| parent < story.id)?;
        }
        Some(story)
    }

    /// Returns true if the item still reads as `null`, and counts this read.
    pub(crate) fn reads_null(&self, id: u64) -> bool {
        let mut state = self.state();
        let post = state.posts.iter_mut().find(|post| post.id == id);
        post.is_some_and(|post| {
            let null = post.new.null_reads > 0;
            if null {
                Arc::make_mut(&mut post.new).null_reads -= 1;
            }
            null
        })
    }

    pub(crate) fn max_id(&self) -> u64 {
        self.state().next_id - 1
    }

    /// Records that these posts are part of a response.
    pub(crate) fn serve<'a>(&self, posts: impl IntoIterator<Item = &'a Stored>) {
        let now = self.now().micros();
        let mut state = self.state();
        for post in posts {
            if !state.served.contains_key(&post.post_id) {
                state.served.insert(post.post_id.clone(), now);
            }
        }
    }

    pub(crate) fn served(&self) -> BTreeMap<String, i64> {
        self.state().served.clone()
    }

    pub(crate) fn count(&self, path: &str) {
        let mut state = self.state();
        if let Some(count) = state.requests.get_mut(path) {
            *count += 1;
        } else if state.requests.len() < MAX_PATHS {
            state.requests.insert(path.to_owned(), 1);
        }
    }

    pub(crate) fn requests(&self) -> BTreeMap<String, u64> {
        self.state().requests.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
