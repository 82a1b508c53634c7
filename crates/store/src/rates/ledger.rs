//! Points of the current minute that a key or an account has spent or leased: the arithmetic of the rate limit.
//!
//! Within any [`WINDOW`](WINDOW_MS), all replicas together let through no more than the limit.
//!
//! A replica asks for points and may spend them for [`LEASE`](LEASE_MS). Once that is over, or it wants more, it
//! **settles** the lease: says how many it spent, and how long after it had asked; the rest is free again.
//! Each entry of the ledger **counts** against the limit until a time by the database's clock:
//!
//! - a lease in full, until `asked + LEASE + WINDOW`, where `asked` is the database's clock when the ledger
//!   was locked for it, or before;
//! - points of a settled lease until `asked + after + WINDOW`, where `after` is how long after sending the
//!   question, by the replica's steady clock, they were spent; rounded up to a second, so that the ledger
//!   stays small.
//!
//! No points are leased that, with those that count, would exceed the limit.
//!
//! **Proof.** Take any window `[w, w + WINDOW)` and the last lease, in the order of locks on the
//! ledger, with points spent in it. It was granted before `w + WINDOW`, since points are spent after
//! they are granted. Any point that was spent at `s ≥ w` under an earlier lease counts until at least
//! `s + WINDOW`: the replica sent its question before the database saw it, so `s ≤ asked + after`, and
//! `after < LEASE` or the replica does not spend it. `s + WINDOW ≥ w + WINDOW` is after the last grant, so at
//! that grant it still counted, in its lease or settled. All that counted, and the last lease in full,
//! were within the limit then; so the points spent in the window are too. ∎
//!
//! Lost messages make the ledger count more, never less. A replica that dies, or a grant whose answer did not
//! arrive, counts as fully spent at the last moment. A repeated settlement finds no lease the second time. After
//! sending a settlement, a replica spends nothing from that lease. There is only one requirement on clocks: the
//! database's must not be set forward, because points would then come back too early by that amount. If it is set
//! back, entries count for `LEASE + WINDOW` more, which is longer than necessary.
//!
//! Cost of this design: a point comes back up to a second late because of rounding; a replica may hold points that
//! another needs, until it settles; and grants get small when few points are left. Under load 97 % of the limit is
//! usable (the property tests of `api-gateway` measure it).

use serde::{Deserialize, Serialize};

/// Period that allows no more than the limit.
pub const WINDOW_MS: i64 = 60_000;
/// How long a replica may spend its leased points.
pub const LEASE_MS: i64 = 5_000;
/// Upper bound of the rounding of times.
const ROUNDING_MS: i64 = 1_000;
/// Largest part of the remaining points that one lease gets when few are left, so that others get some too.
const SHARE: u32 = 8;

/// Id of a lease; two leases of one key never share it.
pub type LeaseId = u64;

/// Ledger of one key or account, as stored in its row. It has at most one entry for each second and each lease that
/// still counts, and never more entries than the limit has points.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    leases: Vec<Leased>,
    spent: Vec<Spent>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Leased {
    id: LeaseId,
    asked_ms: i64,
    points: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Spent {
    counts_until_ms: i64,
    points: u32,
}

/// Request of a replica.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Id of the new lease: a random number.
    pub id: LeaseId,
    /// Minimum number of points that is useful.
    pub least: u32,
    pub most: u32,
}

impl Wanted {
    /// Returns the points that a request for at least `least` gets of the `free` ones.
    pub(super) fn part_of(&self, free: u32, least: u32) -> u32 {
        if free < least {
            0
        } else {
            self.most.min(free / SHARE).max(least)
        }
    }
}

/// Outcome of a lease.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub lease: LeaseId,
    /// Points spent, each with the latest number of milliseconds after the lease was requested.
    pub spent: Vec<(i64, u32)>,
}

/// The answer to [`Wanted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Zero, or at least [`Wanted::least`].
    pub points: u32,
    /// Points that are neither spent nor leased after this grant.
    pub free: u32,
    /// Time until all points will be free again if none is spent.
    pub reset_in_ms: i64,
    /// Time until the minimum will be free if no one else takes it; 0 if it was granted.
    pub retry_in_ms: i64,
}

impl Ledger {
    /// Returns the points that `settlement` did not spend. A repeated settlement changes nothing.
    pub fn settle(&mut self, settlement: &Settlement) {
        let found = self
            .leases
            .iter()
            .position(|lease| lease.id == settlement.lease);
        let Some(at) = found else { return };
        let lease = self.leases.remove(at);
        let mut rest = lease.points;
        for &(after_ms, points) in &settlement.spent {
            // Never more than was leased.
            let points = points.min(rest);
            rest -= points;
            self.count(
                lease.asked_ms + after_ms.clamp(0, LEASE_MS) + WINDOW_MS,
                points,
            );
        }
    }

    /// Leases points at `now_ms`, up to what `limit` allows.
    pub fn grant(&mut self, now_ms: i64, limit: u32, wanted: &Wanted) -> Grant {
        let least = wanted.least.clamp(1, limit);
        let points = wanted.part_of(self.free(now_ms, limit), least);
        self.lease(now_ms, wanted.id, points);
        self.outcome(now_ms, limit, least, points)
    }

    /// Points that neither count as spent nor are leased.
    pub(super) fn free(&mut self, now_ms: i64, limit: u32) -> u32 {
        self.forget(now_ms);
        let counted: u64 = self.counts().map(|(_, points)| u64::from(points)).sum();
        let free = u64::from(limit).saturating_sub(counted);
        u32::try_from(free).unwrap_or(u32::MAX)
    }

    pub(super) fn lease(&mut self, now_ms: i64, id: LeaseId, points: u32) {
        if points > 0 {
            self.leases.push(Leased {
                id,
                // The clock was truncated to milliseconds.
                asked_ms: now_ms + 1,
                points,
            });
        }
    }

    /// Returns the answer after `points` were leased, where at least `least` were wanted.
    pub(super) fn outcome(&mut self, now_ms: i64, limit: u32, least: u32, points: u32) -> Grant {
        let free = self.free(now_ms, limit);
        let last = self.counts().map(|(until, _)| until).max();
        let is_refused = points == 0 && free < least;
        Grant {
            points,
            free,
            reset_in_ms: last.map_or(0, |until| until - now_ms),
            retry_in_ms: if is_refused {
                self.free_at(limit, least) - now_ms
            } else {
                0
            },
        }
    }

    /// Returns when `least` points will be free.
    fn free_at(&self, limit: u32, least: u32) -> i64 {
        let mut counts: Vec<(i64, u32)> = self.counts().collect();
        counts.sort_unstable();
        let mut counted: u64 = counts.iter().map(|(_, points)| u64::from(*points)).sum();
        for (until, points) in counts {
            counted -= u64::from(points);
            if counted + u64::from(least) <= u64::from(limit) {
                return until;
            }
        }
        0
    }

    /// Returns for each entry until when it counts, and its points.
    fn counts(&self) -> impl Iterator<Item = (i64, u32)> + '_ {
        let leases = self
            .leases
            .iter()
            .map(|lease| (lease.asked_ms + LEASE_MS + WINDOW_MS, lease.points));
        let spent = self
            .spent
            .iter()
            .map(|spent| (spent.counts_until_ms, spent.points));
        leases.chain(spent)
    }

    fn count(&mut self, until_ms: i64, points: u32) {
        if points == 0 {
            return;
        }
        let until_ms = (until_ms + ROUNDING_MS - 1).div_euclid(ROUNDING_MS) * ROUNDING_MS;
        match self
            .spent
            .iter_mut()
            .find(|spent| spent.counts_until_ms == until_ms)
        {
            Some(spent) => spent.points = spent.points.saturating_add(points),
            None => self.spent.push(Spent {
                counts_until_ms: until_ms,
                points,
            }),
        }
    }

    /// Removes entries that no longer count. An entry from the future was written before the database's clock went
    /// back: it counts from now on, and not longer by that difference.
    fn forget(&mut self, now_ms: i64) {
        for spent in &mut self.spent {
            let longest = now_ms + LEASE_MS + WINDOW_MS + ROUNDING_MS;
            spent.counts_until_ms = spent.counts_until_ms.min(longest);
        }
        for lease in &mut self.leases {
            lease.asked_ms = lease.asked_ms.min(now_ms + 1);
        }
        self.spent.retain(|spent| spent.counts_until_ms > now_ms);
        self.leases
            .retain(|lease| lease.asked_ms + LEASE_MS + WINDOW_MS > now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::{Grant, LEASE_MS, Ledger, Settlement, WINDOW_MS, Wanted};

    fn wanted(least: u32, most: u32) -> Wanted {
        Wanted {
            id: rand::random(),
            least,
            most,
        }
    }

    #[test]
    fn only_unspent_points_are_returned() {
        let mut ledger = Ledger::default();
        let first = wanted(1, 30);
        let grant = ledger.grant(9_999, 600, &first);
        let expected = Grant {
            points: 30,
            free: 570,
            reset_in_ms: 1 + LEASE_MS + WINDOW_MS,
            retry_in_ms: 0,
        };
        assert_eq!(grant, expected);
        let settlement = Settlement {
            lease: first.id,
            spent: vec![(1_000, 7)],
        };
        ledger.settle(&settlement);
        ledger.settle(&settlement);
        assert_eq!(ledger.grant(12_000, 600, &wanted(5, 5)).free, 600 - 7 - 5);
        // Spent at 11 s at the latest.
        assert_eq!(
            ledger.grant(70_999, 600, &wanted(1, 1)).free,
            600 - 7 - 5 - 1
        );
        assert_eq!(
            ledger.grant(71_000, 600, &wanted(1, 1)).free,
            600 - 5 - 1 - 1
        );
    }

    #[test]
    fn a_lease_that_is_never_settled_counts_as_spent_at_its_end() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.grant(0, 10, &wanted(10, 10)).points, 10);
        let refused = ledger.grant(1_001, 10, &wanted(1, 10));
        assert_eq!((refused.points, refused.free), (0, 0));
        assert_eq!(refused.retry_in_ms, LEASE_MS + WINDOW_MS - 1_000);
        let last = 1 + LEASE_MS + WINDOW_MS;
        assert_eq!(ledger.grant(last - 1, 10, &wanted(1, 1)).points, 0);
        assert_eq!(ledger.grant(last, 10, &wanted(1, 1)).points, 1);
    }

    #[test]
    fn points_come_back_in_a_minute_though_the_clock_went_back_by_an_hour() {
        let hour = 3_600_000;
        let mut ledger = Ledger::default();
        let settled = wanted(5, 5);
        ledger.grant(hour, 10, &settled);
        ledger.grant(hour, 10, &wanted(5, 5));
        ledger.settle(&Settlement {
            lease: settled.id,
            spent: vec![(LEASE_MS, 5)],
        });
        assert_eq!(ledger.grant(0, 10, &wanted(1, 1)).points, 0);
        let last = LEASE_MS + WINDOW_MS + 1_000;
        assert_eq!(ledger.grant(WINDOW_MS, 10, &wanted(1, 1)).points, 0);
        assert_eq!(ledger.grant(last, 10, &wanted(10, 10)).points, 10);
    }

    #[test]
    fn grants_get_small_towards_the_end_and_never_below_the_least() {
        let mut ledger = Ledger::default();
        ledger.grant(0, 600, &wanted(520, 520));
        assert_eq!(ledger.grant(0, 600, &wanted(1, 30)).points, 10);
        assert_eq!(ledger.grant(0, 600, &wanted(20, 30)).points, 20);
        assert_eq!(ledger.grant(0, 600, &wanted(1, 30)).free, 44);
        // A request that costs more than the whole limit may get the whole limit.
        let mut ledger = Ledger::default();
        assert_eq!(ledger.grant(0, 3, &wanted(20, 20)).points, 3);
    }

    #[test]
    fn false_settlement_does_not_add_points() {
        let mut ledger = Ledger::default();
        let lease = wanted(5, 5);
        ledger.grant(0, 10, &lease);
        ledger.settle(&Settlement {
            lease: lease.id,
            spent: vec![(-9, 3), (i64::MAX, 9)],
        });
        assert_eq!(ledger.grant(0, 10, &wanted(1, 1)).free, 4);
    }
}
