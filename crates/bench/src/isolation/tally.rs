//! Counts of the hostile account's requests, and of the reasons that it was given.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use anyhow::Result;
use serde_json::Value;

use super::api::Answer;

/// Different reasons that are kept.
const MOST_REASONS: usize = 16;
/// Characters of a reason.
const LONGEST: usize = 80;

/// Outcomes of requests.
#[derive(Debug, Default)]
pub(super) struct Tally {
    accepted: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    reasons: Mutex<BTreeMap<String, u64>>,
}

impl Tally {
    pub(super) fn count(&self, answer: &Result<Answer>) {
        let count = match answer {
            Ok(answer) if answer.status < 300 => &self.accepted,
            // 503: a list that ran too long.
            Ok(answer) if answer.status < 500 || answer.status == 503 => &self.refused,
            _ => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        match answer {
            Ok(answer) if answer.status < 300 => {}
            Ok(answer) => self.count_reason(&reason(answer)),
            Err(error) => self.count_reason(&error.to_string()),
        }
    }

    /// Counts an answer whose body is not read.
    pub(super) fn count_status(&self, status: u16) {
        let body = Default::default();
        self.count(&Ok(Answer { status, body }));
    }

    /// Counts a reason that an answer gives to the account.
    pub(super) fn count_reason(&self, reason: &str) {
        let reason: String = reason.chars().take(LONGEST).collect();
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if reasons.len() < MOST_REASONS || reasons.contains_key(&reason) {
            *reasons.entry(reason).or_default() += 1;
        }
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

    /// Returns the reasons that answers gave to the account, and how often.
    pub(super) fn reasons(&self) -> String {
        let reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        let texts = reasons
            .iter()
            .map(|(reason, count)| format!("{count} × {reason}"));
        texts.collect::<Vec<_>>().join("; ")
    }
}

/// The status, and the first issue or else the message.
fn reason(answer: &Answer) -> String {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let issue = body["details"][0]["issue"].as_str();
    let text = issue.or(body["message"].as_str()).unwrap_or_default();
    format!("{} {text}", answer.status)
}
