//! Remaining points of a key's rate limit.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use domain::Timestamp;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Remaining points of a key or its account, whichever has fewer, as far as this replica knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub(super) limit: u32,
    pub(super) remaining: u32,
    pub(super) reset_in_ms: i64,
}

impl Standing {
    /// Adds the rate-limit headers, which every response to a valid key has.
    pub(crate) fn add_to(self, headers: &mut HeaderMap) {
        // Rounded up: a second is over only at its end.
        let reset = Timestamp::now().to_chrono().timestamp() + seconds(self.reset_in_ms);
        headers.insert(LIMIT, HeaderValue::from(self.limit));
        headers.insert(REMAINING, HeaderValue::from(self.remaining));
        headers.insert(RESET, HeaderValue::from(reset));
    }
}

/// Converts to seconds, rounded up.
pub(super) fn seconds(millis: i64) -> i64 {
    millis.max(0).saturating_add(999) / 1_000
}
