//! Lemmy, by version 3 of its API (0.17 to 0.19, still served by 1.0).
//!
//! - `post/list?sort=New&limit=50` (more than 50 is refused): pages by `page=1..`, on 0.19 by
//!   `page_cursor` from the last answer's `next_page`. Past the end the list is empty. Pages shift while
//!   posts arrive, so posts repeat.
//! - Pinned ("featured") posts come first whatever their age: they say nothing about where a page stands.
//!   Federated posts arrive late, with the time of their writing.
//! - Times have no zone on 0.17 and 0.18 and mean UTC; later ones end in `Z`.
//! - `post.id` is the instance's own; `ap_id` is the same wherever the post is federated to. It is taken
//!   as it is, whatever its host: the operator chose the instance.
//! - Throttling is 429, or on old instances 400 with `rate_limit_error`.
//!
//! Cost: one request while nothing is new, one more when something is.

mod view;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::Deserialize;
use url::Url;

use crate::{
    Adapter, Cursor, Fetch, FetchLimits, Fetched, Gap, PollError, PollLimits, Polled,
    cursor::OVERLAP_ITEMS,
    hackernews::below,
    reading::{Met, Reading},
};

const PER_PAGE: usize = 50;
/// A page of fifty posts, each with its author and community.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The adapter of kind `lemmy`: one instance.
pub struct Lemmy {
    base_url: Url,
    fetch: Arc<dyn Fetch>,
}

#[derive(Deserialize)]
struct Page {
    posts: Vec<serde_json::Value>,
    next_page: Option<String>,
}

impl Lemmy {
    #[must_use]
    pub fn new(base_url: Url, fetch: Arc<dyn Fetch>) -> Self {
        Self { base_url, fetch }
    }

    async fn page(
        &self,
        what: &str,
        number: usize,
        cursor: Option<&str>,
    ) -> Result<Page, PollError> {
        let mut url = below(&self.base_url, "api/v3/post/list");
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("sort", "New")
                .append_pair("limit", &PER_PAGE.to_string());
            match what.strip_prefix("c/") {
                Some(community) => query
                    .append_pair("type_", "All")
                    .append_pair("community_name", community),
                None => query.append_pair("type_", "Local"),
            };
            match cursor {
                Some(cursor) => query.append_pair("page_cursor", cursor),
                None => query.append_pair("page", &number.to_string()),
            };
        }
        let limits = FetchLimits {
            max_bytes: MAX_BYTES,
            ..FetchLimits::default()
        };
        let answer = self.fetch.get(&url, &[], &limits).await?;
        refusal(&answer, what)?;
        answer.success(what)?.json()
    }
}

#[async_trait]
impl Adapter for Lemmy {
    fn kind(&self) -> &'static str {
        "lemmy"
    }

    fn accepts(&self, what: &str) -> bool {
        accepts(what)
    }

    fn default_interval(&self) -> Duration {
        Duration::from_secs(60)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        if !self.accepts(what) {
            return Err(PollError::NotFound(what.to_owned()));
        }
        let mut reading = Reading::new(cursor, limits);
        let mut known = 0;
        let mut read = 0;
        let mut next: Option<String> = None;
        for number in 1..=limits.max_pages {
            let page = self.page(what, number, next.as_deref()).await?;
            let mut any_recent = false;
            let mut any_unpinned = false;
            let mut any_new = false;
            for value in &page.posts {
                let Some(view) = view::View::read(value) else {
                    continue;
                };
                let native = view.native_id();
                let known_before = reading.knew(&native);
                let met =
                    reading.offer(&native, view.time(), |time| view.post(&self.base_url, time));
                if !view.is_pinned() {
                    any_unpinned = true;
                    any_recent |= met != Met::Old;
                    any_new |= met == Met::New;
                    known += usize::from(known_before);
                }
                read += 1;
            }
            let exhausted =
                page.posts.is_empty() || (number > 1 && page.next_page == next && next.is_some());
            let past_the_past = any_unpinned && !any_recent;
            let enough = reading.is_first() && limits.since.is_none() && read >= limits.max_posts;
            // A short page is the last one; read on all the same when it brought something.
            let ended = page.posts.len() < PER_PAGE && !any_new;
            let overlaps = known >= OVERLAP_ITEMS && !any_new;
            if exhausted || ended || past_the_past || enough || overlaps {
                return Ok(reading.finish());
            }
            // By cursor, the end of the list is the end of the cursors.
            if next.is_some() && page.next_page.is_none() {
                return Ok(reading.finish());
            }
            next = page.next_page;
        }
        if !reading.is_first() || limits.since.is_some() {
            reading.gap = Some(Gap {
                from: cursor.and_then(Cursor::high_water).or(reading.floor()),
                to: None,
                reason: "more pages than one poll may read",
            });
        }
        Ok(reading.finish())
    }
}

/// What Lemmy says in a body beside the status.
fn refusal(answer: &Fetched, what: &str) -> Result<(), PollError> {
    #[derive(Deserialize)]
    struct Refusal {
        error: String,
    }
    if answer.status < 400 || answer.body.len() > 4_096 {
        return Ok(());
    }
    let error = answer.json::<Refusal>().map(|refusal| refusal.error);
    match error.as_deref() {
        Ok("rate_limit_error" | "rate_limit") => Err(PollError::Throttled {
            retry_after: answer.retry_after(),
        }),
        Ok("couldnt_find_community" | "couldnt_find_object") => {
            Err(PollError::NotFound(what.to_owned()))
        }
        Ok("instance_is_private" | "not_logged_in") => Err(PollError::Unauthorized {
            status: answer.status,
        }),
        _ => Ok(()),
    }
}

/// Whether `what` is the newest posts or a community.
pub(crate) fn accepts(what: &str) -> bool {
    what == "newest" || what.strip_prefix("c/").is_some_and(is_community)
}

/// `name` or `name@instance`.
fn is_community(community: &str) -> bool {
    let (name, instance) = match community.split_once('@') {
        Some((name, instance)) => (name, Some(instance)),
        None => (community, None),
    };
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    (1..=255).contains(&name.len())
        && name.bytes().all(word)
        && instance.is_none_or(|host| {
            (1..=253).contains(&host.len()) && host.bytes().all(|b| word(b) || b".-:".contains(&b))
        })
}

#[cfg(test)]
mod tests {
    use super::is_community;

    #[test]
    fn communities_are_names_with_or_without_an_instance() {
        for right in [
            "rust",
            "Self_Hosted",
            "rust@programming.dev",
            "a@localhost:80",
        ] {
            assert!(is_community(right), "{right}");
        }
        for wrong in ["", "@a", "a@", "a/b", "a b", "a@b/c", "a@b@c"] {
            assert!(!is_community(wrong), "{wrong}");
        }
    }
}
