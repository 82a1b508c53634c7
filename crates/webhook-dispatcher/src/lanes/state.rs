//! Counts of the lanes, and whose turn is next. Behind the one lock of [`super::Lanes`].

use std::collections::HashMap;

use domain::{ConnectionName, Id};

use super::{Ready, lane::Lane, ring::Ring};

#[derive(Default)]
pub(super) struct State {
    pub(super) open: u32,
    /// Count for lanes on probation.
    pub(super) probation_open: u32,
    /// Open, queued or promised.
    pub(super) held: u32,
    pub(super) probation_held: u32,
    pub(super) unwritten: u32,
    /// No more requests are opened.
    pub(super) closing: bool,
    pub(super) opened: u64,
    pub(super) lanes: HashMap<ConnectionName, Lane>,
    /// Lanes with something queued that may open more, by class.
    pub(super) steady: Ring,
    pub(super) probation: Ring,
    /// Lanes with more deliveries in the database.
    pub(super) behind: Ring,
    pub(super) probation_turn: bool,
    /// A throttled lane that found no place has one now.
    pub(super) fed: bool,
}

impl State {
    pub(super) fn lane(&mut self, connection: ConnectionName, account: Id) -> &mut Lane {
        self.lanes
            .entry(connection)
            .or_insert_with(|| Lane::new(account))
    }

    pub(super) fn hold(&mut self, connection: ConnectionName, count: u32) {
        self.held += count;
        if self
            .lanes
            .get(&connection)
            .is_some_and(|lane| lane.on_probation)
        {
            self.probation_held += count;
        }
    }

    pub(super) fn release(&mut self, connection: ConnectionName, count: u32) {
        self.held = self.held.saturating_sub(count);
        if self
            .lanes
            .get(&connection)
            .is_some_and(|lane| lane.on_probation)
        {
            self.probation_held = self.probation_held.saturating_sub(count);
        }
    }

    /// Puts a lane with something to open where [`Self::take`] finds it.
    pub(super) fn list(&mut self, connection: ConnectionName) {
        let Some(lane) = self.lanes.get_mut(&connection) else {
            return;
        };
        if lane.listed || !lane.can_open() {
            return;
        }
        lane.listed = true;
        let ring = if lane.on_probation {
            &mut self.probation
        } else {
            &mut self.steady
        };
        ring.push(lane.account, connection);
    }

    /// The next of a class. Lanes that have changed class since they were listed are moved on the way.
    pub(super) fn take(&mut self, on_probation: bool) -> Option<(ConnectionName, Ready)> {
        loop {
            let ring = if on_probation {
                &mut self.probation
            } else {
                &mut self.steady
            };
            let (_, connection) = ring.pop()?;
            let Some(lane) = self.lanes.get_mut(&connection) else {
                continue;
            };
            lane.listed = false;
            if !lane.can_open() {
                continue;
            }
            if lane.on_probation != on_probation {
                self.list(connection);
                continue;
            }
            if let Some(ready) = lane.queue.pop_front() {
                return Some((connection, ready));
            }
        }
    }

    /// Counts a lane where it belongs, after something about it has changed.
    pub(super) fn classify(&mut self, connection: ConnectionName) {
        let Some(lane) = self.lanes.get_mut(&connection) else {
            return;
        };
        let on_probation = lane.belongs_on_probation();
        if std::mem::replace(&mut lane.on_probation, on_probation) == on_probation {
            return;
        }
        let (open, held) = (lane.open_count(), lane.held());
        if on_probation {
            self.probation_open += open;
            self.probation_held += held;
        } else {
            self.probation_open = self.probation_open.saturating_sub(open);
            self.probation_held = self.probation_held.saturating_sub(held);
        }
    }

    /// Signals free capacity to lanes that found none; returns true if any lane can use it.
    pub(super) fn feed(&mut self) -> bool {
        for lane in self.lanes.values_mut() {
            self.fed |= std::mem::take(&mut lane.starved);
        }
        self.fed || self.behind.len() > 0
    }
}
