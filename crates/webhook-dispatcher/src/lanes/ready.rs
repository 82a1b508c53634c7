//! Leased deliveries that wait for their requests.

use store::deliveries::Task;

use crate::in_hand::InHand;

/// A leased delivery that waits for its request.
pub(crate) struct Ready {
    pub(crate) task: Task,
    /// The one probe of an open breaker.
    pub(crate) probe: bool,
    /// Held from the time of its lease.
    pub(crate) in_hand: InHand,
}

impl Ready {
    /// Number of bytes that count towards [`super::state::MAX_POST_BYTES`].
    pub(super) fn bytes(&self) -> usize {
        self.task.post_bytes()
    }

    /// Returns true if it is sent even though the circuit breaker is open.
    pub(super) fn is_exempt(&self) -> bool {
        self.probe || self.task.urgent
    }
}

/// Origin of a delivery.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// Its Scan has just been created.
    Fresh,
    /// The delivery has waited in the database.
    Waiting,
}
