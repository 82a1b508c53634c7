//! A configured platform, with the scanner's state for it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use platforms::{AddressKey, Fetch, Platform, Platforms, PollError, Settings, SettingsError};
use store::{Pool, feeds::Trouble};

use crate::{budget::Budget, metrics};

/// Interval between two log lines about one platform's failures.
const LINE_EVERY: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) platform: Platform,
    pub(crate) budget: Arc<Budget>,
    /// True if one host serves all its feeds, with one credential.
    pub(crate) is_one_host: bool,
    /// True if posts that the platform reports as deleted are blanked.
    pub(crate) erases: bool,
    /// True if the scanner asks the platform for deletions.
    pub(crate) rechecks: bool,
    failures: Arc<Mutex<Failures>>,
}

/// Failures that were not logged yet.
#[derive(Default)]
struct Failures {
    last_line: Option<Instant>,
    unlogged: u64,
}

impl Failures {
    /// Returns the number of failures since the last line if a failure is to be logged now.
    fn next_line(&mut self, now: Instant) -> Option<u64> {
        let is_recent = |line: Instant| now.saturating_duration_since(line) < LINE_EVERY;
        if self.last_line.is_some_and(is_recent) {
            self.unlogged += 1;
            return None;
        }
        self.last_line = Some(now);
        Some(std::mem::take(&mut self.unlogged))
    }
}

impl Watched {
    /// Creates the platform of `settings`, with requests within its budget.
    pub(crate) fn new(
        settings: &Settings,
        guarded: &Arc<dyn Fetch>,
        address_key: &AddressKey,
        pool: &Pool,
    ) -> Result<Self, SettingsError> {
        let budget = Arc::new(Budget::new(pool.clone(), settings));
        let given = Arc::clone(&budget);
        let platforms = Platforms::with_budgets(
            std::slice::from_ref(settings),
            guarded,
            address_key,
            move |_| Arc::clone(&given) as Arc<dyn platforms::Budget>,
        )?;
        let platform = platforms
            .get(&settings.name)
            .cloned()
            .ok_or_else(|| SettingsError::Name(settings.name.clone()))?;
        metrics::begin(&settings.name);
        let erase = settings.access.erase_deleted;
        let rechecks = erase.unwrap_or(platform.kind.must_erase);
        Ok(Self {
            budget,
            is_one_host: settings.base_url.is_some(),
            erases: erase.unwrap_or(true),
            rechecks: rechecks && platform.adapter.recheck_batch() > 0,
            platform,
            failures: Arc::default(),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.platform.name
    }

    /// Counts and logs the failure of a feed, by its masked name: as a warning at most once a minute for each
    /// platform, and otherwise at debug level.
    pub(crate) fn report_failure(&self, feed: &str, reason: &'static str, error: &str) {
        metrics::POLL_FAILURES
            .with_label_values(&[self.name(), reason])
            .inc();
        let unlogged = {
            let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
            failures.next_line(Instant::now())
        };
        let platform = self.name();
        match unlogged {
            Some(unlogged) => {
                tracing::warn!(
                    platform,
                    feed.name = feed,
                    reason,
                    error,
                    unlogged,
                    "polls fail"
                );
            }
            None => tracing::debug!(platform, feed.name = feed, reason, error, "a poll failed"),
        }
    }
}

/// Returns what a failed poll means for its feed, and its label in metrics.
pub(crate) fn classify(error: &PollError) -> (Trouble, &'static str) {
    match error {
        PollError::Throttled { .. } => (Trouble::Failing, "throttled"),
        PollError::BudgetSpent { .. } => (Trouble::BudgetSpent, "budget_spent"),
        PollError::NotFound(_) => (Trouble::Blocked, "not_found"),
        PollError::Unauthorized { .. } | PollError::Refused { .. } => {
            (Trouble::Blocked, "unauthorized")
        }
        PollError::Forbidden(_) => (Trouble::Blocked, "forbidden"),
        PollError::Unavailable(_) => (Trouble::Failing, "unavailable"),
        PollError::Status { .. } => (Trouble::Failing, "status"),
        PollError::Malformed(_) => (Trouble::Failing, "malformed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platform_failure_is_logged_once_a_minute() {
        let mut failures = Failures::default();
        let begin = Instant::now();
        // 500 feeds, each polled every two seconds, for two and a half minutes.
        let mut lines = Vec::new();
        for second in 0..75 {
            for _ in 0..500 {
                let now = begin + Duration::from_secs(second * 2);
                lines.extend(
                    failures
                        .next_line(now)
                        .map(|unlogged| (second * 2, unlogged)),
                );
            }
        }
        assert_eq!(lines, [(0, 0), (60, 14_999), (120, 14_999)]);
    }
}
