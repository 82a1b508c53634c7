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
    Adapter, Cursor, Fetch, FetchLimits, Fetched, PollError, PollLimits, Polled,
    address::below,
    paging::Pages,
    reading::{Met, Reading},
};
use story::Story;

const PER_PAGE: usize = 25;
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
    #[must_use]
    pub fn new(name: String, base_url: Url, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            name,
            base_url,
            fetch,
        }
    }

    async fn page(&self, what: &str, number: usize) -> Result<Vec<Value>, PollError> {
        let path = match number {
            1 => format!("{what}.json"),
            _ => format!("{what}/page/{number}.json"),
        };
        self.get(&below(&self.base_url, &path), what).await?.json()
    }

    async fn get(&self, url: &Url, what: &str) -> Result<Fetched, PollError> {
        let limits = FetchLimits {
            max_bytes: MAX_BYTES,
            ..FetchLimits::default()
        };
        let headers = [("accept", "application/json")];
        self.fetch.get(url, &headers, &limits).await?.success(what)
    }

    /// Reads a page. Returns true if it has something new.
    fn take(&self, page: &[Value], reading: &mut Reading, pages: &mut Pages) -> bool {
        let mut any_new = false;
        for value in page {
            let story = match Story::read(value) {
                Ok(story) => story,
                Err(error) => {
                    reading.set_aside(value, &error);
                    continue;
                }
            };
            let known = reading.knew(&story.short_id);
            let met = reading.offer(&story.short_id, story.time(), |time| {
                story.post(&self.name, &self.base_url, time)
            });
            pages.met(met, known, story.time());
            any_new |= met == Met::New;
        }
        any_new
    }
}

#[async_trait]
impl Adapter for Lobsters {
    fn kind(&self) -> &'static str {
        "lobsters"
    }

    fn accepts(&self, what: &str) -> bool {
        accepts(what)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        if !accepts(what) {
            return Err(PollError::NotFound(what.to_owned()));
        }
        let mut reading = Reading::new(cursor, limits);
        let mut pages = Pages::new(&reading, limits);
        let mut number = noted(pages.position());
        // Pages shift, so the reading must overlap with the earlier one.
        let mut is_sure = number == 1;
        while pages.go_on() {
            let page = match self.page(what, number).await {
                Ok(page) => page,
                Err(error) => {
                    if pages.fail(error)? {
                        (number, is_sure) = (1, true);
                        continue;
                    }
                    break;
                }
            };
            let any_new = self.take(&page, &mut reading, &mut pages);
            is_sure |= pages.overlaps() || number == 1;
            let is_end = pages.turn();
            if !is_sure {
                number -= 1;
                continue;
            }
            // A short page is the last one, but if it had something new, the next page is read too.
            let is_last = page.is_empty() || (page.len() < PER_PAGE && !any_new);
            if is_end || is_last {
                return Ok(pages.finish(reading, None));
            }
            number += 1;
        }
        Ok(pages.finish(reading, Some(number.to_string())))
    }

    fn has_late_posts(&self) -> bool {
        true
    }

    fn recheck_batch(&self) -> usize {
        recheck::BATCH
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<Vec<String>, PollError> {
        recheck::gone(self, post_ids).await
    }
}

/// The page before that of a position, because stories may have moved.
fn noted(position: Option<&str>) -> usize {
    let number = position.and_then(|number| number.parse::<usize>().ok());
    number.unwrap_or(1).min(MAX_PAGE).saturating_sub(1).max(1)
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
