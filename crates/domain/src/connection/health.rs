//! Health of a Connection.

use serde::{Deserialize, Serialize};

use super::Recipient;
use crate::{Connection, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Breaker {
    Closed,
    /// The Connection sends nothing, except what a person requests.
    Open,
    /// One request decides whether the circuit closes.
    HalfOpen,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// Share of successful attempts among the last 20; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success_rate: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_success_time: Option<Timestamp>,
    /// Waiting deliveries, counted up to [`MAX_COUNTED`].
    pub pending: u32,
    /// Creation time of the oldest waiting delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_pending_time: Option<Timestamp>,
    pub breaker: Breaker,
    /// Why the digest is set aside; absent unless it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest_error: Option<String>,
}

/// This many or more: a backlog of millions is not counted at each read of its Connection.
pub const MAX_COUNTED: u32 = 1_000;

/// A Connection as clients read it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConnectionWithHealth {
    #[serde(flatten)]
    pub connection: Connection,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<Health>,
    /// Only of a Connection for e-mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<Recipient>,
}
