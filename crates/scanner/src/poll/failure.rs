//! Failures of a poll: of the platform, and of ours.

use std::time::{Duration, Instant};

use platforms::{PollError, Throttled, budget::Left};
use store::feeds::{self, Next, PollOutcome, Trouble};

use super::context::{Poll, SLOW};
use crate::{metrics, watched::classify};

const MAX_BACKOFF: Duration = Duration::from_secs(3_600);
/// Number of refusals in a row that count as temporary.
const SLIPS: u32 = 3;
const STORE_RETRY: Duration = Duration::from_millis(500);
const MAX_STORE_RETRY: Duration = Duration::from_secs(60);

impl Poll {
    /// Keeps the cursor and backs off: this feed alone or, if the platform asks for it, the whole platform.
    pub(super) async fn fail(&self, error: PollError, begin: Instant) {
        let (trouble, reason) = classify(&error);
        if let Some(Throttled { retry_after }) = error.throttled() {
            self.pause_platform(retry_after).await;
        }
        let jitter = rand::random_range(0.8..1.2);
        let wait = match (trouble, error.retry_after()) {
            (Trouble::BudgetSpent, Some(wait)) => wait.mul_f64(rand::random_range(1.0..1.1)),
            (_, asked) => self
                .backoff(&error)
                .mul_f64(jitter)
                .max(asked.unwrap_or_default()),
        };
        let slow = begin.elapsed() > SLOW;
        let error = format!("{:#}", anyhow::Error::from(error));
        self.watched
            .report_failure(&self.feed.name.masked(), reason, &error);
        let next = Next {
            poll_in: wait,
            slow,
            keeps_lease: false,
        };
        self.release_failed(error, trouble, next).await;
    }

    /// Handles a platform's request to slow down. If it states a time, the pause applies to all feeds of its host.
    pub(super) async fn pause_platform(&self, retry_after: Option<Duration>) {
        metrics::THROTTLED
            .with_label_values(&[self.watched.name()])
            .inc();
        if let Some(reset_in) = retry_after.filter(|_| self.watched.is_one_host) {
            let left = Left {
                requests: 0,
                reset_in,
            };
            platforms::Budget::record_remaining(&*self.watched.budget, left).await;
        }
    }

    fn backoff(&self, error: &PollError) -> Duration {
        let doubled = self
            .usual_interval()
            .saturating_mul(1 << self.feed.failure_count.min(16));
        // One refusal may be a mistake of the platform; several in a row are intended.
        let settled = error.is_permanent() && self.feed.failure_count >= SLIPS;
        if settled {
            MAX_BACKOFF
        } else {
            doubled.min(MAX_BACKOFF)
        }
    }

    /// Handles a failure of ours. The cursor stays, so the next poll reads the same posts again soon. But the
    /// platform must not be asked without a pause for posts that cannot be stored.
    pub(super) async fn fail_to_store(&self, error: anyhow::Error) {
        tracing::warn!(feed.name = %self.feed.name.masked(), "cannot store a poll: {error:#}");
        let doubled = STORE_RETRY.saturating_mul(1 << self.feed.failure_count.min(16));
        let wait = doubled.min(self.usual_interval().max(MAX_STORE_RETRY));
        let error = format!("cannot store a poll: {error:#}");
        self.release_failed(error, Trouble::Failing, wait.into())
            .await;
    }

    async fn release_failed(&self, error: String, trouble: Trouble, next: Next) {
        let released = async {
            let _share = self.limits.connections.take(self.account, 1).await;
            let mut conn = self.backbone.pool.get().await?;
            let outcome = PollOutcome::Failed { error, trouble };
            let replica = self.backbone.replica;
            feeds::release(&mut conn, &self.feed.name, replica, &outcome, next).await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = released.await {
            tracing::warn!(feed.name = %self.feed.name.masked(), "cannot end a lease: {:#}", anyhow::Error::from(error));
        }
    }
}
