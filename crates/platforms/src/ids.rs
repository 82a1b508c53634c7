//! Account of the ids of a platform that numbers its items without gaps: each id is read, another feed's, gone, or missing.
//!
//! The cursor stores it, so it moves in the transaction that stores the posts. Ids are checked once they are [`SETTLE`]
//! old: until then ordinary polls may still find their posts.

use std::{collections::BTreeSet, time::Duration};

use domain::{Post, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::PollError;

/// Minimum age of ids that are checked.
const SETTLE: Duration = Duration::from_mins(10);
/// Period after which a missing id is not checked again.
const LOOK_FOR: Duration = Duration::from_hours(72);
/// A newest id that is further away than this is not a continuation: about a week of Hacker News.
const MAX_STEP: u64 = 100_000;
/// Maximum number of missing ids. No further id is checked while there are so many.
const MAX_MISSING: usize = 1_000;

/// Result of one check of ids.
#[derive(Debug, Default)]
pub struct IdAccount {
    /// Ids whose posts were read.
    pub read: u64,
    /// Ids of items that the feed does not have, such as comments.
    pub other: u64,
    /// Ids whose items are deleted or dead.
    pub gone: u64,
    /// Ids without an item, found by this check.
    pub missing: Vec<u64>,
    /// Earlier missing ids that are read, another feed's, or gone now.
    pub explained: Vec<u64>,
    /// Every id up to this one is accounted for or missing; `None` if that did not change.
    pub up_to: Option<u64>,
    /// Posts that ordinary polls did not find.
    pub posts: Vec<Post>,
    /// Reason why the check ended early. What it found holds.
    pub failure: Option<PollError>,
}

/// The part of the account that the next checks need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IdLedger {
    /// Every id up to this one is accounted for or missing.
    pub(crate) up_to: u64,
    /// The ids above `up_to` were created after this time.
    pub(crate) from_time: Timestamp,
    /// Ids up to this one are old enough to be checked. They were created before `due_time`.
    pub(crate) due: u64,
    pub(crate) due_time: Timestamp,
    /// The newest id, and when it was that.
    newest: u64,
    newest_time: Timestamp,
    /// Ids above `up_to` that were read.
    #[serde(default)]
    read: IdSet,
    #[serde(default)]
    pub(crate) missing: Vec<MissingId>,
}

/// An id without an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MissingId {
    pub(crate) id: u64,
    since: Timestamp,
    /// Time of the next check.
    next: Timestamp,
}

impl IdLedger {
    /// Accounts for the ids above `newest`.
    pub(crate) fn starting_at(newest: u64, now: Timestamp) -> Self {
        Self {
            up_to: newest,
            from_time: now,
            due: newest,
            due_time: now,
            newest,
            newest_time: now,
            read: IdSet::default(),
            missing: Vec::new(),
        }
    }

    /// Records that an id's post was read. Returns true if the id was missing.
    pub(crate) fn record_read(&mut self, id: u64) -> bool {
        if id > self.up_to {
            if id - self.up_to <= MAX_STEP {
                self.read.insert(id);
            }
            return false;
        }
        self.explain(id)
    }

    /// Forgets a missing id. Returns false if it was not missing.
    pub(crate) fn explain(&mut self, id: u64) -> bool {
        let before = self.missing.len();
        self.missing.retain(|missing| missing.id != id);
        self.missing.len() < before
    }

    /// Returns true if it is time to ask for the newest id.
    pub(crate) fn is_newest_old(&self, now: Timestamp) -> bool {
        now.since(self.newest_time) >= SETTLE
    }

    /// Takes over the newest id. Returns false if it cannot be a continuation: then the account must start again.
    pub(crate) fn advance(&mut self, newest: u64, now: Timestamp) -> bool {
        if newest.abs_diff(self.newest) > MAX_STEP || self.newest - self.up_to > MAX_STEP {
            return false;
        }
        if self.up_to == self.due {
            self.from_time = self.due_time;
        }
        (self.due, self.due_time) = (self.newest, self.newest_time);
        // Caches of the platform may be behind one another.
        (self.newest, self.newest_time) = (self.newest.max(newest), now);
        true
    }

    /// The next ids to check that were not read, at most `limit`.
    pub(crate) fn unread(&self, limit: usize) -> Vec<u64> {
        let room = MAX_MISSING.saturating_sub(self.missing.len()).min(limit);
        let ids = (self.up_to + 1)..=self.due;
        ids.filter(|id| !self.read.contains(*id))
            .take(room)
            .collect()
    }

    /// Moves over the ids that were read or are in `known`, up to the first that is neither. Returns how many were read.
    pub(crate) fn pass(&mut self, known: &BTreeSet<u64>) -> u64 {
        let mut read = 0;
        while self.up_to < self.due {
            let id = self.up_to + 1;
            let was_read = self.read.contains(id);
            if !was_read && !known.contains(&id) {
                break;
            }
            read += u64::from(was_read);
            self.up_to = id;
        }
        self.read.forget_to(self.up_to);
        read
    }

    pub(crate) fn miss(&mut self, id: u64, now: Timestamp) {
        self.missing.push(MissingId {
            id,
            since: now,
            next: now.plus(SETTLE),
        });
    }

    /// Returns the missing ids that are due for another check. Gives up those that have been missing for too long.
    pub(crate) fn due_again(&mut self, now: Timestamp, limit: usize) -> Vec<u64> {
        self.missing
            .retain(|missing| now.since(missing.since) <= LOOK_FOR);
        let due = self.missing.iter().filter(|missing| missing.next <= now);
        due.take(limit).map(|missing| missing.id).collect()
    }

    /// A missing id is still missing. The pauses between two checks double.
    pub(crate) fn still_missing(&mut self, id: u64, now: Timestamp) {
        for missing in self.missing.iter_mut().filter(|missing| missing.id == id) {
            missing.next = now.plus(now.since(missing.since).max(SETTLE));
        }
    }
}

/// A set of ids as ascending ranges, both ends included.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
struct IdSet(Vec<(u64, u64)>);

impl IdSet {
    fn contains(&self, id: u64) -> bool {
        let at = self.0.partition_point(|range| range.1 < id);
        self.0.get(at).is_some_and(|range| range.0 <= id)
    }

    fn insert(&mut self, id: u64) {
        if self.contains(id) {
            return;
        }
        let at = self.0.partition_point(|range| range.1 < id);
        self.0.insert(at, (id, id));
        self.join(at);
        if at > 0 {
            self.join(at - 1);
        }
    }

    /// Joins the range at `at` with the next one if nothing lies between them.
    fn join(&mut self, at: usize) {
        if let [first, second] = self.0[at..].get(..2).unwrap_or_default()
            && first.1.checked_add(1) == Some(second.0)
        {
            self.0[at].1 = second.1;
            self.0.remove(at + 1);
        }
    }

    fn forget_to(&mut self, id: u64) {
        self.0.retain(|range| range.1 > id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_set_merges_adjacent_ranges() {
        let mut set = IdSet::default();
        for id in [5, 9, 7, 6, 1, 8, 5, 2] {
            set.insert(id);
        }
        assert_eq!(set.0, [(1, 2), (5, 9)]);
        let inside: Vec<u64> = (0..12).filter(|id| set.contains(*id)).collect();
        assert_eq!(inside, [1, 2, 5, 6, 7, 8, 9]);
        set.forget_to(6);
        assert_eq!(set.0, [(5, 9)]);
    }

    #[test]
    fn ids_become_due_after_a_while_and_in_order() {
        let now = Timestamp::now();
        let mut ledger = IdLedger::starting_at(100, now);
        assert!(ledger.advance(110, now.plus(SETTLE)));
        assert!(ledger.unread(50).is_empty(), "they are too young");
        assert!(ledger.advance(120, now.plus(SETTLE * 2)));
        for id in [101, 102, 104, 90, 115] {
            assert!(!ledger.record_read(id));
        }
        assert_eq!(ledger.unread(3), [103, 105, 106]);
        let known = [103, 106].into_iter().collect();
        assert_eq!(ledger.pass(&known), 3);
        assert_eq!(ledger.up_to, 104, "105 is not known");
        assert_eq!(ledger.pass(&(105..=200).collect()), 0);
        assert_eq!(ledger.up_to, 110, "what is too young is not passed");
        ledger.miss(107, now);
        assert!(ledger.record_read(107) && ledger.missing.is_empty());
    }

    #[test]
    fn impossible_newest_id_restarts_the_account() {
        let now = Timestamp::now();
        for newest in [0, 100 + MAX_STEP + 1_000_000, u64::MAX] {
            let mut ledger = IdLedger::starting_at(1_000_000, now);
            assert!(!ledger.advance(newest, now), "{newest}");
        }
        let mut ledger = IdLedger::starting_at(1_000_000, now);
        assert!(
            ledger.advance(999_990, now),
            "a cache that is behind is no fault"
        );
        assert_eq!(ledger.newest, 1_000_000);
    }

    #[test]
    fn missing_ids_are_checked_less_and_less_often_and_then_given_up() {
        let begin = Timestamp::now();
        let mut ledger = IdLedger::starting_at(100, begin);
        ledger.miss(101, begin);
        let mut checks = 0;
        for minute in 0..(80 * 60) {
            let now = begin.plus(Duration::from_mins(minute));
            for id in ledger.due_again(now, 10) {
                checks += 1;
                ledger.still_missing(id, now);
            }
        }
        assert_eq!(checks, 9);
        assert!(ledger.missing.is_empty());
    }
}
