//! What came of a test of a Connection: one sample event, sent now.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TestResult {
    /// Whether it was acknowledged; of what was only checked, whether it could be sent.
    pub ok: bool,
    /// Whether a request was made.
    pub sent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_code: Option<u16>,
    pub latency_ms: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl TestResult {
    /// No request was made, and why.
    #[must_use]
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
