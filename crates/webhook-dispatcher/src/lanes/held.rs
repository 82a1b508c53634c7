//! Parts of a lane that are in use: a place, an open request, an unwritten result. Each is returned when it is
//! dropped, so nothing stays in use for ever, however a task ends.

use std::sync::Arc;

use domain::ConnectionName;

use super::{Lanes, Ready};

/// A reserved place in a lane, until it is filled or dropped.
pub(crate) struct Place {
    pub(super) lanes: Arc<Lanes>,
    pub(crate) connection: ConnectionName,
    /// Reserved bytes.
    pub(super) bytes: usize,
    pub(super) filled: bool,
}

/// Permit to have one request open, until it is done or dropped.
pub(crate) struct Permit {
    pub(super) lanes: Arc<Lanes>,
    pub(super) connection: ConnectionName,
    pub(super) opened: u64,
    pub(super) bytes: usize,
    pub(super) success: bool,
}

/// A result that is not written yet, until it is dropped.
pub(crate) struct Unwritten {
    pub(super) lanes: Arc<Lanes>,
}

/// Keeps a lane blocked until the pause that its endpoint asked for is written, or this is dropped.
pub(crate) struct Pause {
    pub(super) lanes: Arc<Lanes>,
    pub(super) connection: ConnectionName,
}

impl Place {
    /// Reserves as many bytes as the delivery has, which is mostly fewer than before.
    pub(crate) fn fit(&mut self, ready: &Ready) {
        let lanes = Arc::clone(&self.lanes);
        lanes.lock().fit(self, ready.bytes());
    }
}

impl Permit {
    /// Records that the request has ended; `success` says whether it was acknowledged.
    pub(crate) fn done(mut self, success: bool) {
        self.success = success;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut guard = self.lanes.lock();
        let state = &mut *guard;
        if let Some(lane) = state.lanes.get(&self.connection) {
            state.open.release(lane.account, 1);
            if lane.endpoint.is_on_probation() {
                state.probation_open.release(lane.account, 1);
            }
        }
        state.release(self.connection, 1, self.bytes);
        let most = self.lanes.lane_limit;
        state.change(self.connection, |lane| {
            lane.close(self.opened, self.success, most);
        });
        state.list(self.connection);
        let hungry = state
            .lanes
            .get_mut(&self.connection)
            .filter(|lane| lane.is_hungry());
        let fed = hungry.as_ref().is_some_and(|lane| lane.starved);
        let hungry = hungry.map(|lane| lane.starved = false).is_some();
        state.fed |= fed;
        // Other lanes may wait for these bytes.
        let hungry = std::mem::take(&mut state.short_of_bytes) || hungry;
        drop(guard);
        self.lanes.freed.notify_waiters();
        if hungry {
            self.lanes.hungry.notify_one();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.filled {
            return;
        }
        let mut guard = self.lanes.lock();
        let state = &mut *guard;
        if let Some(lane) = state.lanes.get_mut(&self.connection) {
            lane.promised = lane.promised.saturating_sub(1);
        }
        state.release(self.connection, 1, self.bytes);
        drop(guard);
        self.lanes.freed.notify_waiters();
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        if let Some(lane) = self.lanes.lock().lanes.get_mut(&self.connection) {
            lane.endpoint.end_pause();
        }
    }
}

impl Drop for Unwritten {
    fn drop(&mut self) {
        let mut state = self.lanes.lock();
        let full = state.unwritten >= self.lanes.max_open;
        state.unwritten = state.unwritten.saturating_sub(1);
        // Lanes that were refused meanwhile may have no open request, whose end would make them try again.
        let hungry = full && state.unwritten < self.lanes.max_open && state.feed();
        drop(state);
        self.lanes.freed.notify_waiters();
        if hungry {
            self.lanes.hungry.notify_one();
        }
    }
}
