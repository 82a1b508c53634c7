//! Counts of the hostile account's requests.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;

use super::api::Answer;

/// Outcomes of requests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    accepted: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    pub(super) fn note(&self, answer: &Result<Answer>) {
        let count = match answer {
            Ok(answer) if answer.status < 300 => &self.accepted,
            // 503: a list that ran too long.
            Ok(answer) if answer.status < 500 || answer.status == 503 => &self.refused,
            _ => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Returns the requests that were refused, by a limit or as invalid.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the requests without an answer, or with one that blames the service.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}
