//! Position in the log of plan changes.

use uuid::Uuid;

/// Number of a plan change, with the random mark of the change that got this number.
///
/// After a failover to a copy of the database that lacks the last changes, numbers are used again. Compare whole
/// versions, never numbers alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlanVersion {
    pub number: i64,
    /// Nil before the first change, and for changes that were logged without a mark.
    pub nonce: Uuid,
}
