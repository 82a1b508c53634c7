//! One Connection's lane in this process.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use domain::Id;

use super::ready::Ready;

/// An endpoint with at least this response time counts as slow.
const SLOW: Duration = Duration::from_secs(2);
/// Amount of work, as time, that is queued behind a lane's open requests.
const AHEAD: Duration = Duration::from_millis(250);
/// Maximum queue length for each request that may be open.
const DEEPEST: u32 = 16;

/// An open request.
pub(super) struct Open {
    pub(super) number: u64,
    pub(super) since: Instant,
    /// A person requested it.
    pub(super) urgent: bool,
}

pub(super) struct Lane {
    pub(super) account: Id,
    /// Maximum number of open requests.
    pub(super) limit: u32,
    pub(super) open: Vec<Open>,
    pub(super) queue: VecDeque<Ready>,
    pub(super) promised: u32,
    /// Recent response time.
    typical: Duration,
    proven: bool,
    failing: bool,
    pub(super) slow: bool,
    pub(super) on_probation: bool,
    pub(super) behind: bool,
    /// A throttled Connection has more waiting deliveries, and found no place.
    pub(super) starved: bool,
    /// True if the circuit breaker is open.
    pub(super) blocked: bool,
    /// Number of results with `Retry-After` that are not written yet. They keep the lane blocked.
    pub(super) pauses: u32,
    /// True if the lane is in a ring.
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
            pauses: 0,
            listed: false,
            used: Instant::now(),
        }
    }

    pub(super) fn open_count(&self) -> u32 {
        u32::try_from(self.open.len()).unwrap_or(u32::MAX)
    }

    /// Number of open, queued and reserved deliveries.
    pub(super) fn held(&self) -> u32 {
        let queued = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        self.open_count() + queued + self.promised
    }

    /// Number of queued and open deliveries that a person requested. They are first in the queue.
    pub(super) fn urgent_count(&self) -> usize {
        let queued = self.queue.iter().take_while(|ready| ready.is_exempt());
        queued.filter(|ready| ready.task.urgent).count()
            + self.open.iter().filter(|open| open.urgent).count()
    }

    /// Number of deliveries that may be held: the open ones, and what they send in a moment.
    pub(super) fn capacity(&self) -> u32 {
        if self.on_probation {
            return self.limit * 2;
        }
        let rounds = AHEAD.as_micros() / self.typical.as_micros().max(1);
        let rounds = u32::try_from(rounds).unwrap_or(u32::MAX);
        self.limit * rounds.clamp(2, DEEPEST)
    }

    /// Records that the database knows of no open breaker. Returns true if the lane is not blocked any more.
    pub(super) fn unblock(&mut self) -> bool {
        self.blocked = self.pauses > 0;
        !self.blocked
    }

    pub(super) fn can_open(&self) -> bool {
        !self.queue.is_empty() && self.open_count() < self.limit
    }

    pub(super) fn belongs_on_probation(&self) -> bool {
        !self.proven || self.failing || self.slow
    }

    /// Returns true if a request has been open for too long.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.open.iter().any(|open| now - open.since >= SLOW)
    }

    /// Returns true if more deliveries wait in the database and have places here.
    pub(super) fn is_hungry(&self) -> bool {
        self.held() * 2 <= self.capacity() && (self.behind && !self.blocked || self.starved)
    }

    /// Returns true if the lane must not be forgotten.
    pub(super) fn is_used(&self) -> bool {
        self.held() > 0 || self.behind || self.pauses > 0
    }

    /// Ends a request. A success raises the lane's limit by one, a failure halves it.
    pub(super) fn close(&mut self, number: u64, success: bool, most: u32) {
        let now = Instant::now();
        self.used = now;
        let at = self.open.iter().position(|open| open.number == number);
        let took = at.map_or(Duration::ZERO, |at| now - self.open.swap_remove(at).since);
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
