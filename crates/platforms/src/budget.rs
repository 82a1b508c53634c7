//! Limits on what Earshot requests from a platform: requests per time, and posts that cost money.
//!
//! [`Budgeted`] asks the [`Budget`] before each request and reports to it what the platform's headers say.
//! Several replicas use a shared budget; [`Unlimited`] is for tests and tools.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use url::Url;

use crate::{Fetch, FetchError, FetchLimits, Fetched};

/// One platform's budget, for one credential.
#[async_trait]
pub trait Budget: Send + Sync {
    /// Takes one request, or returns how long until one is available.
    async fn request(&self) -> Result<(), Duration>;

    /// Takes at most `wanted` of the posts that are billed individually. Returns how many it took, or how long
    /// until some are available.
    async fn posts(&self, wanted: u32) -> Result<u32, Duration>;

    /// Gives back posts that turned out not to be billed. If the implementation does nothing, they count as
    /// spent.
    async fn refund(&self, posts: u32) {
        let _ = posts;
    }

    /// Records what the platform says about its own limit.
    async fn record_remaining(&self, left: Left);
}

/// Remainder of the platform's limit, according to its headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub requests: u32,
    /// Time until the limit resets.
    pub reset_in: Duration,
}

/// No limit at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unlimited;

#[async_trait]
impl Budget for Unlimited {
    async fn request(&self) -> Result<(), Duration> {
        Ok(())
    }

    async fn posts(&self, wanted: u32) -> Result<u32, Duration> {
        Ok(wanted)
    }

    async fn record_remaining(&self, _left: Left) {}
}

/// Reads the state of a platform's limit from the headers of a response.
pub type ReadLeft = fn(&Fetched) -> Option<Left>;

/// Fetches within a budget.
pub struct Budgeted {
    fetch: Arc<dyn Fetch>,
    budget: Arc<dyn Budget>,
    left: ReadLeft,
}

impl Budgeted {
    pub fn new(fetch: Arc<dyn Fetch>, budget: Arc<dyn Budget>, left: ReadLeft) -> Self {
        Self {
            fetch,
            budget,
            left,
        }
    }
}

#[async_trait]
impl Fetch for Budgeted {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.take().await?;
        let answer = self.fetch.get(url, headers, limits).await?;
        self.report(&answer).await;
        Ok(answer)
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.take().await?;
        let answer = self.fetch.post_form(url, headers, form, limits).await?;
        self.report(&answer).await;
        Ok(answer)
    }
}

impl Budgeted {
    async fn take(&self) -> Result<(), FetchError> {
        let spent = |retry_after| FetchError::BudgetSpent { retry_after };
        self.budget.request().await.map_err(spent)
    }

    async fn report(&self, answer: &Fetched) {
        if let Some(left) = (self.left)(answer) {
            self.budget.record_remaining(left).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MAX_PAUSE, facebook, mastodon, reddit, x};

    /// A firewall in front of the platform may write such headers, too.
    #[test]
    fn reset_that_headers_tell_is_limited() {
        let day = domain::Timestamp::now().plus(Duration::from_hours(24));
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mastodon = ("x-ratelimit-reset", day.to_string());
        let reddit = ("x-ratelimit-reset", "86400".to_owned());
        let x = ("x-rate-limit-reset", (day.micros() / 1_000_000).to_string());
        let facebook = (
            "x-app-usage",
            r#"{"call_count":100,"estimated_time_to_regain_access":1440}"#.to_owned(),
        );
        let platforms: [(ReadLeft, _); 4] = [
            (mastodon::left, mastodon),
            (reddit::left, reddit),
            (x::left, x),
            (facebook::left, facebook),
        ];
        for (left, (name, value)) in platforms {
            let remaining = ["x-ratelimit-remaining", "x-rate-limit-remaining"];
            let mut headers = remaining.map(|name| header(name, "0")).to_vec();
            headers.push(header(name, &value));
            let answer = Fetched {
                status: 429,
                headers,
                body: Vec::new(),
                final_url: "https://forum.example/".parse().unwrap(),
            };
            let left = left(&answer).unwrap();
            assert_eq!((left.requests, left.reset_in), (0, MAX_PAUSE), "{value}");
        }
    }
}
