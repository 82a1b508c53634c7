//! How many requests may be open: in all, and to each Connection.
//!
//! And how many results may wait to be written: while there are as many as requests may be open, nothing
//! new is admitted, so that in all there are never more than twice as many.
//!
//! A permit is taken or refused, never waited for: what is refused waits in the database and costs
//! nothing here. A short lock over a map of the Connections that have requests open.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use domain::ConnectionName;
use tokio::sync::Notify;

pub(crate) struct Lanes {
    max_open: u32,
    lane_limit: u32,
    state: Mutex<State>,
    freed: Notify,
}

#[derive(Default)]
struct State {
    open: u32,
    unwritten: u32,
    lanes: HashMap<ConnectionName, u32>,
}

/// The right to have one request open; dropping it gives the place to another.
pub(crate) struct Permit {
    lanes: Arc<Lanes>,
    connection: ConnectionName,
}

/// A result that is to be written, until it is dropped.
pub(crate) struct Unwritten {
    lanes: Arc<Lanes>,
}

impl Lanes {
    pub(crate) fn new(max_open: u32, lane_limit: u32) -> Arc<Self> {
        Arc::new(Self {
            max_open,
            lane_limit,
            state: Mutex::default(),
            freed: Notify::new(),
        })
    }

    pub(crate) fn admit(self: &Arc<Self>, connection: ConnectionName) -> Option<Permit> {
        let mut state = self.lock();
        if self.room_in(&state) == 0 {
            return None;
        }
        let lane = state.lanes.entry(connection).or_default();
        if *lane >= self.lane_limit {
            return None;
        }
        *lane += 1;
        state.open += 1;
        Some(Permit {
            lanes: Arc::clone(self),
            connection,
        })
    }

    /// How many more may be open in all.
    pub(crate) fn room(&self) -> u32 {
        self.room_in(&self.lock())
    }

    fn room_in(&self, state: &State) -> u32 {
        if state.unwritten >= self.max_open {
            return 0;
        }
        self.max_open.saturating_sub(state.open)
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

    /// The Connections that take no more at present.
    pub(crate) fn full(&self) -> Vec<ConnectionName> {
        let state = self.lock();
        let full = state
            .lanes
            .iter()
            .filter(|(_, open)| **open >= self.lane_limit);
        full.map(|(connection, _)| *connection).collect()
    }

    /// Resolves when a place was given back.
    pub(crate) async fn freed(&self) {
        self.freed.notified().await;
    }

    /// Resolves when nothing is open.
    pub(crate) async fn drained(&self) {
        while self.open() > 0 {
            tokio::select! {
                () = self.freed() => {}
                // A place may have been given back between the look and the wait.
                () = tokio::time::sleep(std::time::Duration::from_millis(20)) => {}
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        state.open = state.open.saturating_sub(1);
        if let Some(lane) = state.lanes.get_mut(&self.connection) {
            *lane -= 1;
            if *lane == 0 {
                state.lanes.remove(&self.connection);
            }
        }
        drop(state);
        self.lanes.freed.notify_waiters();
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        state.unwritten = state.unwritten.saturating_sub(1);
        drop(state);
        self.lanes.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use domain::{ConnectionName, Id};

    use super::Lanes;

    fn connection() -> ConnectionName {
        ConnectionName {
            namespace: Id::generate(),
            connection: Id::generate(),
        }
    }

    #[test]
    fn a_full_lane_leaves_room_for_others() {
        let lanes = Lanes::new(3, 2);
        let (slow, quick) = (connection(), connection());
        let held: Vec<_> = (0..5).map_while(|_| lanes.admit(slow)).collect();
        assert_eq!(held.len(), 2);
        assert_eq!(lanes.full(), [slow]);
        let other = lanes.admit(quick);
        assert!(other.is_some());
        assert!(lanes.admit(connection()).is_none(), "all places are taken");
        drop(held);
        assert_eq!(lanes.room(), 2);
        assert!(lanes.full().is_empty());
    }

    #[test]
    fn results_that_cannot_be_written_hold_back_requests() {
        let lanes = Lanes::new(3, 3);
        let mut unwritten: Vec<_> = (0..2).map(|_| lanes.unwritten()).collect();
        assert_eq!(lanes.room(), 3);
        let open = lanes.admit(connection());
        assert!(open.is_some());
        unwritten.push(lanes.unwritten());
        drop(open);
        assert_eq!(lanes.room(), 0);
        assert!(lanes.admit(connection()).is_none());
        unwritten.pop();
        assert_eq!(lanes.room(), 3);
        assert!(lanes.admit(connection()).is_some());
    }
}
