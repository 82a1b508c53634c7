//! Lemmy, through version 3 of its API (0.17 to 0.19, still served by 1.0).
//!
//! - `post/list?sort=New&limit=50` (more than 50 is refused): pages with `page=1..`, on 0.19 with `page_cursor`
//!   from the last response's `next_page`. Past the end the list is empty. Pages shift while posts arrive, so
//!   posts repeat.
//! - Pinned ("featured") posts come first regardless of their age: they say nothing about the position of a
//!   page. Federated posts arrive late, with the time of writing.
//! - Times have no zone on 0.17 and 0.18 and mean UTC; later ones end in `Z`.
//! - `post.id` is specific to the instance; `ap_id` is the same wherever the post is federated to. It is used
//!   unchanged, with any host, because the operator chose the instance.
//! - `comment/list` pages only with `page`. A comment's title is its post's.
//! - Lists leave out deleted and removed posts; `post?id=` and `comment?id=` still return them, with `deleted`
//!   or `removed` and without their text.
//! - Throttling is 429, or on old instances 400 with `rate_limit_error`.
//!
//! Cost: one request while less than a page of posts came in ten minutes ([`crate::paging`]), one more when
//! something is new. A re-check takes one request per post.

pub(crate) mod kind;
mod recheck;
mod search;
mod view;

use std::{fmt, sync::Arc};

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::{
    Adapter, Community, Cursor, Fetch, FetchLimits, Fetched, PollError, PollLimits, Polled,
    RecheckResult,
    address::below,
    reading::Reading,
    walk::{Item, Listing, Next, Page, Read, walk},
};
use view::View;

const PER_PAGE: usize = 50;
const MAX_PAGE: usize = 1_000_000;
/// Maximum length of a page cursor that is stored.
const MAX_CURSOR_BYTES: usize = 256;
/// Enough for a page of fifty posts, each with its author and community.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The adapter of kind `lemmy`: one instance.
pub struct Lemmy {
    base_url: Url,
    token: Option<SecretString>,
    fetch: Arc<dyn Fetch>,
}

/// A list that can be monitored: posts or comments, of the instance or of one community.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct List<'a> {
    community: Option<&'a str>,
    comments: bool,
}

/// A page of a list: its number and, if the instance returns one, its cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Position {
    number: usize,
    next: Option<String>,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            number: 1,
            next: None,
        }
    }
}

impl Position {
    /// Parses `7` or `7:P1a2b`. A position noted by page number starts a page earlier, because posts may have
    /// moved.
    fn read(text: Option<&str>) -> Self {
        let Some(text) = text else {
            return Self::default();
        };
        let (number, next) = match text.split_once(':') {
            Some((number, next)) => (number, Some(next.to_owned())),
            None => (text, None),
        };
        let number = number.parse().unwrap_or(1).clamp(1, MAX_PAGE);
        Self {
            number: if next.is_none() {
                (number - 1).max(1)
            } else {
                number
            },
            next,
        }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = self
            .next
            .as_deref()
            .filter(|next| next.len() <= MAX_CURSOR_BYTES);
        match next {
            Some(next) => write!(f, "{}:{next}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    posts: Option<Vec<Value>>,
    comments: Option<Vec<Value>>,
    next_page: Option<String>,
}

impl<'a> List<'a> {
    fn parse(what: &'a str) -> Option<Self> {
        match what {
            "newest" => return Some(Self::of_instance(false)),
            "comments" => return Some(Self::of_instance(true)),
            _ => {}
        }
        let place = what.strip_prefix("c/")?;
        let (community, comments) = match place.strip_suffix("/comments") {
            Some(community) => (community, true),
            None => (place, false),
        };
        is_community(community).then_some(Self {
            community: Some(community),
            comments,
        })
    }

    fn of_instance(comments: bool) -> Self {
        Self {
            community: None,
            comments,
        }
    }
}

impl Lemmy {
    pub fn new(base_url: Url, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            base_url,
            token: None,
            fetch,
        }
    }

    /// Sets the token that an instance requires if it is not public (0.19 and later).
    #[must_use]
    pub fn with_token(mut self, token: Option<SecretString>) -> Self {
        self.token = token;
        self
    }

    async fn get(&self, url: &Url) -> Result<Fetched, PollError> {
        let limits = FetchLimits {
            max_bytes: MAX_BYTES,
            ..FetchLimits::default()
        };
        let token = self.token.as_ref();
        let token = token.map(|token| format!("Bearer {}", token.expose_secret()));
        let header = token.as_deref().map(|token| ("authorization", token));
        let headers: Vec<(&str, &str)> = header.into_iter().collect();
        Ok(self.fetch.get(url, &headers, &limits).await?)
    }
}

/// The views of a list.
struct Views<'a> {
    instance: &'a Lemmy,
    list: List<'a>,
}

#[async_trait]
impl Listing for Views<'_> {
    type At = Position;

    const PER_PAGE: usize = PER_PAGE;

    fn start(&self, stored: Option<&str>) -> Position {
        Position::read(stored)
    }

    fn before(&self, at: &Position) -> Option<Position> {
        (at.number > 1 && at.next.is_none()).then(|| Position {
            number: at.number - 1,
            next: None,
        })
    }

    fn fallback(&self, at: &Position) -> Option<Position> {
        at.next.is_some().then_some(Position {
            number: at.number,
            next: None,
        })
    }

    async fn page(&mut self, at: &Position) -> Result<Page<Position>, PollError> {
        let List {
            community,
            comments,
        } = self.list;
        let listed = if comments { "comment" } else { "post" };
        let mut url = below(&self.instance.base_url, &format!("api/v3/{listed}/list"));
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("sort", "New")
                .append_pair("limit", &PER_PAGE.to_string());
            match community {
                Some(community) => query
                    .append_pair("type_", "All")
                    .append_pair("community_name", community),
                None => query.append_pair("type_", "Local"),
            };
            match &at.next {
                Some(cursor) => query.append_pair("page_cursor", cursor),
                None => query.append_pair("page", &at.number.to_string()),
            };
        }
        let answer = self.instance.get(&url).await?;
        let what = community.unwrap_or("newest");
        refusal(&answer, what)?;
        let answer: Answer = answer.success(what)?.json()?;
        let views = if comments {
            answer.comments
        } else {
            answer.posts
        };
        let views = views.ok_or_else(|| PollError::Malformed("no list".to_owned()))?;
        let repeats = at.number > 1 && answer.next_page == at.next;
        let next = match (&at.next, answer.next_page) {
            // With cursors, the list ends where no next cursor is returned.
            (Some(_), None) => Next::End,
            (Some(_), _) if repeats => Next::Stalled,
            (_, next) => Next::Page(Position {
                number: at.number + 1,
                next,
            }),
        };
        Ok((views, next))
    }

    fn read(&self, value: &Value) -> Read<'_> {
        let base_url = &self.instance.base_url;
        let view = View::read(value, self.list.comments)?;
        Ok(view.map(|view| Item {
            is_pinned: view.is_pinned(),
            gone: view.is_gone().then(|| view.id(base_url)),
            ..Item::new(view.native_id(), view.time(), move |time| {
                view.post(base_url, time)
            })
        }))
    }
}

#[async_trait]
impl Adapter for Lemmy {
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let list = List::parse(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        let mut views = Views {
            instance: self,
            list,
        };
        walk(&mut views, Reading::new(cursor, limits), limits).await
    }

    async fn communities(&self, words: &str, limit: usize) -> Result<Vec<Community>, PollError> {
        search::communities(self, words, limit).await
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

/// Checks the error in a body, in addition to the status.
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
        Ok("couldnt_find_community" | "couldnt_find_object" | "not_found") => {
            Err(PollError::NotFound(what.to_owned()))
        }
        Ok("instance_is_private" | "not_logged_in") => Err(PollError::Unauthorized {
            status: answer.status,
        }),
        _ => Ok(()),
    }
}

/// Returns true if `what` is the newest posts or comments, of the instance or of a community.
pub(crate) fn accepts(what: &str) -> bool {
    List::parse(what).is_some()
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
    use super::{accepts, is_community};

    #[test]
    fn feeds_are_posts_or_comments() {
        for right in [
            "newest",
            "comments",
            "c/rust",
            "c/rust@a.b/comments",
            "c/comments",
            "c/bestcomments",
            "c/comments/comments",
        ] {
            assert!(accepts(right), "{right}");
        }
        for wrong in [
            "",
            "newest/comments",
            "c/",
            "c//comments",
            "c/a/b",
            "/comments",
            "xcomments",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
    }

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
