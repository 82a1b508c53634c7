//! Limits how much an account's refused posts make a process write.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;
use uuid::Uuid;

use super::MAX_BYTES;

/// Time in which a process writes at most the limit for an account.
const PERIOD: Duration = Duration::from_hours(1);

/// Bytes that each account may make a process write in an hour: as many as it may keep. More would only replace what was
/// written within the hour, and a poll can have gigabytes of it: each post once for each Manager.
///
/// Bytes count once they are committed. Another account may be the reason why a transaction is rolled back and repeated.
#[derive(Debug)]
pub struct WriteLimit {
    max_bytes: i64,
    hour: Mutex<Hour>,
}

#[derive(Debug, Default)]
struct Hour {
    since: Option<Instant>,
    written: Written,
}

/// Bytes that a transaction wrote of each account.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Written(HashMap<Uuid, i64>);

impl Written {
    pub(super) fn add(&mut self, account: Uuid, bytes: i64) {
        *self.0.entry(account).or_default() += bytes;
    }
}

impl Default for WriteLimit {
    fn default() -> Self {
        Self::new(MAX_BYTES)
    }
}

impl WriteLimit {
    pub fn new(max_bytes: i64) -> Self {
        Self {
            max_bytes,
            hour: Mutex::default(),
        }
    }

    /// Counts what a transaction wrote, after its commit.
    pub fn count(&self, written: &Written) {
        if written.0.is_empty() {
            return;
        }
        let mut hour = self.hour();
        for (account, bytes) in &written.0 {
            hour.written.add(*account, *bytes);
        }
    }

    /// Adds a post's bytes to those of a transaction. Returns false, and adds nothing, if they exceed the limit.
    pub(super) fn admits(&self, account: Uuid, bytes: i64, transaction: &mut Written) -> bool {
        let before = self.hour().written.0.get(&account).copied();
        let own = transaction.0.entry(account).or_default();
        let is_within = before.unwrap_or_default() + *own + bytes <= self.max_bytes;
        if is_within {
            *own += bytes;
        }
        is_within
    }

    fn hour(&self) -> MutexGuard<'_, Hour> {
        let mut hour = self.hour.lock().unwrap_or_else(PoisonError::into_inner);
        if hour.since.is_none_or(|since| since.elapsed() >= PERIOD) {
            *hour = Hour {
                since: Some(Instant::now()),
                written: Written::default(),
            };
        }
        hour
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Uuid, WriteLimit, Written};

    #[tokio::test(start_paused = true)]
    async fn each_account_has_its_own_limit_in_each_period() {
        let limit = WriteLimit::new(10);
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut written = Written::default();
        assert!(limit.admits(one, 7, &mut written));
        assert!(!limit.admits(one, 4, &mut written));
        // Another transaction, as long as the first is not committed.
        assert!(limit.admits(one, 10, &mut Written::default()));
        limit.count(&written);
        let mut written = Written::default();
        assert!(!limit.admits(one, 4, &mut written));
        assert!(limit.admits(one, 3, &mut written));
        assert!(limit.admits(two, 10, &mut written));
        limit.count(&written);
        tokio::time::advance(PERIOD / 2).await;
        assert!(!limit.admits(one, 1, &mut Written::default()));
        tokio::time::advance(PERIOD / 2).await;
        assert!(limit.admits(one, 10, &mut Written::default()));
    }
}
