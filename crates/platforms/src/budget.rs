//! What may be asked of a platform: requests in a time, and posts that cost money.
//!
//! [`Budgeted`] asks the [`Budget`] before each request and tells it what the platform's own headers say.
//! Whoever runs several replicas gives a budget that they share; [`Unlimited`] is for tests and tools.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use url::Url;

use crate::{Fetch, FetchError, FetchLimits, Fetched};

/// One platform's budget, for one credential.
#[async_trait]
pub trait Budget: Send + Sync {
    /// Takes one request; else how long until there may be one.
    async fn request(&self) -> Result<(), Duration>;

    /// Takes up to `wanted` of the posts that are paid for singly; how many there are, or how long until
    /// there may be some.
    async fn posts(&self, wanted: u32) -> Result<u32, Duration>;

    /// Takes back posts that were taken and turned out not to be paid for. Where it does nothing, they
    /// count as spent.
    async fn give_back(&self, posts: u32) {
        let _ = posts;
    }

    /// Hears what the platform says of its own limit.
    async fn told(&self, left: Left);
}

/// What a platform's headers say is left of its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Left {
    pub requests: u32,
    /// When the limit begins anew.
    pub reset_in: Duration,
}

/// No bound at all.
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

    async fn told(&self, _left: Left) {}
}

/// Reads what a platform says of its limit from an answer's headers.
pub type ReadLeft = fn(&Fetched) -> Option<Left>;

/// Fetches within a budget.
pub struct Budgeted {
    fetch: Arc<dyn Fetch>,
    budget: Arc<dyn Budget>,
    left: ReadLeft,
}

impl Budgeted {
    #[must_use]
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
        self.tell(&answer).await;
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
        self.tell(&answer).await;
        Ok(answer)
    }
}

impl Budgeted {
    async fn take(&self) -> Result<(), FetchError> {
        let spent = |retry_after| FetchError::BudgetSpent { retry_after };
        self.budget.request().await.map_err(spent)
    }

    async fn tell(&self, answer: &Fetched) {
        if let Some(left) = (self.left)(answer) {
            self.budget.told(left).await;
        }
    }
}
