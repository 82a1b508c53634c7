//! Discourse through its own API: one site.
//!
//! - Topics: `latest.json?order=created&page=0..`, of a category `c/{slug}/{id}/l/latest.json`. Without
//!   `order=created`, lists are by last activity, with pinned topics first. A pinned topic never says anything
//!   about the position of a page. `topic_list.more_topics_url` names the next page and is absent at the end;
//!   it is relative and leaves out `.json`, so only its page number is used. Pages shift while topics arrive.
//! - Lists contain no text: each new topic is read at `t/{id}.json`, whose first post is the topic's. A topic
//!   that cannot be read yet waits in the cursor. 403, 404 and 410 mean that it is deleted or hidden.
//! - `latest` leaves out categories that the site mutes for visitors. [`unlisted`] finds their topics by `posts.json`.
//! - Replies: `posts.json`, newest first, older ones with `before={id}` (inclusive). On older sites a page is a
//!   window of ids, so it may be short, or empty, without being the last. The first posts of topics are in the
//!   list and are skipped.
//! - Lists name categories by number; [`categories`] turns them into names.
//! - Times end in `Z`; those of very old sites have an offset. Deleted posts have `deleted_at` or
//!   `user_deleted`, flagged ones `hidden`.
//! - A site that is not public answers 403 without `Api-Key` and `Api-Username`. Throttling is 429 with
//!   `Retry-After`; 50 requests in 10 s and 200 in a minute per address are usual.
//! - Native ids are numbers of the site, separate for topics and posts: `t/57`, `p/123`.
//!
//! Cost: one request while less than a page of topics came in ten minutes ([`crate::paging`]), one for each new
//! topic, one in ten minutes for unlisted topics, and one an hour for categories.

mod categories;
pub(crate) mod kind;
mod posts;
mod recheck;
mod shape;
mod topics;
mod unlisted;

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use url::Url;

use crate::{
    Adapter, Community, Cursor, Fetch, FetchLimits, PollError, PollLimits, Polled, RecheckResult,
    address::below,
};

/// Enough for a page of a hundred topics, or of fifty posts.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The adapter of kind `discourse`: one site.
pub struct Discourse {
    /// The platform's name, which makes the posts' ids unique.
    name: String,
    base_url: Url,
    key: Option<Key>,
    categories: categories::Cache,
    unlisted: unlisted::LastLook,
    fetch: Arc<dyn Fetch>,
}

/// Credentials for a site that is not public.
pub struct Key {
    pub key: SecretString,
    pub username: String,
}

/// The lists that can be monitored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List<'a> {
    Latest,
    Category { slug: &'a str, id: u64 },
    Posts,
}

impl<'a> List<'a> {
    fn parse(what: &'a str) -> Option<Self> {
        match what {
            "latest" => return Some(Self::Latest),
            "posts" => return Some(Self::Posts),
            _ => {}
        }
        let (slug, id) = what.strip_prefix("c/")?.rsplit_once('/')?;
        let part = |part: &str| {
            (1..=255).contains(&part.len())
                && part
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_%~.".contains(&b))
                && !matches!(part, "." | "..")
        };
        // A subcategory comes after its parent: `c/parent/child/7`.
        let well_formed = slug.split('/').count() <= 3 && slug.split('/').all(part);
        let id = id.parse().ok().filter(|_| well_formed)?;
        Some(Self::Category { slug, id })
    }
}

impl Discourse {
    pub fn new(name: String, base_url: Url, key: Option<Key>, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            name,
            base_url,
            key,
            categories: categories::Cache::default(),
            unlisted: unlisted::LastLook::default(),
            fetch,
        }
    }

    async fn get<T: DeserializeOwned>(&self, url: &Url, what: &str) -> Result<T, PollError> {
        let limits = FetchLimits {
            max_bytes: MAX_BYTES,
            ..FetchLimits::default()
        };
        let mut headers = vec![("accept", "application/json")];
        if let Some(key) = &self.key {
            headers.push(("api-key", key.key.expose_secret()));
            headers.push(("api-username", &key.username));
        }
        let answer = self.fetch.get(url, &headers, &limits).await?;
        match answer.success(what) {
            Ok(answer) => answer.json(),
            Err(PollError::Unauthorized { status }) => Err(self.refused(status)),
            Err(error) => Err(error),
        }
    }

    fn refused(&self, status: u16) -> PollError {
        let advice = match self.key {
            None => "the site asks for an API key: set `token` to it and `client_id` to its user",
            Some(_) => {
                "`token` and `client_id` must be an API key and its user, with a right to read"
            }
        };
        PollError::Refused { status, advice }
    }

    /// The address of the list of all posts, from `before` on.
    fn posts(&self, before: Option<u64>) -> Url {
        let mut url = self.below("posts.json");
        if let Some(before) = before {
            url.query_pairs_mut()
                .append_pair("before", &before.to_string());
        }
        url
    }

    fn below(&self, path: &str) -> Url {
        below(&self.base_url, path)
    }
}

#[async_trait]
impl Adapter for Discourse {
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        match List::parse(what) {
            Some(List::Posts) => posts::poll(self, cursor, limits).await,
            Some(list) => topics::poll(self, list, cursor, limits).await,
            None => Err(PollError::NotFound(what.to_owned())),
        }
    }

    async fn communities(&self, words: &str, limit: usize) -> Result<Vec<Community>, PollError> {
        self.categories.search(self, words, limit).await
    }

    fn has_late_posts(&self) -> bool {
        true
    }

    fn recheck_batch(&self) -> usize {
        recheck::BATCH
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<RecheckResult, PollError> {
        recheck::gone(self, post_ids).await.map(Into::into)
    }
}

/// Returns true if `what` is the newest topics, those of a category, or the newest replies.
pub(crate) fn accepts(what: &str) -> bool {
    List::parse(what).is_some()
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn feeds_are_lists_of_topics_or_the_replies() {
        for right in [
            "latest",
            "posts",
            "c/support/6",
            "c/a-b/c_d/12",
            "c/%E6%97%A5/3",
        ] {
            assert!(accepts(right), "{right}");
        }
        for wrong in [
            "",
            "newest",
            "c/",
            "c/6",
            "c/a/b",
            "c//6",
            "c/../6",
            "c/a?b/6",
            "c/a/b/c/d/6",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
    }
}
