//! Lobsters (lobste.rs), and sites that run its software, through the JSON form of its pages.
//!
//! - `newest.json` and `newest/page/2.json` from the newest back, of a tag `t/{tag}.json` and
//!   `t/{tag}/page/2.json`: a list of 25 stories, and an empty list past the end. Pages shift while stories
//!   arrive, so stories repeat.
//! - The site caches each page on its own for 45 s. A story may so be on no page for that time: the overlap and
//!   the readings for late posts find it.
//! - Lists leave out deleted and merged stories, and the list of a tag those with a score below -1. A tag that
//!   is added later puts an old story into a list.
//! - `created_at` has the offset of the site. `submitter_user` is a name, in older versions an object.
//! - Comments have no list in JSON.
//! - Throttling is 429 without `Retry-After`: more than 5 requests in a second or 60 in a minute.
//! - Native ids are short words of the site: `q2wv3x`.
//!
//! Cost: one request while less than a page of stories came in ten minutes ([`crate::paging`]), one more when
//! something is new. A re-check takes one request per story.

pub(crate) mod kind;
mod recheck;
mod story;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use url::Url;

use crate::{
    Adapter, Cursor, Fetch, FetchLimits, Fetched, PollError, PollLimits, Polled, RecheckResult,
    address::below,
    reading::Reading,
    walk::{Item, Listing, Next, Page, Read, walk},
};
use story::Story;

const MAX_PAGE: usize = 1_000_000;
/// Enough for a page of 25 stories with long texts.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The adapter of kind `lobsters`: one site.
pub struct Lobsters {
    /// The platform's name, which makes the posts' ids unique.
    name: String,
    base_url: Url,
    fetch: Arc<dyn Fetch>,
}

impl Lobsters {
    pub fn new(name: String, base_url: Url, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            name,
            base_url,
            fetch,
        }
    }

    async fn get(&self, url: &Url, what: &str) -> Result<Fetched, PollError> {
        let limits = FetchLimits {
            max_bytes: MAX_BYTES,
            ..FetchLimits::default()
        };
        let headers = [("accept", "application/json")];
        self.fetch.get(url, &headers, &limits).await?.success(what)
    }
}

/// A list of stories. Its positions are page numbers.
struct Stories<'a> {
    site: &'a Lobsters,
    what: &'a str,
}

#[async_trait]
impl Listing for Stories<'_> {
    type At = usize;

    const PER_PAGE: usize = 25;

    fn start(&self, stored: Option<&str>) -> usize {
        // The page before, because stories may have moved.
        let number = stored.and_then(|number| number.parse::<usize>().ok());
        number.unwrap_or(1).min(MAX_PAGE).saturating_sub(1).max(1)
    }

    fn before(&self, number: &usize) -> Option<usize> {
        (*number > 1).then(|| number - 1)
    }

    async fn page(&mut self, number: &usize) -> Result<Page<usize>, PollError> {
        let path = match number {
            1 => format!("{}.json", self.what),
            _ => format!("{}/page/{number}.json", self.what),
        };
        let url = below(&self.site.base_url, &path);
        let stories = self.site.get(&url, self.what).await?.json()?;
        Ok((stories, Next::Page(number + 1)))
    }

    fn read(&self, value: &Value) -> Read<'_> {
        let site = self.site;
        let story = Story::read(value)?;
        let (id, time) = (story.short_id.clone(), story.time());
        let make = move |time| story.post(&site.name, &site.base_url, time);
        Ok(Some(Item::new(id, time, make)))
    }
}

#[async_trait]
impl Adapter for Lobsters {
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        if !accepts(what) {
            return Err(PollError::NotFound(what.to_owned()));
        }
        let mut stories = Stories { site: self, what };
        walk(&mut stories, Reading::new(cursor, limits), limits).await
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

/// Returns true if `what` is the newest stories, or those with one tag.
fn accepts(what: &str) -> bool {
    let is_tag = |tag: &str| {
        (1..=64).contains(&tag.len())
            && tag
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"-_+".contains(&b))
    };
    what == "newest" || what.strip_prefix("t/").is_some_and(is_tag)
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn feeds_are_the_newest_stories_or_those_of_a_tag() {
        for right in ["newest", "t/rust", "t/c++", "t/vibe-coding", "t/page"] {
            assert!(accepts(right), "{right}");
        }
        for wrong in [
            "",
            "active",
            "t/",
            "t/a,b",
            "t/..",
            "t/a/b",
            "newest/page/2",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
    }
}
