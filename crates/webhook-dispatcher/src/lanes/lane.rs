//! One Connection's lane in this process.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use domain::Id;

use super::{
    endpoint::{EndpointState, SLOW},
    ready::Ready,
};

/// An open request.
pub(super) struct Open {
    pub(super) number: u64,
    pub(super) since: Instant,
    /// A person requested it.
    pub(super) urgent: bool,
}

pub(super) struct Lane {
    pub(super) account: Id,
    pub(super) endpoint: EndpointState,
    pub(super) open: Vec<Open>,
    pub(super) queue: VecDeque<Ready>,
    pub(super) promised: u32,
    /// True if more deliveries wait in the database.
    pub(super) behind: bool,
    /// True if a throttled Connection has more waiting deliveries, and found no place.
    pub(super) starved: bool,
    /// True if the lane is in a ring.
    pub(super) listed: bool,
    pub(super) used: Instant,
}

impl Lane {
    pub(super) fn new(account: Id) -> Self {
        Self {
            account,
            endpoint: EndpointState::new(),
            open: Vec::new(),
            queue: VecDeque::new(),
            promised: 0,
            behind: false,
            starved: false,
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

    pub(super) fn can_open(&self) -> bool {
        !self.queue.is_empty() && self.open_count() < self.endpoint.limit
    }

    /// Returns true if a request has been open for too long.
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        self.open.iter().any(|open| now - open.since >= SLOW)
    }

    /// Returns true if more deliveries wait in the database and have places here.
    pub(super) fn is_hungry(&self) -> bool {
        let has_waiting = self.behind && !self.endpoint.is_blocked() || self.starved;
        has_waiting && self.held() * 2 <= self.endpoint.capacity()
    }

    /// Returns true if the lane must not be forgotten.
    pub(super) fn is_used(&self) -> bool {
        self.held() > 0 || self.behind || self.endpoint.is_paused()
    }

    /// Ends a request.
    pub(super) fn close(&mut self, number: u64, success: bool, most: u32) {
        let now = Instant::now();
        self.used = now;
        let at = self.open.iter().position(|open| open.number == number);
        let took = at.map_or(Duration::ZERO, |at| now - self.open.swap_remove(at).since);
        self.endpoint.answer(success, took, most);
    }
}
