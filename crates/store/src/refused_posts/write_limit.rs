//! Limits how much an account's refused posts make a process write.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
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
/// Transactions that are rolled back count too, because they write as much.
#[derive(Debug)]
pub struct WriteLimit {
    max_bytes: i64,
    written: Mutex<Written>,
}

#[derive(Debug, Default)]
struct Written {
    since: Option<Instant>,
    bytes: HashMap<Uuid, i64>,
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
            written: Mutex::default(),
        }
    }

    /// Counts bytes for the account. Returns false, and counts nothing, if they exceed the limit.
    pub(super) fn take(&self, account: Uuid, bytes: i64) -> bool {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.since.is_none_or(|since| since.elapsed() >= PERIOD) {
            *written = Written {
                since: Some(Instant::now()),
                bytes: HashMap::new(),
            };
        }
        let total = written.bytes.entry(account).or_default();
        let is_within = *total + bytes <= self.max_bytes;
        if is_within {
            *total += bytes;
        }
        is_within
    }
}

#[cfg(test)]
mod tests {
    use super::{PERIOD, Uuid, WriteLimit};

    #[tokio::test(start_paused = true)]
    async fn each_account_has_its_own_limit_in_each_period() {
        let limit = WriteLimit::new(10);
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(limit.take(one, 7));
        assert!(!limit.take(one, 4));
        assert!(limit.take(one, 3));
        assert!(limit.take(two, 10));
        tokio::time::advance(PERIOD / 2).await;
        assert!(!limit.take(one, 1));
        tokio::time::advance(PERIOD / 2).await;
        assert!(limit.take(one, 10));
    }
}
