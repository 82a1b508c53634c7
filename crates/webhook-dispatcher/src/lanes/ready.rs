//! Leased deliveries that wait for their requests.

use domain::connection::Format;
use store::deliveries::Task;

use super::LARGEST_POST;
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
        let bytes = self.task.post_bytes();
        match self.task.format {
            // It may be a digest, whose excerpts are read when it is sent.
            Format::Email => bytes.max(LARGEST_POST),
            Format::Earshot | Format::Slack | Format::Discord | Format::Teams => bytes,
        }
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
