//! X, through the recent search of its API, version 2. X bills by the post, so it is off unless the operator
//! sets a number of posts per day.
//!
//! - A feed is `search/<query>`, a query in X's syntax. `GET /2/tweets/search/recent` returns the posts of the
//!   last seven days, newest first, 10 to 100 a page, continued with `next_token`; no `data` if nothing
//!   matches. A success may contain some failures in `errors`.
//! - `since_id` starts after an id. Each poll starts two minutes before the newest post, because the index
//!   lags; posts that it meets again on the same day are not billed again. If a poll leaves posts unread
//!   because of the budget or its limits, the next poll reads them before anything newer.
//! - Each page's posts are taken out of the budget before the request, and missing posts are given back. A
//!   response that was cut or could not be read is not given back: X may bill it. Fewer than [`LEAST`] posts
//!   cannot be requested. Names of authors: [`authors`].
//! - Long posts are complete only in `note_tweet`. An edit is a new id, and the same post here, identified by
//!   the first id of its history. Reposts are skipped.
//! - `x-rate-limit-*` has the limit, and its reset in epoch seconds ([`left`]).
//! - Posts that are deleted or made private must be erased. Looking up posts by id costs the same as reading
//!   them.
//!
//! Cost: one request while there is at most one page, and the price of its posts.

mod authors;
pub(crate) mod kind;
mod recheck;
mod stretch;
mod tweet;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use domain::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use self::{
    authors::Authors,
    stretch::Stretch,
    tweet::{Tweet, number, time_of},
};
use crate::null;
use crate::{
    Adapter, Budget, Cursor, Fetch, FetchError, FetchLimits, Fetched, MAX_PAUSE, PollError,
    PollLimits, Polled, RecheckResult, address::below, budget::Left, cursor::Unread, paging,
    reading::Reading,
};

/// Maximum length of a query with the standard access.
const MAX_QUERY_CHARS: usize = 512;
/// Maximum number of posts per page.
const MOST: u32 = 100;
const LEAST: u32 = 10;
/// Pause before a retry when the share of the budget was too small.
const RELEASED: Duration = Duration::from_mins(10);

/// The adapter of kind `x`.
pub struct X {
    base_url: Url,
    token: SecretString,
    fetch: Arc<dyn Fetch>,
    budget: Arc<dyn Budget>,
    authors: Authors,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default, deserialize_with = "null::or_default")]
    data: Vec<Value>,
    #[serde(default, deserialize_with = "null::or_default")]
    errors: Vec<Value>,
    meta: Option<Meta>,
}

impl Answer {
    /// The reported failures that can be read.
    fn problems(&self) -> Vec<Problem> {
        let problems = self.errors.iter();
        problems
            .filter_map(|one| Problem::deserialize(one).ok())
            .collect()
    }
}

#[derive(Deserialize)]
struct Meta {
    next_token: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Problem {
    #[serde(default, deserialize_with = "null::or_default")]
    r#type: String,
    #[serde(default, deserialize_with = "null::or_default")]
    title: String,
    resource_id: Option<String>,
    value: Option<String>,
}

impl X {
    pub fn new(
        base_url: Url,
        token: SecretString,
        fetch: Arc<dyn Fetch>,
        budget: Arc<dyn Budget>,
    ) -> Self {
        Self {
            base_url,
            token,
            fetch,
            budget,
            authors: Authors::default(),
        }
    }

    async fn get(&self, url: &Url, what: &str) -> Result<Answer, PollError> {
        let bearer = format!("Bearer {}", self.token.expose_secret());
        let headers = [("authorization", bearer.as_str())];
        let answer = self
            .fetch
            .get(url, &headers, &FetchLimits::default())
            .await?;
        let refused = |advice| PollError::Refused {
            status: answer.status,
            advice,
        };
        match answer.status {
            401 => {
                return Err(refused(
                    "`token` is not, or no longer, a bearer token of an app",
                ));
            }
            402 => return Err(refused("the account has no credits left")),
            403 => return Err(refused("the account's access does not cover this")),
            429 => {
                let reset = left(&answer).map(|left| left.reset_in);
                let retry_after = answer.retry_after().or(reset);
                return Err(PollError::Throttled { retry_after });
            }
            _ => {}
        }
        let answer: Answer = answer.success(what)?.json()?;
        let problems = answer.problems();
        if answer.data.is_empty()
            && answer.meta.is_none()
            && let Some(problem) = problems.first()
            && problem.resource_id.is_none()
        {
            return Err(PollError::Malformed(format!(
                "a failure without status: {}",
                problem.title
            )));
        }
        for problem in &problems {
            tracing::debug!(?problem, "a part of an answer failed");
        }
        Ok(answer)
    }

    /// Takes at most `wanted` posts out of the budget, and at least `least` or none.
    async fn spend(&self, wanted: u32, least: u32) -> Result<u32, PollError> {
        let spent = |retry_after| PollError::BudgetSpent { retry_after };
        let granted = self.budget.posts(wanted).await.map_err(spent)?.min(wanted);
        if granted < least {
            self.budget.refund(granted).await;
            // The budget that other accounts do not use is released through the day.
            return Err(spent(until_tomorrow(Timestamp::now()).min(RELEASED)));
        }
        Ok(granted)
    }

    /// Gives back the posts of a request without a response. X bills a response even if it could not be read.
    async fn was_not_answered(&self, granted: u32, error: &PollError) {
        let charged = match error {
            PollError::Malformed(_) => true,
            PollError::Unavailable(FetchError::Failed(source)) => {
                let own = source.downcast_ref::<reqwest::Error>();
                !own.is_some_and(reqwest::Error::is_connect)
            }
            PollError::Unavailable(_) => true,
            _ => false,
        };
        if !charged {
            self.budget.refund(granted).await;
        }
    }

    fn address(&self, query: &str, stretch: &Stretch, token: Option<&str>, most: u32) -> Url {
        let mut url = below(&self.base_url, "2/tweets/search/recent");
        let mut pairs = url.query_pairs_mut();
        pairs
            .append_pair("query", query)
            .append_pair("max_results", &most.to_string())
            .append_pair("sort_order", "recency")
            .append_pair(
                "tweet.fields",
                "created_at,author_id,lang,referenced_tweets,note_tweet,edit_history_tweet_ids",
            );
        match (stretch.start, stretch.after) {
            (Some(start), _) => {
                let start = start.to_chrono().format("%Y-%m-%dT%H:%M:%SZ");
                pairs.append_pair("start_time", &start.to_string());
            }
            (None, Some(after)) => {
                pairs.append_pair("since_id", &after.to_string());
            }
            (None, None) => {}
        }
        if let Some(before) = stretch.before {
            pairs.append_pair("until_id", &before.to_string());
        }
        if let Some(token) = token {
            pairs.append_pair("next_token", token);
        }
        drop(pairs);
        url
    }
}

#[async_trait]
impl Adapter for X {
    fn default_interval(&self) -> Duration {
        Duration::from_mins(5)
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        let query = query(what).ok_or_else(|| PollError::NotFound(what.to_owned()))?;
        let roomy = PollLimits {
            max_posts: limits.max_posts.saturating_add(MOST as usize * 2),
            ..limits.clone()
        };
        let mut reading = Reading::new(cursor, &roomy);
        let stretch = Stretch::of(cursor, limits, &mut reading);
        let mut tweets: Vec<Tweet> = Vec::new();
        let mut token: Option<String> = None;
        let mut new = 0;
        let mut pages = 0;
        let begin = Instant::now();
        let mut failure = None;
        // True if a limit or a failure ended the reading before the end of the range.
        let cut = loop {
            let is_late = pages > 0 && begin.elapsed() >= limits.max_time;
            if pages >= limits.max_pages || new >= limits.max_posts || is_late {
                break true;
            }
            let page = async {
                let granted = self.spend(MOST, LEAST).await?;
                let url = self.address(query, &stretch, token.as_deref(), granted);
                let page = self.get(&url, what).await;
                if let Err(error) = &page {
                    self.was_not_answered(granted, error).await;
                }
                Ok((granted, page?))
            };
            let (granted, page) = match page.await {
                Ok(page) => page,
                // The posts read so far are paid for.
                Err(error) if pages > 0 => {
                    tracing::debug!(
                        error = &error as &dyn std::error::Error,
                        "a reading ended early"
                    );
                    failure = Some(error);
                    break true;
                }
                Err(error) => return Err::<Polled, PollError>(error),
            };
            pages += 1;
            let today = Timestamp::now().to_chrono().date_naive();
            let mut charged = 0;
            for value in &page.data {
                charged += 1;
                let tweet = match Tweet::read(value) {
                    Ok(tweet) => tweet,
                    Err(error) => {
                        reading.set_aside(value, &error);
                        continue;
                    }
                };
                if reading.knew(tweet.first_id()) {
                    // A post is billed once a day, and this one was first read on the day it was written.
                    let written = number(&tweet.id).and_then(time_of);
                    charged -=
                        u32::from(written.is_some_and(|at| at.to_chrono().date_naive() == today));
                } else if !reading.is_old(tweet.time()) {
                    // A post that was forgotten because of its age must not count, or a poll would never finish
                    // its stretch.
                    new += 1;
                }
                tweets.push(tweet);
            }
            self.budget.refund(granted.saturating_sub(charged)).await;
            let next = page.meta.and_then(|meta| meta.next_token);
            // A repeated token would cause an endless loop.
            let next = next.filter(|next| !next.is_empty() && Some(next) != token.as_ref());
            // A first poll without a start reads one page.
            if next.is_none() || (stretch.after.is_none() && stretch.start.is_none()) {
                break false;
            }
            token = next;
        };
        let fresh = tweets
            .iter()
            .filter(|tweet| !reading.knows(tweet.first_id()) && !tweet.is_repost());
        let authors: Vec<String> = fresh.filter_map(|tweet| tweet.author_id.clone()).collect();
        authors::name(self, authors.iter().map(String::as_str)).await;
        let ids = tweets.iter().filter_map(|tweet| number(&tweet.id));
        let newest = ids.clone().max();
        let oldest = ids.min();
        for tweet in &tweets {
            let make = |time| {
                let name = tweet
                    .author_id
                    .as_deref()
                    .and_then(|id| self.authors.name(id));
                if tweet.is_repost() {
                    return Ok(None);
                }
                tweet.post(time, name.as_deref())
            };
            reading.offer(tweet.first_id(), tweet.time(), make);
        }
        let anchor = reading
            .cursor
            .anchor
            .as_deref()
            .and_then(number)
            .max(newest);
        reading.cursor.anchor = anchor.map(|id| id.to_string());
        // The unread part overlaps the read part, so none of its posts may be forgotten meanwhile.
        reading.partial = cut;
        if !cut {
            stretch::record_search(&mut reading);
        }
        let earlier = reading.cursor.unread.take();
        let first = reading.is_first() || earlier.as_ref().is_some_and(|earlier| earlier.first);
        let left = oldest.filter(|_| cut).map(|before| Unread {
            after: stretch.after.map(|after| after.to_string()),
            before: before.to_string(),
            first,
            ..Unread::default()
        });
        let floor = reading.floor();
        let mut polled = reading.finish();
        polled.more |= left.is_some();
        polled.next_hint = failure.as_ref().map(paging::pause_after);
        polled.throttled = failure.as_ref().and_then(PollError::throttled);
        // The unread part is older than the posts that are forgotten meanwhile, so the floor rises afterwards.
        let raised = polled
            .cursor
            .floor
            .max(earlier.and_then(|unread| unread.floor));
        match left {
            Some(left) => {
                polled.cursor.floor = floor;
                polled.cursor.unread = Some(Unread {
                    floor: raised,
                    ..left
                });
            }
            None => polled.cursor.floor = raised,
        }
        Ok(polled)
    }

    fn recheck_batch(&self) -> usize {
        recheck::BATCH
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<RecheckResult, PollError> {
        recheck::gone(self, post_ids).await.map(Into::into)
    }
}

/// Remainder of the limit, according to the headers.
pub(crate) fn left(answer: &Fetched) -> Option<Left> {
    let requests = answer
        .header("x-rate-limit-remaining")?
        .trim()
        .parse()
        .ok()?;
    let seconds: i64 = answer.header("x-rate-limit-reset")?.trim().parse().ok()?;
    let reset = Timestamp::from_micros(seconds.checked_mul(1_000_000)?)?;
    Some(Left {
        requests,
        reset_in: reset.since(Timestamp::now()).min(MAX_PAUSE),
    })
}

/// Returns true if `what` is a search.
pub(crate) fn accepts(what: &str) -> bool {
    query(what).is_some()
}

fn query(what: &str) -> Option<&str> {
    let query = what.strip_prefix("search/")?;
    let sane = (1..=MAX_QUERY_CHARS).contains(&query.chars().count())
        && query.trim() == query
        && !query.chars().any(char::is_control);
    sane.then_some(query)
}

/// Time until the budget of the next day.
fn until_tomorrow(now: Timestamp) -> Duration {
    const DAY: i64 = 24 * 3_600;
    let into_day = now.micros().div_euclid(1_000_000).rem_euclid(DAY);
    Duration::from_secs(u64::try_from(DAY - into_day).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feed_is_a_search_of_a_bounded_query() {
        for right in [
            "search/crm",
            "search/\"a b\" OR c -is:retweet lang:en",
            "search/日本",
        ] {
            assert!(accepts(right), "{right}");
        }
        let long = format!("search/{}", "é".repeat(513));
        for wrong in [
            "",
            "newest",
            "search/",
            "search/ a",
            "search/a\u{7}b",
            long.as_str(),
        ] {
            assert!(!accepts(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_day_s_budget_ends_at_midnight() {
        let now: Timestamp = "2026-11-21T23:59:00Z".parse().unwrap();
        assert_eq!(until_tomorrow(now), Duration::from_secs(60));
    }
}
