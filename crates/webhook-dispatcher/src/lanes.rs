//! Limits of open requests: in total, per Connection, and whose turn is next.
//!
//! What a Connection has here is its lane: so many requests open at a time, from one on up to the lane's
//! limit, one more with each success and half with each failure; and a short queue behind them, leased and
//! in memory, as long as the lane works off in a moment. What finds no place waits in the database and
//! costs nothing here.
//!
//! Promises: never more open requests than `max_open`. Connections that are new, failing or slow (no answer
//! within two seconds) are on probation, and open nothing while they hold a quarter of that together.
//! Accounts take turns, and so do the Connections of an account. While as many results wait to be written
//! as requests may be open, nothing new is taken.
//!
//! One short lock; a step costs the same however many Connections there are.

mod held;
mod lane;
mod ring;
mod state;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use domain::{ConnectionName, Id};
use store::deliveries::Task;
use tokio::sync::Notify;

pub(crate) use held::{Permit, Place, Unwritten};
use state::State;

use crate::record::InHand;

/// Time without events after which a lane is forgotten, and is new again.
const FORGET: Duration = Duration::from_secs(600);

/// Minimum share of a batch of claims for each Connection that is behind.
const LEAST_SHARE: u32 = 8;

pub(crate) struct Lanes {
    max_open: u32,
    lane_limit: u32,
    state: Mutex<State>,
    freed: Notify,
    hungry: Notify,
}

/// A leased delivery that waits for its request.
pub(crate) struct Ready {
    pub(crate) task: Task,
    /// The one probe of an open breaker.
    pub(crate) probe: bool,
    /// Held from its lease on.
    pub(crate) in_hand: InHand,
}

impl Ready {
    /// Returns true if it is sent although the breaker is open.
    fn is_exempt(&self) -> bool {
        self.probe || self.task.urgent
    }
}

/// Origin of a delivery.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Its Scan has just been made.
    Fresh,
    /// The delivery has waited in the database.
    Waiting,
}

impl Lanes {
    pub(crate) fn new(max_open: u32, lane_limit: u32) -> Arc<Self> {
        Arc::new(Self {
            max_open,
            lane_limit,
            state: Mutex::default(),
            freed: Notify::new(),
            hungry: Notify::new(),
        })
    }

    /// A place for what is fresh: none where older ones wait in the database.
    pub(crate) fn offer(
        self: &Arc<Self>,
        connection: ConnectionName,
        account: Id,
    ) -> Option<Place> {
        let mut state = self.lock();
        let lane = state.lane(connection, account);
        if lane.behind {
            return None;
        }
        lane.blocked = false;
        self.promise(&mut state, connection, 1, Origin::Fresh).pop()
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
        self.promise(&mut state, connection, most, Origin::Waiting)
    }

    /// Returns a place for a probe, or for a delivery that a person asked for, regardless of other limits.
    pub(crate) fn exempt_place(self: &Arc<Self>, connection: ConnectionName, account: Id) -> Place {
        let mut state = self.lock();
        state.lane(connection, account).promised += 1;
        state.hold(connection, 1);
        Place {
            lanes: Arc::clone(self),
            connection,
            filled: false,
        }
    }

    /// Returns true if a Connection has a place for what waits; if not, [`Self::hungry`] tells when it has.
    pub(crate) fn has_place(&self, connection: ConnectionName, account: Id) -> bool {
        let mut state = self.lock();
        let room = self.room(&state, Origin::Waiting) > 0;
        let lane = state.lane(connection, account);
        lane.starved = !room || lane.held() * 2 > lane.capacity();
        !lane.starved
    }

    /// Places for what waits in the database, of lanes that are half empty at least; accounts take turns.
    pub(crate) fn wants(self: &Arc<Self>, most: u32) -> Vec<(ConnectionName, Vec<Place>)> {
        let mut state = self.lock();
        let mut wants = Vec::new();
        let mut left = most;
        // A place costs nothing, but a batch of few Connections keeps the others waiting.
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
            if !lane.behind || lane.blocked {
                lane.behind = false;
                continue;
            }
            let (held, capacity) = (lane.held(), lane.capacity());
            state.behind.push(account, connection);
            if held * 2 > capacity {
                continue;
            }
            let places = self.promise(
                &mut state,
                connection,
                left.min(share).min(capacity - held),
                Origin::Waiting,
            );
            if !places.is_empty() {
                left -= u32::try_from(places.len()).unwrap_or(left);
                wants.push((connection, places));
            }
        }
        wants
    }

    fn promise(
        self: &Arc<Self>,
        state: &mut State,
        connection: ConnectionName,
        most: u32,
        origin: Origin,
    ) -> Vec<Place> {
        let in_all = self.room(state, origin);
        // However short the others' queues are, no one's is all there is.
        let longest = (self.max_held() / 4).max(self.lane_limit);
        let Some(lane) = state.lanes.get_mut(&connection) else {
            return Vec::new();
        };
        let mut count = most
            .min(in_all)
            .min(lane.capacity().min(longest).saturating_sub(lane.held()));
        if lane.on_probation {
            count = count.min(
                (self.max_held() / 4)
                    .max(1)
                    .saturating_sub(state.probation_held),
            );
        }
        lane.promised += count;
        state.hold(connection, count);
        let place = |_| Place {
            lanes: Arc::clone(self),
            connection,
            filled: false,
        };
        (0..count).map(place).collect()
    }

    /// How many more may be held. What is fresh finds room where backlogs have taken all of theirs.
    fn room(&self, state: &State, origin: Origin) -> u32 {
        if state.unwritten >= self.max_open {
            return 0;
        }
        let most = match origin {
            Origin::Waiting => self.max_held(),
            Origin::Fresh => self.max_held().saturating_mul(2),
        };
        most.saturating_sub(state.held)
    }

    fn max_held(&self) -> u32 {
        self.max_open.saturating_mul(2)
    }

    /// Queues a delivery in its place; gives it back where the breaker has opened meanwhile.
    pub(crate) fn put(&self, mut place: Place, ready: Ready) -> Result<(), Box<Ready>> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(lane) = state.lanes.get_mut(&place.connection) else {
            return Err(Box::new(ready));
        };
        if lane.blocked && !ready.is_exempt() {
            drop(guard);
            return Err(Box::new(ready));
        }
        place.filled = true;
        lane.promised -= 1;
        if ready.is_exempt() {
            lane.queue.push_front(ready);
        } else {
            lane.queue.push_back(ready);
        }
        state.list(place.connection);
        Ok(())
    }

    /// The next delivery that may open a request.
    pub(crate) fn next(self: &Arc<Self>) -> Option<(Ready, Permit)> {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.closing || state.open >= self.max_open || state.unwritten >= self.max_open {
            return None;
        }
        let probation = state.probation_open < (self.max_open / 4).max(1);
        state.probation_turn = !state.probation_turn;
        let first = state.probation_turn;
        let (connection, ready) = [first, !first].into_iter().find_map(|on_probation| {
            if on_probation && !probation {
                return None;
            }
            state.take(on_probation)
        })?;
        state.open += 1;
        state.opened += 1;
        let opened = state.opened;
        if let Some(lane) = state.lanes.get_mut(&connection) {
            lane.open.push((opened, Instant::now()));
            if lane.on_probation {
                state.probation_open += 1;
            }
        }
        state.list(connection);
        Some((
            ready,
            Permit {
                lanes: Arc::clone(self),
                connection,
                opened,
                success: false,
            },
        ))
    }

    /// More of a Connection's waits in the database, and goes before what is fresh.
    pub(crate) fn fall_behind(&self, connection: ConnectionName, account: Id) {
        let mut state = self.lock();
        let lane = state.lane(connection, account);
        lane.blocked = false;
        if !std::mem::replace(&mut lane.behind, true) {
            state.behind.push(account, connection);
        }
    }

    /// The Connection has no more sendable deliveries in the database.
    pub(crate) fn catch_up(&self, connection: ConnectionName) {
        if let Some(lane) = self.lock().lanes.get_mut(&connection) {
            lane.behind = false;
        }
    }

    /// Connections with more deliveries in the database, as far as is known here.
    pub(crate) fn behind(&self) -> Vec<ConnectionName> {
        let state = self.lock();
        let behind = state.lanes.iter().filter(|(_, lane)| lane.behind);
        behind.map(|(connection, _)| *connection).collect()
    }

    /// The Connection's breaker has opened: returns what was queued, to be handed back.
    pub(crate) fn block(&self, connection: ConnectionName) -> Vec<Ready> {
        let mut guard = self.lock();
        let state = &mut *guard;
        let Some(lane) = state.lanes.get_mut(&connection) else {
            return Vec::new();
        };
        lane.blocked = true;
        lane.limit = 1;
        let (kept, given): (VecDeque<_>, VecDeque<_>) =
            lane.queue.drain(..).partition(Ready::is_exempt);
        lane.queue = kept;
        let count = u32::try_from(given.len()).unwrap_or(u32::MAX);
        state.release(connection, count);
        given.into()
    }

    /// The breaker is closed.
    pub(crate) fn unblock(&self, connection: ConnectionName) {
        if let Some(lane) = self.lock().lanes.get_mut(&connection) {
            lane.blocked = false;
        }
    }

    /// All that is queued, at the end of the process: to be handed back. Nothing more is opened.
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
            state.release(connection, u32::try_from(queue.len()).unwrap_or(u32::MAX));
            given.extend(queue);
        }
        given
    }

    /// Puts lanes whose answers are overdue on probation, and forgets those that are idle.
    pub(crate) fn tick(&self) {
        let mut guard = self.lock();
        let state = &mut *guard;
        let now = Instant::now();
        let overdue: Vec<ConnectionName> = state
            .lanes
            .iter()
            .filter(|(_, lane)| !lane.on_probation && lane.is_overdue(now))
            .map(|(connection, _)| *connection)
            .collect();
        for connection in overdue {
            if let Some(lane) = state.lanes.get_mut(&connection) {
                lane.slow = true;
            }
            state.classify(connection);
        }
        state
            .lanes
            .retain(|_, lane| lane.is_used() || now - lane.used < FORGET);
    }

    /// Counts a result, before its permit is given back.
    pub(crate) fn unwritten(self: &Arc<Self>) -> Unwritten {
        self.lock().unwritten += 1;
        Unwritten {
            lanes: Arc::clone(self),
        }
    }

    pub(crate) fn open(&self) -> u32 {
        self.lock().open
    }

    /// How many lanes there are, and how many of them are on probation.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        let on_probation = state.lanes.values().filter(|lane| lane.on_probation);
        (state.lanes.len(), on_probation.count())
    }

    /// Returns true if anything is open, queued or promised.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().held == 0
    }

    /// Resolves when a place was given back.
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

#[cfg(test)]
mod tests;
