//! How many mails this replica sends in a minute. One account has at most half of them.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use domain::Id;

const MINUTE: Duration = Duration::from_secs(60);

pub(super) struct Pace {
    max_per_minute: u32,
    minute: Mutex<Option<Minute>>,
}

struct Minute {
    begin: Instant,
    count: u32,
    of_accounts: HashMap<Id, u32>,
}

impl Pace {
    pub(super) fn new(max_per_minute: u32) -> Self {
        Self {
            max_per_minute,
            minute: Mutex::default(),
        }
    }

    /// Counts a mail of `account`.
    ///
    /// # Errors
    /// The time until the next minute, if the mail is one too many.
    pub(super) fn take(&self, account: Id, now: Instant) -> Result<(), Duration> {
        let mut guard = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        let current = guard.take();
        let current = current.filter(|minute| now.duration_since(minute.begin) < MINUTE);
        let minute = guard.insert(current.unwrap_or_else(|| Minute {
            begin: now,
            count: 0,
            of_accounts: HashMap::new(),
        }));
        let of_account = minute.of_accounts.entry(account).or_default();
        if minute.count >= self.max_per_minute || *of_account >= (self.max_per_minute / 2).max(1) {
            return Err(MINUTE.saturating_sub(now.duration_since(minute.begin)));
        }
        minute.count += 1;
        *of_account += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_gets_half_of_the_mails_of_a_minute() {
        let (pace, begin) = (Pace::new(4), Instant::now());
        let (one, two, three) = (Id::generate(), Id::generate(), Id::generate());
        let later = begin + Duration::from_secs(20);
        for account in [one, one, two] {
            assert_eq!(pace.take(account, begin), Ok(()));
        }
        let rest = Duration::from_secs(40);
        assert_eq!(pace.take(one, later), Err(rest));
        assert_eq!(pace.take(two, later), Ok(()));
        assert_eq!(pace.take(three, later), Err(rest));
        let next = begin + MINUTE;
        assert_eq!(pace.take(three, next), Ok(()));
        assert_eq!(pace.take(one, next), Ok(()));
    }
}
