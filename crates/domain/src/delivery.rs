//! Deliveries: one Scan or service event for one Connection.

use serde::{Deserialize, Serialize};

use crate::{DeliveryName, ScanName, ServiceEvent, Timestamp};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DeliveryState {
    /// Waiting for its first attempt.
    Pending,
    /// A dispatcher holds it: its request is open, or next.
    InFlight,
    /// Acknowledged by a 2xx.
    Succeeded,
    /// Failed, and due again later.
    Retrying,
    /// Given up; the reason is in the log.
    Exhausted,
    /// Its Connection or Scan was deleted.
    Cancelled,
}

impl DeliveryState {
    pub const ALL: [Self; 6] = [
        Self::Pending,
        Self::InFlight,
        Self::Succeeded,
        Self::Retrying,
        Self::Exhausted,
        Self::Cancelled,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::InFlight => "IN_FLIGHT",
            Self::Succeeded => "SUCCEEDED",
            Self::Retrying => "RETRYING",
            Self::Exhausted => "EXHAUSTED",
            Self::Cancelled => "CANCELLED",
        }
    }

    /// Returns true if nothing more happens automatically; a person may reopen it.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::InFlight | Self::Retrying => false,
            Self::Succeeded | Self::Exhausted | Self::Cancelled => true,
        }
    }
}

/// One attempt in the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryAttempt {
    pub time: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub latency_ms: u32,
    pub phases: AttemptPhases,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// The beginning of the response, as text: up to 4 KiB of a failure, 256 bytes of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_body: Option<String>,
}

/// Durations of an attempt's phases; a phase that did not take place is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttemptPhases {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dns_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_ms: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u32>,
}

/// A single delivery with its attempts, the earliest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveryWithAttempts {
    #[serde(flatten)]
    pub delivery: Delivery,
    pub attempts: Vec<DeliveryAttempt>,
}

/// A delivery in the list of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    pub name: DeliveryName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    /// Absent for a service event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan: Option<ScanName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<ServiceEvent>,
    pub state: DeliveryState,
    pub attempt_count: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempt_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_status_code: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
