//! How it stands with a Connection.

use serde::{Deserialize, Serialize};

use crate::{Connection, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Breaker {
    Closed,
    /// Nothing is sent but what a person asks for.
    Open,
    /// One request shows whether it closes.
    HalfOpen,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Of the last attempts, 20 at most; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<Timestamp>,
    /// Deliveries that wait, counted up to [`MAX_COUNTED`].
    pub pending: u32,
    /// When the oldest of those was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_pending_time: Option<Timestamp>,
    pub breaker: Breaker,
}

/// As many or more: a backlog of millions is not counted for each look at its Connection.
pub const MAX_COUNTED: u32 = 1_000;

/// A Connection as it is read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionWithHealth {
    #[serde(flatten)]
    pub connection: Connection,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
}
