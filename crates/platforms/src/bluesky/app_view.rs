//! The network's public API: handles of authors, and which posts still exist.
//!
//! Handles are optional: a poll makes at most [`MAX_CALLS`] calls of one second, and none for a while after a
//! failure. An author without a known handle has the DID as name. The same response says which authors do not
//! want to be shown to logged-out users.

use std::{
    collections::{HashMap, HashSet},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::Post;
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::{event::is_did, post::is_hidden};
use crate::{Fetch, FetchLimits, PollError, adapter::refuse_if_all_gone, address::below, text};

/// Maximum number of authors or posts in one call.
pub(super) const PER_CALL: usize = 25;
const MAX_CALLS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_secs(30);
/// Maximum number of authors in each half of the cache, `recent` and `older`.
const MAX_KNOWN: usize = 50_000;

pub(super) struct AppView {
    url: Url,
    fetch: Arc<dyn Fetch>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The recently used authors, and the older ones, which are evicted first.
    recent: HashMap<String, Author>,
    older: HashMap<String, Author>,
    paused_until: Option<Instant>,
}

#[derive(Debug, Clone, Default)]
struct Author {
    handle: Option<String>,
    hidden: bool,
}

#[derive(Deserialize)]
struct Profile {
    did: String,
    handle: Option<String>,
    labels: Option<Value>,
}

impl AppView {
    pub(super) fn new(url: Url, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            url,
            fetch,
            known: Mutex::default(),
        }
    }

    /// Adds the authors' handles, and drops the posts of hidden authors. Never fails.
    pub(super) async fn name_authors(&self, posts: &mut Vec<Post>) {
        let unknown = self.unknown(posts);
        for some in unknown.chunks(PER_CALL).take(MAX_CALLS) {
            match self.profiles(some).await {
                Ok(profiles) => self.learn(some, profiles),
                Err(error) => {
                    tracing::debug!(error = %error, "could not look up handles");
                    self.known().paused_until = Some(Instant::now() + PAUSE);
                    break;
                }
            }
        }
        let mut known = self.known();
        posts.retain_mut(|post| {
            let author = known.get(&post.user.id).unwrap_or_default();
            if let Some(handle) = author.handle {
                post.user.name = handle;
            }
            !author.hidden
        });
    }

    /// Updates the handle of a known author.
    pub(super) fn rename(&self, did: &str, handle: &str) {
        let mut known = self.known();
        if let Some(mut author) = known.get(did) {
            author.handle = sane_handle(handle);
            known.put(did.to_owned(), author);
        }
    }

    /// Returns those of the posts, by URI, that do not exist (any more). A post counts as missing only if two
    /// responses leave it out, because one response may be short for other reasons.
    pub(super) async fn missing(&self, uris: &[String]) -> Result<Vec<String>, PollError> {
        let mut missing = Vec::new();
        for some in uris.chunks(PER_CALL) {
            let absent = self.absent(some).await?;
            missing.extend(self.absent(&absent).await?);
        }
        refuse_if_all_gone(uris.len(), missing.len())?;
        Ok(missing)
    }

    async fn absent(&self, uris: &[String]) -> Result<Vec<String>, PollError> {
        #[derive(Deserialize)]
        struct Answer {
            posts: Vec<Value>,
        }
        if uris.is_empty() {
            return Ok(Vec::new());
        }
        let mut url = below(&self.url, "xrpc/app.bsky.feed.getPosts");
        let pairs = uris.iter().map(|uri| ("uris", uri));
        url.query_pairs_mut().extend_pairs(pairs);
        let answer = self.fetch.get(&url, &[], &FetchLimits::default()).await?;
        let answer: Answer = answer.success("getPosts")?.json()?;
        let there: HashSet<&str> = answer
            .posts
            .iter()
            .filter_map(|post| post["uri"].as_str())
            .collect();
        let absent = uris.iter().filter(|uri| !there.contains(uri.as_str()));
        Ok(absent.cloned().collect())
    }

    fn unknown(&self, posts: &[Post]) -> Vec<String> {
        let mut known = self.known();
        if known
            .paused_until
            .is_some_and(|until| Instant::now() < until)
        {
            return Vec::new();
        }
        let mut asked = HashSet::new();
        let dids = posts.iter().map(|post| &post.user.id);
        dids.filter(|did| known.get(did).is_none() && asked.insert(did.as_str()))
            .cloned()
            .collect()
    }

    async fn profiles(&self, dids: &[String]) -> Result<Vec<Profile>, PollError> {
        #[derive(Deserialize)]
        struct Answer {
            profiles: Vec<Value>,
        }
        let mut url = below(&self.url, "xrpc/app.bsky.actor.getProfiles");
        let pairs = dids.iter().map(|did| ("actors", did));
        url.query_pairs_mut().extend_pairs(pairs);
        let limits = FetchLimits {
            timeout: PATIENCE,
            ..FetchLimits::default()
        };
        let answer = self.fetch.get(&url, &[], &limits).await?;
        let answer: Answer = answer.success("getProfiles")?.json()?;
        let profiles = answer.profiles.iter();
        // One that cannot be read keeps no other from its name.
        let readable = profiles.filter_map(|one| Profile::deserialize(one).ok());
        Ok(readable.collect())
    }

    /// Authors that the response leaves out have no handle: they are not requested again.
    fn learn(&self, asked: &[String], profiles: Vec<Profile>) {
        let mut known = self.known();
        for did in asked {
            known.put(did.clone(), Author::default());
        }
        for profile in profiles
            .into_iter()
            .filter(|profile| asked.contains(&profile.did))
        {
            let author = Author {
                handle: profile.handle.as_deref().and_then(sane_handle),
                hidden: is_hidden(profile.labels.as_ref()),
            };
            known.put(profile.did, author);
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn get(&mut self, did: &str) -> Option<Author> {
        if let Some(author) = self.recent.get(did) {
            return Some(author.clone());
        }
        let author = self.older.remove(did)?;
        self.put(did.to_owned(), author.clone());
        Some(author)
    }

    fn put(&mut self, did: String, author: Author) {
        if !is_did(&did) {
            return;
        }
        if self.recent.len() >= MAX_KNOWN {
            self.older = mem::take(&mut self.recent);
        }
        self.recent.insert(did, author);
    }
}

fn sane_handle(handle: &str) -> Option<String> {
    let handle = text::line(handle);
    (!handle.is_empty() && handle != "handle.invalid" && handle.len() <= 253).then_some(handle)
}
