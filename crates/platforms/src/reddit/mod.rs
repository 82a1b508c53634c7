//! Reddit, through its OAuth API with the operator's own application.
//!
//! - Access needs Reddit's approval, commercial use a contract. A token comes from a client id and secret
//!   ([`token`]); requests identify themselves as `<platform>:<app id>:<version> (by /u/<name>)`.
//! - `r/{a+b}/new` and `r/{a+b}/comments`, `limit=100&raw_json=1` (without it text is escaped), newest first,
//!   older ones with `after={fullname}`, back over 1,000 items and no further: older posts are a gap. `before`
//!   is never used, because it returns nothing for ever once its post is deleted; if `after` returns nothing, a
//!   post before that one is used instead.
//! - One private, banned or missing subreddit can turn a whole group into 403 or 404: the group is halved until
//!   the others answer ([`group`]).
//! - Ids are fullnames: `t3_…` posts, `t1_…` comments. `created_utc` is in seconds, as a float; `created` is
//!   hours off. Deleted authors are `[deleted]`, deleted texts `[deleted]` or `[removed]`, and
//!   `removed_by_category` says who removed a post.
//! - Limits are reported by `x-ratelimit-remaining`, a float, and `x-ratelimit-reset`, seconds left.
//! - The terms ask that content deleted there is deleted here: `api/info` returns the state of 100 posts at a
//!   time.
//!
//! Cost: one request while less than a page of posts came in ten minutes ([`crate::paging`]).

mod group;
pub(crate) mod kind;
mod list;
mod listing;
mod recheck;
mod search;
mod thing;
mod token;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use url::Url;

use crate::{
    Adapter, Community, Cursor, Fetch, FetchLimits, Fetched, MAX_PAUSE, PollError, PollLimits,
    Polled, RecheckResult, address::below, budget::Left,
};
use list::List;

/// Enough for a page of a hundred posts, with all their previews and media.
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// The adapter of kind `reddit`.
pub struct Reddit {
    /// The platform's name, which makes the posts' ids unique.
    name: String,
    base_url: Url,
    token: token::Holder,
    unreadable: group::Unreadable,
    fetch: Arc<dyn Fetch>,
}

impl Reddit {
    pub fn new(
        name: String,
        base_url: Url,
        client_id: String,
        client_secret: SecretString,
        fetch: Arc<dyn Fetch>,
    ) -> Self {
        Self {
            name,
            token: token::Holder::new(&base_url, client_id, client_secret),
            base_url,
            unreadable: group::Unreadable::default(),
            fetch,
        }
    }

    /// Sends a request with a token, and again with a new token if Reddit rejects the old one.
    async fn get<T: DeserializeOwned>(&self, url: &Url, what: &str) -> Result<T, PollError> {
        let limits = FetchLimits {
            max_bytes: MAX_BYTES,
            ..FetchLimits::default()
        };
        let mut token = self.token.get(&*self.fetch).await?;
        let mut renewed = false;
        loop {
            let bearer = format!("bearer {}", token.expose_secret());
            let headers = [("authorization", bearer.as_str())];
            let answer = self.fetch.get(url, &headers, &limits).await?;
            if answer.status == 401 && !renewed {
                renewed = true;
                token = self.token.renewed(&token, &*self.fetch).await?;
                continue;
            }
            return check(answer, what)?.json();
        }
    }

    fn below(&self, path: &str) -> Url {
        let mut url = below(&self.base_url, path);
        url.query_pairs_mut().append_pair("raw_json", "1");
        url
    }
}

/// Returns the response, or the error that it means.
fn check(answer: Fetched, what: &str) -> Result<Fetched, PollError> {
    // A subreddit that does not exist redirects to a search for it.
    if answer.final_url.path().contains("/subreddits/search") && what != search::WHAT {
        return Err(PollError::NotFound(what.to_owned()));
    }
    let reset = left(&answer).map(|left| left.reset_in);
    match answer.success(what) {
        Err(PollError::Throttled { retry_after }) => Err(PollError::Throttled {
            retry_after: retry_after.or(reset),
        }),
        Err(PollError::Unauthorized { status: 401 }) => Err(PollError::Refused {
            status: 401,
            advice: "Reddit takes no token of `client_id` any more; look at the application there",
        }),
        Err(PollError::Unauthorized { status }) => Err(PollError::Refused {
            status,
            advice: "private, banned or quarantined there, or `user_agent` or the application is \
                     blocked",
        }),
        other => other,
    }
}

/// Remainder of the limit, according to the headers.
pub(crate) fn left(answer: &Fetched) -> Option<Left> {
    let number = |name: &str| {
        let number: f64 = answer.header(name)?.trim().parse().ok()?;
        (0.0..=1e9).contains(&number).then_some(number)
    };
    let whole = Duration::from_secs_f64(number("x-ratelimit-remaining")?).as_secs();
    Some(Left {
        requests: u32::try_from(whole).unwrap_or(u32::MAX),
        reset_in: Duration::from_secs_f64(number("x-ratelimit-reset")?).min(MAX_PAUSE),
    })
}

#[async_trait]
impl Adapter for Reddit {
    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let list = List::parse(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        group::poll(self, &list, cursor, limits).await
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
        recheck::check(self, post_ids).await
    }
}

/// Returns true if `what` is one or several subreddits, or their comments.
pub(crate) fn accepts(what: &str) -> bool {
    List::parse(what).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_requests_are_parsed_as_a_float() {
        let answer = |remaining: &str, reset: &str| Fetched {
            status: 200,
            headers: vec![
                ("x-ratelimit-remaining".into(), remaining.into()),
                ("x-ratelimit-reset".into(), reset.into()),
            ],
            body: Vec::new(),
            final_url: "https://oauth.reddit.com/".parse().unwrap(),
        };
        let told = left(&answer("997.0", "15")).unwrap();
        assert_eq!((told.requests, told.reset_in.as_secs()), (997, 15));
        for (remaining, reset) in [
            ("", "1"),
            ("-1", "1"),
            ("NaN", "1"),
            ("1", "inf"),
            ("1e99", "1"),
        ] {
            assert_eq!(left(&answer(remaining, reset)), None, "{remaining} {reset}");
        }
    }
}
