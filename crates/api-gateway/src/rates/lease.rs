//! Points that this replica may spend: one lease of one key.
//!
//! Times are milliseconds of this process's steady clock. What is spent is noted by when it was spent at
//! the latest, a second a note; that, and never spending at or after the end, is this side of the proof in
//! `store::rates`.

use store::rates::{Grant, LEASE_MS, LeaseId, Settlement};

/// Period whose points are noted together.
const NOTE_MS: i64 = 1_000;

pub(super) struct Lease {
    id: LeaseId,
    /// Before the question left.
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

    /// Returns true if there were as many; then they are spent.
    pub(super) fn spend(&mut self, now_ms: i64, points: u32) -> bool {
        if points > self.left || self.is_over(now_ms) {
            return false;
        }
        self.left -= points;
        let after = self.after(now_ms);
        match self.spent.last_mut() {
            // The later time stands for the earlier ones too.
            Some((noted, sum)) if *noted / NOTE_MS == after / NOTE_MS => {
                *noted = after.max(*noted);
                *sum += points;
            }
            _ => self.spent.push((after, points)),
        }
        true
    }

    /// Ends the lease: from now on nothing of it can be spent.
    pub(super) fn settle(self) -> Settlement {
        Settlement {
            lease: self.id,
            spent: self.spent,
        }
    }

    /// How long after the question it is at the most: both clock readings were cut to milliseconds.
    fn after(&self, now_ms: i64) -> i64 {
        now_ms - self.asked_ms + 1
    }
}
