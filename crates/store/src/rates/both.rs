//! A lease from two ledgers: a key's and its account's.
//!
//! It has the same id and the same points in both, and both are settled in one transaction. So the proof of
//! [`super::ledger`] holds for each of them. If one of the two has too few points, neither leases any: a refusal
//! costs nothing.

use std::cmp::Reverse;

use super::{Grant, Ledger, Settlement, Wanted};

/// Points in any window; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub key: u32,
    pub account: u32,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledgers {
    pub key: Ledger,
    pub account: Ledger,
}

/// Answer of both ledgers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedGrant {
    /// Answer of the ledger that refuses, or has fewer points left. Its points are at least [`Wanted::least`], or
    /// the whole lower limit, or zero.
    pub grant: Grant,
    /// Limit of that ledger.
    pub limit: u32,
    /// True if the account's ledger refuses.
    pub is_refused_by_account: bool,
    pub account_limit: u32,
}

impl Ledgers {
    /// Returns the points that `settlement` did not spend. A repeated settlement changes nothing.
    pub fn settle(&mut self, settlement: &Settlement) {
        self.key.settle(settlement);
        self.account.settle(settlement);
    }

    /// Leases points at `now_ms`, if both limits allow it.
    pub fn grant(&mut self, now_ms: i64, limits: Limits, wanted: &Wanted) -> SharedGrant {
        let Limits { key, account } = limits;
        let least = wanted.least.min(key).min(account).max(1);
        let free = self.key.free(now_ms, key);
        let free = free.min(self.account.free(now_ms, account));
        let points = wanted.part_of(free, least);
        self.key.lease(now_ms, wanted.id, points);
        self.account.lease(now_ms, wanted.id, points);
        let of_key = self.key.outcome(now_ms, key, least, points);
        let of_account = self.account.outcome(now_ms, account, least, points);
        let rank = |grant: &Grant| (grant.retry_in_ms, Reverse(grant.free));
        let is_account = rank(&of_account) > rank(&of_key);
        let (grant, limit) = if is_account {
            (of_account, account)
        } else {
            (of_key, key)
        };
        SharedGrant {
            grant,
            limit,
            is_refused_by_account: is_account && points == 0,
            account_limit: account,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ledgers, Limits, SharedGrant, Wanted};

    fn grant(ledgers: &mut Ledgers, now_ms: i64, limits: Limits, points: u32) -> SharedGrant {
        let wanted = Wanted {
            id: rand::random(),
            least: points,
            most: points,
        };
        ledgers.grant(now_ms, limits, &wanted)
    }

    #[test]
    fn refusal_by_one_ledger_costs_the_other_nothing() {
        let limits = Limits {
            key: 10,
            account: 15,
        };
        let mut first = Ledgers::default();
        assert_eq!(grant(&mut first, 0, limits, 10).grant.points, 10);
        let before = first.clone();
        let refused = grant(&mut first, 1_000, limits, 5);
        assert_eq!((refused.grant.points, refused.limit), (0, 10));
        assert!(!refused.is_refused_by_account);
        assert_eq!(first, before);

        // Another key of the account.
        let mut second = Ledgers {
            account: first.account,
            ..Ledgers::default()
        };
        let before = second.clone();
        let refused = grant(&mut second, 2_000, limits, 6);
        assert_eq!((refused.grant.points, refused.limit), (0, 15));
        assert_eq!(refused.grant.free, 5);
        assert!(refused.grant.retry_in_ms > 0 && refused.is_refused_by_account);
        assert_eq!(second, before);

        let granted = grant(&mut second, 2_000, limits, 5);
        assert_eq!((granted.grant.points, granted.grant.free), (5, 0));
        assert_eq!(granted.limit, 15, "the account has fewer points left");
    }

    #[test]
    fn request_above_the_lower_limit_takes_the_whole_limit() {
        for (key, account) in [(3, 9), (9, 3)] {
            let mut ledgers = Ledgers::default();
            let granted = grant(&mut ledgers, 0, Limits { key, account }, 20);
            assert_eq!(granted.grant.points, 3);
        }
    }
}
