//! One Connection's lane in this process.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use domain::Id;

use super::Ready;

/// An endpoint that takes longer than this for an answer is slow.
const SLOW: Duration = Duration::from_secs(2);
/// Work of this period is queued behind a lane's open requests.
const AHEAD: Duration = Duration::from_millis(250);
/// At most so many for each request that may be open.
const DEEPEST: u32 = 16;

pub(super) struct Lane {
    pub(super) account: Id,
    /// How many requests may be open.
    pub(super) limit: u32,
    /// Open requests by their numbers, with their start times.
    pub(super) open: Vec<(u64, Instant)>,
    pub(super) queue: VecDeque<Ready>,
    pub(super) promised: u32,
    /// How long an answer takes recently.
    typical: Duration,
    proven: bool,
    failing: bool,
    pub(super) slow: bool,
    pub(super) on_probation: bool,
    pub(super) behind: bool,
    /// More waits, under restraint, and found no place.
    pub(super) starved: bool,
    /// The breaker is open.
    pub(super) blocked: bool,
    /// The lane is in a ring.
    pub(super) listed: bool,
    pub(super) used: Instant,
}

impl Lane {
    pub(super) fn new(account: Id) -> Self {
        Self {
            account,
            limit: 1,
            open: Vec::new(),
            queue: VecDeque::new(),
            promised: 0,
            typical: SLOW,
            proven: false,
            failing: false,
            slow: false,
            on_probation: true,
            behind: false,
            starved: false,
            blocked: false,
            listed: false,
            used: Instant::now(),
        }
    }

    pub(super) fn open_count(&self) -> u32 {
        u32::try_from(self.open.len()).unwrap_or(u32::MAX)
    }

    /// Open, queued or promised.
    pub(super) fn held(&self) -> u32 {
        let queued = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.open_count() + queued + self.promised
    }

    /// How many may be held: those that are open, and what they work off in a moment.
    pub(super) fn capacity(&self) -> u32 {
        if self.on_probation {
            return self.limit * 2;
        }
        let rounds = AHEAD.as_micros() / self.typical.as_micros().max(1);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        self.limit * rounds.clamp(2, DEEPEST)
    }

    pub(super) fn can_open(&self) -> bool {
        !self.queue.is_empty() && self.open_count() < self.limit
    }

    pub(super) fn belongs_on_probation(&self) -> bool {
        !self.proven || self.failing || self.slow
    }

    /// Returns true if a request has been open for too long.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.open.iter().any(|(_, since)| now - *since >= SLOW)
    }

    /// Returns true if more waits in the database and has places here.
    pub(super) fn is_hungry(&self) -> bool {
        self.held() * 2 <= self.capacity() && (self.behind && !self.blocked || self.starved)
    }

    /// Returns true if the lane must not be forgotten.
    pub(super) fn is_used(&self) -> bool {
        self.held() > 0 || self.behind
    }

    /// A request has ended. One more success makes the lane wider, a failure halves it.
    pub(super) fn close(&mut self, number: u64, success: bool, most: u32) {
        let now = Instant::now();
        self.used = now;
        let at = self.open.iter().position(|(open, _)| *open == number);
        let took = at.map_or(Duration::ZERO, |at| now - self.open.swap_remove(at).1);
        self.slow = took >= SLOW;
        self.failing = !success;
        if success {
            self.typical = if self.proven {
                (self.typical * 7 + took) / 8
            } else {
                took
            };
            self.proven = true;
            self.limit = (self.limit + 1).min(most);
        } else {
            self.limit = (self.limit / 2).max(1);
        }
    }
}
