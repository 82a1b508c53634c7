//! Results that are not written yet.

use domain::Timestamp;
use store::deliveries::AttemptResult;

use crate::{breaker::Outcome, in_hand::InHand, lanes};

/// The end of an attempt.
pub(crate) struct Sent {
    pub(crate) result: AttemptResult,
    /// Outcome for the endpoint of the Connection as it was last changed at this time; `None` if no request
    /// could be made.
    pub(crate) outcome: Option<(Outcome, Timestamp)>,
}

pub(super) struct Unwritten {
    pub(super) sent: Sent,
    #[expect(
        dead_code,
        reason = "given back when it is dropped, after the result is written"
    )]
    pub(super) held: Held,
}

pub(super) type Held = (InHand, lanes::Unwritten, Option<lanes::Pause>);
