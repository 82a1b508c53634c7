//! How many mails this replica sends in a minute.
//!
//! An account that is alone has at most half of them, two have a third each, and so on: a part is always left for one more.

use std::{
    collections::{HashMap, HashSet},
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
    /// Accounts with mails in this minute or the last one, also if these were too many.
    accounts: HashSet<Id>,
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
        self.count(account, now, 1)
    }

    /// Does the same as [`Self::take`], but does not count the mail.
    ///
    /// # Errors
    /// The same.
    pub(super) fn check(&self, account: Id, now: Instant) -> Result<(), Duration> {
        self.count(account, now, 0)
    }

    fn count(&self, account: Id, now: Instant, mails: u32) -> Result<(), Duration> {
        let mut guard = self.minute.lock().unwrap_or_else(PoisonError::into_inner);
        let minute = match guard.take() {
            Some(minute) if now.duration_since(minute.begin) < MINUTE => minute,
            last => Minute::after(last, now),
        };
        let minute = guard.insert(minute);
        minute.accounts.insert(account);
        let accounts = u32::try_from(minute.accounts.len()).unwrap_or(u32::MAX);
        let share = (self.max_per_minute / accounts.saturating_add(1)).max(1);
        let of_account = minute.of_accounts.entry(account).or_default();
        if minute.count >= self.max_per_minute || *of_account >= share {
            return Err(MINUTE.saturating_sub(now.duration_since(minute.begin)));
        }
        minute.count += mails;
        *of_account += mails;
        Ok(())
    }
}

impl Minute {
    fn after(last: Option<Self>, now: Instant) -> Self {
        let last = last.filter(|last| now.duration_since(last.begin) < 2 * MINUTE);
        Self {
            begin: now,
            count: 0,
            of_accounts: HashMap::new(),
            accounts: last.map_or_else(HashSet::new, |last| last.of_accounts.into_keys().collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_counts_no_mail() {
        let (pace, now, account) = (Pace::new(2), Instant::now(), Id::generate());
        for _ in 0..3 {
            assert_eq!(pace.check(account, now), Ok(()));
        }
        assert_eq!(pace.take(account, now), Ok(()));
        assert_eq!(pace.check(account, now), Err(MINUTE));
    }

    #[test]
    fn accounts_share_a_minute_and_leave_some_for_another() {
        let (pace, begin) = (Pace::new(12), Instant::now());
        let [one, two, three] = [(); 3].map(|()| Id::generate());
        let taken = |account, now| (0..12).filter(|_| pace.take(account, now).is_ok()).count();
        for (account, count) in [(one, 6), (two, 4), (three, 2)] {
            assert_eq!(taken(account, begin), count);
        }
        let (later, rest) = (Duration::from_secs(20), Duration::from_secs(40));
        assert_eq!(pace.take(one, begin + later), Err(rest));
        // Now all three are known.
        let next = begin + MINUTE;
        for account in [one, two, three] {
            assert_eq!(taken(account, next), 3);
        }
        assert_eq!(taken(one, next + 2 * MINUTE), 6);
    }
}
