//! Points that this replica may spend: one lease of one key.
//!
//! Times are milliseconds of this process's monotonic clock. Spending is recorded per second, by the latest time at
//! which it can have happened. Together with never spending at or after the end of the lease, this is the replica's
//! part of the proof in `store::rates`.

use store::rates::{Grant, LEASE_MS, LeaseId, Settlement};

/// Period whose points are recorded together.
const NOTE_MS: i64 = 1_000;

pub(super) struct Lease {
    id: LeaseId,
    /// Time before the request was sent.
    asked_ms: i64,
    left: u32,
    spent: Vec<(i64, u32)>,
}

impl Lease {
    pub(super) fn new(id: LeaseId, asked_ms: i64, grant: &Grant) -> Self {
        Self {
            id,
            asked_ms,
            left: grant.points,
            spent: Vec::new(),
        }
    }

    pub(super) fn left(&self) -> u32 {
        self.left
    }

    pub(super) fn spent(&self) -> u32 {
        self.spent.iter().map(|(_, points)| points).sum()
    }

    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        self.after(now_ms) >= LEASE_MS
    }

    /// Spends `points` and returns true, if that many are left.
    pub(super) fn spend(&mut self, now_ms: i64, points: u32) -> bool {
        if points > self.left || self.is_over(now_ms) {
            return false;
        }
        self.left -= points;
        let after = self.after(now_ms);
        match self.spent.last_mut() {
            // The later time also covers the earlier spending.
            Some((noted, sum)) if *noted / NOTE_MS == after / NOTE_MS => {
                *noted = after.max(*noted);
                *sum += points;
            }
            _ => self.spent.push((after, points)),
        }
        true
    }

    /// Ends the lease: nothing can be spent from it any more.
    pub(super) fn settle(self) -> Settlement {
        Settlement {
            lease: self.id,
            spent: self.spent,
        }
    }

    /// Upper bound of the time since the request, because both clock readings were truncated to milliseconds.
    fn after(&self, now_ms: i64) -> i64 {
        now_ms - self.asked_ms + 1
    }
}
