//! Result of a test delivery: one sample event, sent to a Connection now.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// True if it was acknowledged; for a check without sending, true if it could be sent.
    pub ok: bool,
    /// True if a request was made.
    pub sent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    pub latency_ms: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl TestResult {
    /// Result without a request, and the reason.
    pub fn unsent(error: impl Into<String>, latency_ms: u32) -> Self {
        Self {
            ok: false,
            sent: false,
            status_code: None,
            latency_ms,
            error: Some(error.into()),
        }
    }
}
