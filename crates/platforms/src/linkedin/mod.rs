//! LinkedIn: the posts of organizations whose administrator is the operator's member, through the Posts API.
//!
//! - `rest/posts?q=author&author=<urn>&count=100&start=N&sortBy=LAST_MODIFIED`, with `LinkedIn-Version` (a
//!   version lives about a year, so it is a setting) and the headers of Rest.li 2.0.
//! - It needs a token with `r_organization_social`, of a member who is administrator, content administrator or
//!   sponsored content poster of the organization. There is no search, and posts of other organizations cannot
//!   be read.
//! - An edited post comes up again, so an old post among the newest says nothing about its neighbours. A post's
//!   modification time is its publication time or later, and no page is read after the first post that was
//!   modified before the overlap.
//! - Pages are counted from the newest post, so a deletion during the reading moves the others up. Each page
//!   starts [`SHARED`] posts before the end of the last one.
//! - `commentary` is "little text" ([`little`]). Times are milliseconds. Drafts, and posts that only
//!   connections or a group may see, are skipped; they come again when they become public.
//! - Limits apply per application, member and UTC day, and are not published; 429 does not say when to retry.
//!
//! Cost: one request while less than 90 posts came in ten minutes, and one for each further 90.

mod element;
pub(crate) mod kind;
mod little;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::null;
use crate::{
    Adapter, Cursor, Fetch, FetchLimits, Fetched, PollError, PollLimits, Polled,
    address::below,
    reading::Reading,
    walk::{Item, Listing, Next, Page, Read, walk},
};
use element::Element;

const PER_PAGE: usize = 100;
/// Number of posts of a page that are on the page before it too.
const SHARED: usize = 10;
const MAX_START: usize = 1_000_000;

/// The adapter of kind `linkedin`.
pub struct LinkedIn {
    base_url: Url,
    token: SecretString,
    version: String,
    fetch: Arc<dyn Fetch>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default, deserialize_with = "null::or_default")]
    paging: Paging,
    elements: Vec<Value>,
}

#[derive(Default, Deserialize)]
struct Paging {
    total: Option<usize>,
}

impl LinkedIn {
    pub fn new(base_url: Url, token: SecretString, version: String, fetch: Arc<dyn Fetch>) -> Self {
        Self {
            base_url,
            token,
            version,
            fetch,
        }
    }
}

/// The posts of an organization. A position is the number of posts before the page.
struct Elements<'a> {
    platform: &'a LinkedIn,
    organization: &'a str,
    window_start: Option<Timestamp>,
}

#[async_trait]
impl Listing for Elements<'_> {
    type At = usize;

    // A short page may be the last one, or lack posts that its reader may not see.
    const PER_PAGE: usize = PER_PAGE;

    fn start(&self, stored: Option<&str>) -> usize {
        let start = stored.and_then(|start| start.parse::<usize>().ok());
        start.unwrap_or(0).min(MAX_START)
    }

    fn window_start(&self) -> Option<Timestamp> {
        self.window_start
    }

    fn before(&self, start: &usize) -> Option<usize> {
        (*start > 0).then(|| start.saturating_sub(PER_PAGE - SHARED))
    }

    async fn page(&mut self, start: &usize) -> Result<Page<usize>, PollError> {
        let mut url = below(&self.platform.base_url, "rest/posts");
        url.query_pairs_mut()
            .append_pair("author", &element::organization_urn(self.organization))
            .append_pair("q", "author")
            .append_pair("count", &PER_PAGE.to_string())
            .append_pair("start", &start.to_string())
            .append_pair("sortBy", "LAST_MODIFIED");
        let authorization = format!("Bearer {}", self.platform.token.expose_secret());
        let headers = [
            ("authorization", authorization.as_str()),
            ("linkedin-version", &self.platform.version),
            ("x-restli-protocol-version", "2.0.0"),
            ("x-restli-method", "FINDER"),
        ];
        let limits = FetchLimits::default();
        let answer = self.platform.fetch.get(&url, &headers, &limits).await?;
        refusal(&answer)?;
        let what = format!("organization/{}", self.organization);
        let Answer { paging, elements } = answer.success(&what)?.json()?;
        let mut modified = elements
            .iter()
            .filter_map(|value| Element::read(value)?.modified());
        let is_past = modified.any(|at| Some(at) < self.window_start);
        let counted_out = (paging.total).is_some_and(|total| start + PER_PAGE >= total);
        let next = if is_past || counted_out {
            Next::End
        } else {
            Next::Page(start + PER_PAGE - SHARED)
        };
        Ok((elements, next))
    }

    fn read(&self, value: &Value) -> Read<'_> {
        let element = Element::read(value).ok_or("not a post of the documented form")?;
        if !element.is_public() {
            return Ok(None);
        }
        let (id, time) = (element.id().to_owned(), element.time());
        let make = move |time| Ok(element.post(time));
        Ok(Some(Item::new(id, time, make)))
    }
}

#[async_trait]
impl Adapter for LinkedIn {
    fn default_interval(&self) -> Duration {
        Duration::from_mins(15)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let organization =
            organization(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        let reading = Reading::new(cursor, limits);
        let mut elements = Elements {
            platform: self,
            organization,
            window_start: reading.kept_window_start(),
        };
        walk(&mut elements, reading, limits).await
    }
}

/// Classifies an error response, with advice for the operator.
fn refusal(answer: &Fetched) -> Result<(), PollError> {
    let advice = match answer.status {
        401 => {
            "the token is wrong or has expired: LinkedIn's live 60 days; put a new one into `token`"
        }
        403 => {
            "the token may not read this organization: it needs `r_organization_social`, and its member a \
             role in the organization (administrator, content administrator)"
        }
        426 => {
            "`api_version` is not served (any more): set it to one of the last twelve months, such as \
             `202610`"
        }
        _ => return Ok(()),
    };
    Err(PollError::Refused {
        status: answer.status,
        advice,
    })
}

/// Returns true if `what` is an organization.
pub(crate) fn accepts(what: &str) -> bool {
    organization(what).is_some()
}

fn organization(what: &str) -> Option<&str> {
    let id = what.strip_prefix("organization/")?;
    let is_id = (1..=20).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_digit());
    is_id.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::accepts;

    #[test]
    fn organizations_are_numbers() {
        assert!(accepts("organization/2414183"));
        for wrong in [
            "newest",
            "organization/",
            "organization/acme",
            "organization/1/posts",
            "organization/123456789012345678901",
            "organization/1%2C2",
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
    }
}
