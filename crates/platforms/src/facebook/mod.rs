//! Facebook: the feed of Pages that the operator manages, through the Graph API.
//!
//! - `{version}/{page}/feed?fields=…&limit=100&since=<epoch>`, newest first, with a Page access token that has
//!   `pages_read_engagement`, and `pages_read_user_content` for visitors' posts. There is no search, and
//!   reading other Pages needs a permission that is rarely granted.
//! - `message` is absent for actions of the Page; `story` describes these. Times have no colon in their offset
//!   (`+0000`). Ids are `<page>_<post>`.
//! - The address of the next page is in `paging.next`, sometimes with the token. It is followed only on the
//!   same host and the same feed, and without the token, which goes in a header. So the token appears in no
//!   address, error or log.
//! - Errors have status 400 and a code of the API; [`refusal`] classifies them.
//! - `X-App-Usage`, `X-Page-Usage` and `X-Business-Use-Case-Usage` say how much of a limit is used, in percent.
//!   At 100 the API refuses requests, so none is made until the limit has reset.
//!
//! Cost: one request while less than 100 posts came in ten minutes, and one for each further 100.

mod item;
pub(crate) mod kind;
mod refusal;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::null;
use crate::{
    Adapter, Cursor, Fetch, FetchLimits, PollError, PollLimits, Polled,
    address::below,
    cursor::to_seconds,
    reading::Reading,
    text,
    walk::{self, Listing, Next, Page, Read, walk},
};
use item::Item;
pub(crate) use refusal::left;

const PER_PAGE: usize = 100;
const FIELDS: &str = "id,message,story,created_time,updated_time,permalink_url,from";

/// The adapter of kind `facebook`.
pub struct Facebook {
    /// The platform's name, which makes the posts' ids unique.
    name: String,
    base_url: Url,
    token: SecretString,
    /// API version; `None` for the application's default.
    version: Option<String>,
    fetch: Arc<dyn Fetch>,
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Value>,
    #[serde(default, deserialize_with = "null::or_default")]
    paging: Paging,
}

#[derive(Default, Deserialize)]
struct Paging {
    next: Option<String>,
}

impl Facebook {
    pub fn new(
        name: String,
        base_url: Url,
        token: SecretString,
        version: Option<String>,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        Self {
            name,
            base_url,
            token,
            version,
            fetch,
        }
    }

    fn first_url(&self, page: &str, since: Option<i64>) -> Url {
        let path = match &self.version {
            Some(version) => format!("{version}/{page}/feed"),
            None => format!("{page}/feed"),
        };
        let mut url = below(&self.base_url, &path);
        {
            let mut query = url.query_pairs_mut();
            query
                .append_pair("fields", FIELDS)
                .append_pair("limit", &PER_PAGE.to_string());
            if let Some(since) = since {
                query.append_pair("since", &since.to_string());
            }
        }
        url
    }

    /// The address of the next page; `None` if the token must not be sent there.
    fn next_url(&self, page: &str, next: &str) -> Option<Url> {
        let mut url = Url::parse(next).ok()?;
        let plain = url.username().is_empty() && url.password().is_none();
        // The version may differ: the platform inserts the version that it used.
        let same = url.origin() == self.base_url.origin()
            && url.path().ends_with(&format!("/{page}/feed"));
        if !(plain && same) {
            return None;
        }
        let kept: Vec<(String, String)> = url
            .query_pairs()
            .filter(|(key, _)| key != "access_token")
            .map(|(key, value)| (key.into_owned(), value.into_owned()))
            .collect();
        url.query_pairs_mut().clear().extend_pairs(kept);
        url.set_fragment(None);
        Some(url)
    }
}

/// The feed of a Page. Its positions are addresses.
struct Feed<'a> {
    platform: &'a Facebook,
    what: &'a str,
    page_id: &'a str,
    window_start: Option<Timestamp>,
    /// Time until the limit resets, if the last answer used it up.
    wait: Option<Duration>,
}

#[async_trait]
impl Listing for Feed<'_> {
    type At = Url;

    fn start(&self, stored: Option<&str>) -> Url {
        let stored = stored.and_then(|url| self.platform.next_url(self.page_id, url));
        // A second earlier, in case the platform reads it as "after".
        let since = self.window_start.map(|start| to_seconds(start) - 1);
        stored.unwrap_or_else(|| self.platform.first_url(self.page_id, since))
    }

    fn window_start(&self) -> Option<Timestamp> {
        self.window_start
    }

    async fn page(&mut self, url: &Url) -> Result<Page<Url>, PollError> {
        let platform = self.platform;
        let authorization = format!("Bearer {}", platform.token.expose_secret());
        let headers = [("authorization", authorization.as_str())];
        let limits = FetchLimits::default();
        let answer = platform.fetch.get(url, &headers, &limits).await?;
        refusal::check(&answer, self.what)?;
        let wait = left(&answer).map(|left| left.reset_in);
        let answer = answer.success(self.what)?;
        // Leaves out the parser's message, because it quotes the response.
        let Answer { data, paging } = text::repair::read_json(&answer.body).map_err(|error| {
            let place = format!("line {} column {}", error.line(), error.column());
            PollError::Malformed(format!("not a list of posts, at {place}"))
        })?;
        self.wait = wait;
        let is_recent = |item: Item| {
            let period = item.time().zip(self.window_start);
            period.is_none_or(|(time, start)| time >= start)
        };
        let any_recent = data.iter().filter_map(Item::read).any(is_recent);
        let Some(next) = paging.next.filter(|_| any_recent) else {
            return Ok((data, Next::End));
        };
        let next = platform.next_url(self.page_id, &next);
        let next = match next.filter(|next| next != url) {
            Some(next) if wait.is_some() => Next::Later(next),
            Some(next) => Next::Page(next),
            None => {
                let problem = "the next page is this one, another feed's, or on another host";
                Next::Nowhere(PollError::Malformed(problem.to_owned()))
            }
        };
        Ok((data, next))
    }

    fn read(&self, value: &Value) -> Read<'_> {
        let Self {
            platform, page_id, ..
        } = *self;
        let item = Item::read(value).ok_or("not a post of the documented form")?;
        let (id, time) = (item.id().to_owned(), item.time());
        let make = move |time| Ok(item.post(&platform.name, page_id, time));
        Ok(Some(walk::Item::new(id, time, make)))
    }
}

#[async_trait]
impl Adapter for Facebook {
    fn default_interval(&self) -> Duration {
        Duration::from_mins(5)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let page_id = page_id(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        let reading = Reading::new(cursor, limits);
        let mut feed = Feed {
            platform: self,
            what,
            page_id,
            window_start: reading.kept_window_start(),
            wait: None,
        };
        let mut polled = walk(&mut feed, reading, limits).await?;
        polled.next_hint = polled.next_hint.max(feed.wait);
        Ok(polled)
    }

    /// A Page may date a post back.
    fn has_late_posts(&self) -> bool {
        true
    }
}

/// Returns true if `what` is a Page.
pub(crate) fn accepts(what: &str) -> bool {
    page_id(what).is_some()
}

/// A Page's number, or its name in addresses.
fn page_id(what: &str) -> Option<&str> {
    let id = what.strip_prefix("page/")?;
    let sane = |b: u8| b.is_ascii_alphanumeric() || b == b'.' || b == b'-';
    let is_id = (1..=80).contains(&id.len())
        && id.bytes().all(sane)
        && id.starts_with(|c: char| c.is_ascii_alphanumeric());
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Facebook, accepts};
    use crate::Direct;

    #[test]
    fn pages_are_numbers_or_names() {
        assert!(accepts("page/123456789012345") && accepts("page/acme.kettles"));
        for wrong in [
            "newest", "page/", "page/..", "page/a/b", "page/a?b", "page/a b",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
    }

    #[test]
    fn next_page_must_be_of_the_same_feed_and_has_no_token() {
        let base = "https://graph.facebook.com".parse().unwrap();
        let fetch = Arc::new(Direct::new(None).unwrap());
        let facebook = Facebook::new("facebook".into(), base, "s3cret".into(), None, fetch);
        let next = |url: &str| facebook.next_url("12", url).map(String::from);
        assert_eq!(
            next(
                "https://graph.facebook.com/v25.0/12/feed?access_token=s3cret&limit=2&after=a%3D#x"
            ),
            Some("https://graph.facebook.com/v25.0/12/feed?limit=2&after=a%3D".to_owned())
        );
        for other in [
            "https://graph.facebook.example/v25.0/12/feed?after=a",
            "http://graph.facebook.com/v25.0/12/feed?after=a",
            "https://graph.facebook.com:8443/v25.0/12/feed?after=a",
            "https://x:y@graph.facebook.com/v25.0/12/feed?after=a",
            "https://graph.facebook.com/v25.0/13/feed?after=a",
            "https://graph.facebook.com/v25.0/112/feed?after=a",
            "https://graph.facebook.com/v25.0/12/feed/x?after=a",
            "/v25.0/12/feed?after=a",
        ] {
            assert_eq!(next(other), None, "{other}");
        }
    }
}
