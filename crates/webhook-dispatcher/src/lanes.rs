//! Limits on open requests, in total and per Connection, and their order.
//!
//! A Connection's state in this process is its lane. It limits the open requests: from one up to the lane's limit, one
//! more after each success and half after each failure. Behind them is a short queue of leased deliveries in memory, of
//! what the lane sends in a quarter of a second. Everything else waits in the database and costs nothing here.
//! [`endpoint`] has the states of a lane's endpoint, and their transitions.
//!
//! Guarantees: there are never more open requests than `max_open`. Connections that are new, failing or slow (no
//! answer within two seconds) are on probation. Together they may have half of `max_open` open. Of this half, one
//! account may use fewer than it leaves free ([`store::fair`]), so at most a quarter of `max_open`. Accounts take
//! turns, and so do the Connections of an account. An account alone opens seven eighths of the maximum, so that others
//! find capacity even if all its Connections hang at once. No delivery is taken while as many results wait to be
//! written as requests may be open. The total size of the posts of all held deliveries is limited, and one account
//! alone uses at most three quarters of it.
//!
//! It uses one short lock, and a step costs the same for any number of Connections.

mod endpoint;
mod held;
mod lane;
mod ready;
mod ring;
mod state;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::{ConnectionName, Id};
use tokio::sync::Notify;

use endpoint::EndpointState;
pub(crate) use held::{Pause, Permit, Place, Unwritten};
use lane::Open;
use ready::Origin;
pub(crate) use ready::Ready;
use state::State;

/// Time without events after which a lane is forgotten. It then counts as new.
const FORGET: Duration = Duration::from_secs(600);

/// Maximum number of requested deliveries that are held at a time.
const MAX_URGENT: u32 = 32;

/// Bytes that are reserved for a delivery whose post is not read yet: the longest title and text, 40,500 characters of
/// four bytes.
const LARGEST_POST: usize = 4 * 40_500;

/// Minimum share of a batch of claims for each Connection that is behind.
const LEAST_SHARE: u32 = 8;

pub(crate) struct Lanes {
    max_open: u32,
    lane_limit: u32,
    state: Mutex<State>,
    freed: Notify,
    hungry: Notify,
}

impl Lanes {
    pub(crate) fn new(max_open: u32, lane_limit: u32) -> Arc<Self> {
        Arc::new(Self {
            max_open,
            lane_limit,
            state: Mutex::new(State::new(max_open, max_open.saturating_mul(2))),
            freed: Notify::new(),
            hungry: Notify::new(),
        })
    }

    /// Returns a place for a new delivery with a post of this size; none if older ones wait in the database.
    pub(crate) fn offer(
        self: &Arc<Self>,
        connection: ConnectionName,
        account: Id,
        bytes: usize,
    ) -> Option<Place> {
        let mut state = self.lock();
        let lane = state.lane(connection, account);
        if lane.behind || !lane.endpoint.unblock() {
            return None;
        }
        self.promise(&mut state, connection, 1, bytes, Origin::Fresh)
            .pop()
    }

    /// Returns up to `most` places for waiting deliveries, even if the lane is behind.
    pub(crate) fn places(
        self: &Arc<Self>,
        connection: ConnectionName,
        account: Id,
        most: u32,
    ) -> Vec<Place> {
        let mut state = self.lock();
        state.lane(connection, account);
        self.promise(&mut state, connection, most, LARGEST_POST, Origin::Waiting)
    }

    /// Returns a place for a probe, or for a delivery that a person asked for, regardless of other limits.
    pub(crate) fn exempt_place(self: &Arc<Self>, connection: ConnectionName, account: Id) -> Place {
        let mut state = self.lock();
        state.lane(connection, account).promised += 1;
        state.hold(connection, 1, LARGEST_POST);
        Place {
            lanes: Arc::clone(self),
            connection,
            bytes: LARGEST_POST,
            filled: false,
        }
    }

    /// Returns the Connection and the account of each requested delivery that is queued or open.
    pub(crate) fn urgent(&self) -> Vec<(ConnectionName, Id)> {
        let state = self.lock();
        let urgent = state.lanes.iter().flat_map(|(connection, lane)| {
            std::iter::repeat_n((*connection, lane.account), lane.urgent_count())
        });
        urgent.collect()
    }

    /// Maximum number of requested deliveries that are queued or open. They leave capacity for others.
    pub(crate) fn max_urgent(&self) -> u32 {
        (self.max_held() / 4).clamp(1, MAX_URGENT)
    }

    /// Returns true if a Connection has a place for a waiting delivery. If not, [`Self::hungry`] reports when it
    /// has.
    pub(crate) fn has_place(&self, connection: ConnectionName, account: Id) -> bool {
        let mut state = self.lock();
        let admitted = state.probation_held.admits(account);
        let room = self.room(&state, Origin::Waiting) > 0 && state.held_places.admits(account);
        let room = room && state.post_bytes.admitted(account) >= LARGEST_POST;
        let lane = state.lane(connection, account);
        let endpoint = &lane.endpoint;
        let room = room && (admitted || !endpoint.is_on_probation()) && !endpoint.is_paused();
        lane.starved = !room || lane.held() * 2 > lane.endpoint.capacity();
        !lane.starved
    }

    /// Returns places for deliveries that wait in the database, in lanes that are at least half empty; accounts
    /// take turns.
    pub(crate) fn wants(self: &Arc<Self>, most: u32) -> Vec<(ConnectionName, Vec<Place>)> {
        let mut state = self.lock();
        let mut wants = Vec::new();
        let mut left = most;
        // A place costs nothing, but a batch with few Connections keeps the others waiting.
        let behind = u32::try_from(state.behind.len()).unwrap_or(u32::MAX);
        let share = (most / behind.max(1)).max(LEAST_SHARE);
        for _ in 0..state.behind.len() {
            if left == 0 {
                break;
            }
            let Some((account, connection)) = state.behind.pop() else {
                break;
            };
            let lane = state.lane(connection, account);
            if !lane.behind || lane.endpoint.is_blocked() {
                lane.behind = false;
                continue;
            }
            let (held, capacity) = (lane.held(), lane.endpoint.capacity());
            state.behind.push(account, connection);
            if held * 2 > capacity {
                continue;
            }
            let places = self.promise(
                &mut state,
                connection,
                left.min(share).min(capacity - held),
                LARGEST_POST,
                Origin::Waiting,
            );
            if !places.is_empty() {
                left -= u32::try_from(places.len()).unwrap_or(left);
                wants.push((connection, places));
            }
        }
        wants
    }

    /// Reserves places with `bytes` each.
    fn promise(
        self: &Arc<Self>,
        state: &mut State,
        connection: ConnectionName,
        most: u32,
        bytes: usize,
        origin: Origin,
    ) -> Vec<Place> {
        let mut in_all = self.room(state, origin);
        if let (Origin::Waiting, Some(lane)) = (origin, state.lanes.get(&connection)) {
            in_all = in_all.min(number(state.held_places.admitted(lane.account)));
        }
        // Even if the other queues are short, no lane may take all capacity.
        let longest = (self.max_held() / 4).max(self.lane_limit);
        let Some(lane) = state.lanes.get_mut(&connection) else {
            return Vec::new();
        };
        let capacity = lane.endpoint.capacity().min(longest);
        let mut count = most.min(in_all).min(capacity.saturating_sub(lane.held()));
        if lane.endpoint.is_on_probation() {
            let admitted = state.probation_held.admitted(lane.account);
            count = count.min(number(admitted));
        }
        let in_bytes = state.post_bytes.admitted(lane.account).checked_div(bytes);
        let in_bytes = in_bytes.map_or(count, number);
        state.short_of_bytes |= in_bytes < count;
        count = count.min(in_bytes);
        lane.promised += count;
        state.hold(connection, count, bytes * count as usize);
        let place = |_| Place {
            lanes: Arc::clone(self),
            connection,
            bytes,
            filled: false,
        };
        (0..count).map(place).collect()
    }

    /// Returns how many more may be held. New deliveries find capacity even if backlogs have taken all of theirs.
    fn room(&self, state: &State, origin: Origin) -> u32 {
        if state.unwritten >= self.max_open {
            return 0;
        }
        let room = self.max_held().saturating_mul(2).saturating_sub(state.held);
        match origin {
            // An account that holds none may take one, even if backlogs have taken all.
            Origin::Waiting => room.min(number(state.held_places.free()).max(1)),
            Origin::Fresh => room,
        }
    }

    fn max_held(&self) -> u32 {
        self.max_open.saturating_mul(2)
    }

    /// Queues a delivery in its place; returns it if the circuit breaker has opened meanwhile.
    pub(crate) fn put(&self, mut place: Place, ready: Ready) -> Result<(), Box<Ready>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(lane) = state.lanes.get_mut(&place.connection) else {
            return Err(Box::new(ready));
        };
        if lane.endpoint.is_blocked() && !ready.is_exempt() {
            drop(guard);
            return Err(Box::new(ready));
        }
        place.filled = true;
        lane.promised -= 1;
        let bytes = ready.bytes();
        if ready.is_exempt() {
            lane.queue.push_front(ready);
        } else {
            lane.queue.push_back(ready);
        }
        state.fit(&mut place, bytes);
        state.list(place.connection);
        Ok(())
    }

    /// Returns the next delivery whose request may be opened.
    pub(crate) fn next(self: &Arc<Self>) -> Option<(Ready, Permit)> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closing || state.open.free() == 0 || state.unwritten >= self.max_open {
            return None;
        }
        state.probation_turn = !state.probation_turn;
        let first = state.probation_turn;
        let (connection, ready) = [first, !first]
            .into_iter()
            .find_map(|on_probation| state.take(on_probation))?;
        state.opened += 1;
        let (opened, bytes) = (state.opened, ready.bytes());
        if let Some(lane) = state.lanes.get_mut(&connection) {
            lane.open.push(Open {
                number: opened,
                since: Instant::now(),
                urgent: ready.task.urgent,
            });
            state.open.take(lane.account);
            if lane.endpoint.is_on_probation() {
                state.probation_open.take(lane.account);
            }
        }
        state.list(connection);
        Some((
            ready,
            Permit {
                lanes: Arc::clone(self),
                connection,
                opened,
                bytes,
                success: false,
            },
        ))
    }

    /// Records that more deliveries of a Connection wait in the database. They go before new ones.
    pub(crate) fn mark_backlogged(&self, connection: ConnectionName, account: Id) {
        let mut state = self.lock();
        let lane = state.lane(connection, account);
        lane.endpoint.unblock();
        if !std::mem::replace(&mut lane.behind, true) {
            state.behind.push(account, connection);
        }
    }

    /// Records that a Connection has no more sendable deliveries in the database.
    pub(crate) fn clear_backlog(&self, connection: ConnectionName) {
        if let Some(lane) = self.lock().lanes.get_mut(&connection) {
            lane.behind = false;
        }
    }

    /// Connections that are known here to have more deliveries in the database.
    pub(crate) fn behind(&self) -> Vec<ConnectionName> {
        let state = self.lock();
        let behind = state.lanes.iter().filter(|(_, lane)| lane.behind);
        behind.map(|(connection, _)| *connection).collect()
    }

    /// Records that the circuit breaker has opened. Returns the queued deliveries, which must be handed back.
    pub(crate) fn block(&self, connection: ConnectionName) -> Vec<Ready> {
        self.empty_blocked(connection, EndpointState::block)
    }

    /// Same as [`Self::block`], and until the pause is dropped, nothing unblocks the lane: the database does not know
    /// yet that the endpoint asked for it.
    pub(crate) fn pause(self: &Arc<Self>, connection: ConnectionName) -> (Pause, Vec<Ready>) {
        let given = self.empty_blocked(connection, EndpointState::pause);
        let pause = Pause {
            lanes: Arc::clone(self),
            connection,
        };
        (pause, given)
    }

    fn empty_blocked(
        &self,
        connection: ConnectionName,
        block: fn(&mut EndpointState),
    ) -> Vec<Ready> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(lane) = state.lanes.get_mut(&connection) else {
            return Vec::new();
        };
        block(&mut lane.endpoint);
        let (kept, given): (VecDeque<_>, VecDeque<_>) =
            lane.queue.drain(..).partition(Ready::is_exempt);
        lane.queue = kept;
        let count = u32::try_from(given.len()).unwrap_or(u32::MAX);
        let bytes = given.iter().map(Ready::bytes).sum();
        state.release(connection, count, bytes);
        given.into()
    }

    /// Records that the circuit breaker has closed.
    pub(crate) fn unblock(&self, connection: ConnectionName) {
        if let Some(lane) = self.lock().lanes.get_mut(&connection) {
            lane.endpoint.unblock();
        }
    }

    /// Returns all queued deliveries at the end of the process; they must be handed back. Nothing more is opened.
    pub(crate) fn empty(&self) -> Vec<Ready> {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.closing = true;
        let mut given = Vec::new();
        let connections: Vec<ConnectionName> = state.lanes.keys().copied().collect();
        for connection in connections {
            let Some(lane) = state.lanes.get_mut(&connection) else {
                continue;
            };
            let queue = std::mem::take(&mut lane.queue);
            let bytes = queue.iter().map(Ready::bytes).sum();
            state.release(connection, number(queue.len()), bytes);
            given.extend(queue);
        }
        given
    }

    /// Puts lanes with overdue answers on probation, and forgets idle ones.
    pub(crate) fn tick(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let now = Instant::now();
        let overdue: Vec<ConnectionName> = state
            .lanes
            .iter()
            .filter(|(_, lane)| lane.is_overdue(now))
            .map(|(connection, _)| *connection)
            .collect();
        for connection in overdue {
            state.change(connection, |lane| lane.endpoint.mark_overdue());
        }
        state
            .lanes
            .retain(|_, lane| lane.is_used() || now - lane.used < FORGET);
    }

    /// Counts a result as unwritten until the returned value is dropped. Call it before the request's permit is
    /// returned.
    pub(crate) fn unwritten(self: &Arc<Self>) -> Unwritten {
        self.lock().unwritten += 1;
        Unwritten {
            lanes: Arc::clone(self),
        }
    }

    pub(crate) fn open(&self) -> u32 {
        let state = self.lock();
        self.max_open.saturating_sub(number(state.open.free()))
    }

    /// Number of lanes, and number of lanes on probation.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        let lanes = state.lanes.values();
        let on_probation = lanes.filter(|lane| lane.endpoint.is_on_probation());
        (state.lanes.len(), on_probation.count())
    }

    /// Returns true if anything is open, queued or promised.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().held == 0
    }

    /// Resolves when a place was returned.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Resolves when a lane with more deliveries in the database has places for them.
    pub(crate) async fn hungry(&self) {
        self.hungry.notified().await;
    }

    /// Returns true if a Connection without places ([`Self::has_place`]) got some since the last call.
    pub(crate) fn take_fed(&self) -> bool {
        std::mem::take(&mut self.lock().fed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
