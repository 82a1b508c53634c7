//! Counts of the lanes and their order, behind the single lock of [`super::Lanes`].

use std::collections::HashMap;

use domain::{ConnectionName, Id};
use store::fair::Places;

use super::{held::Place, lane::Lane, ready::Ready, ring::Ring};
use crate::metrics;

/// An account alone has at most seven eighths of all open requests. With as many as it likes it could keep others
/// waiting for as long as its requests hang.
const WEIGHT: usize = 7;

/// Maximum size of the posts of all deliveries that are held. A post counts once for each delivery, even if several
/// share it, because each has a body of that size while its request is open.
pub(super) const MAX_POST_BYTES: usize = 64 * 1024 * 1024;
/// An account alone has at most three quarters of it.
const BYTES_WEIGHT: usize = 3;

pub(super) struct State {
    pub(super) open: Places,
    /// Open requests of lanes on probation.
    pub(super) probation_open: Places,
    /// Number of open, queued and reserved deliveries.
    pub(super) held: u32,
    /// The same by account, for deliveries that wait in the database.
    pub(super) held_places: Places,
    pub(super) probation_held: Places,
    pub(super) post_bytes: Places,
    /// True if a delivery found no bytes since the last one ended.
    pub(super) short_of_bytes: bool,
    pub(super) unwritten: u32,
    /// True if no more requests are opened.
    pub(super) closing: bool,
    pub(super) opened: u64,
    pub(super) lanes: HashMap<ConnectionName, Lane>,
    /// Lanes with queued deliveries that may open more requests, by class.
    pub(super) steady: Ring,
    pub(super) probation: Ring,
    /// Lanes with more deliveries in the database.
    pub(super) behind: Ring,
    pub(super) probation_turn: bool,
    /// True if a throttled lane that found no place has one now.
    pub(super) fed: bool,
}

impl State {
    pub(super) fn new(max_open: u32, max_held: u32) -> Self {
        // A lane that goes on probation keeps all that it holds, so a limit may be exceeded.
        let half = |count: u32| Places::new(number(count / 2).max(1)).ignoring_excess();
        Self {
            open: Places::weighted(number(max_open), WEIGHT),
            probation_open: half(max_open),
            held: 0,
            held_places: Places::weighted(number(max_held), WEIGHT).ignoring_excess(),
            probation_held: half(max_held),
            post_bytes: Places::weighted(MAX_POST_BYTES, BYTES_WEIGHT),
            short_of_bytes: false,
            unwritten: 0,
            closing: false,
            opened: 0,
            lanes: HashMap::new(),
            steady: Ring::default(),
            probation: Ring::default(),
            behind: Ring::default(),
            probation_turn: false,
            fed: false,
        }
    }

    pub(super) fn lane(&mut self, connection: ConnectionName, account: Id) -> &mut Lane {
        self.lanes
            .entry(connection)
            .or_insert_with(|| Lane::new(account))
    }

    /// Counts `count` deliveries with `bytes` in total.
    pub(super) fn hold(&mut self, connection: ConnectionName, count: u32, bytes: usize) {
        self.held += count;
        if let Some(lane) = self.lanes.get(&connection) {
            self.post_bytes.take_some(lane.account, bytes);
            metrics::POST_BYTES.add(signed(bytes));
            self.held_places.take_some(lane.account, number(count));
            if lane.endpoint.is_on_probation() {
                self.probation_held.take_some(lane.account, number(count));
            }
        }
    }

    pub(super) fn release(&mut self, connection: ConnectionName, count: u32, bytes: usize) {
        self.held = self.held.saturating_sub(count);
        if let Some(lane) = self.lanes.get(&connection) {
            self.post_bytes.release(lane.account, bytes);
            metrics::POST_BYTES.sub(signed(bytes));
            self.held_places.release(lane.account, number(count));
            if lane.endpoint.is_on_probation() {
                self.probation_held.release(lane.account, number(count));
            }
        }
    }

    /// Replaces the reserved bytes of a place with those of its delivery.
    pub(super) fn fit(&mut self, place: &mut Place, bytes: usize) {
        self.release(place.connection, 0, place.bytes);
        self.hold(place.connection, 0, bytes);
        place.bytes = bytes;
    }

    /// Lists a lane with something to open, so that [`Self::take`] finds it.
    pub(super) fn list(&mut self, connection: ConnectionName) {
        let Some(lane) = self.lanes.get_mut(&connection) else {
            return;
        };
        if lane.listed || !lane.can_open() {
            return;
        }
        lane.listed = true;
        let ring = if lane.endpoint.is_on_probation() {
            &mut self.probation
        } else {
            &mut self.steady
        };
        ring.push(lane.account, connection);
    }

    /// Returns the next lane of a class, of an account that may open a request. Lanes that changed class since they were
    /// listed are moved on the way.
    pub(super) fn take(&mut self, on_probation: bool) -> Option<(ConnectionName, Ready)> {
        loop {
            let (open, open_on_probation) = (&self.open, &self.probation_open);
            let (_, connection) = if on_probation {
                let admits = |id| open.admits(id) && open_on_probation.admits(id);
                self.probation.pop_of(admits)?
            } else {
                self.steady.pop_of(|id| open.admits(id))?
            };
            let Some(lane) = self.lanes.get_mut(&connection) else {
                continue;
            };
            lane.listed = false;
            if !lane.can_open() {
                continue;
            }
            if lane.endpoint.is_on_probation() != on_probation {
                self.list(connection);
                continue;
            }
            if let Some(ready) = lane.queue.pop_front() {
                return Some((connection, ready));
            }
        }
    }

    /// Changes a lane, and counts it in the class that it has then.
    pub(super) fn change(&mut self, connection: ConnectionName, change: impl FnOnce(&mut Lane)) {
        let Some(lane) = self.lanes.get_mut(&connection) else {
            return;
        };
        let was_on_probation = lane.endpoint.is_on_probation();
        change(lane);
        let on_probation = lane.endpoint.is_on_probation();
        if on_probation == was_on_probation {
            return;
        }
        let (account, open, held) = (lane.account, lane.open_count(), lane.held());
        for (places, count) in [
            (&mut self.probation_open, open),
            (&mut self.probation_held, held),
        ] {
            if on_probation {
                places.take_some(account, number(count));
            } else {
                places.release(account, number(count));
            }
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

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn number(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
