//! Retries: exponential backoff with full jitter, and the waits that the service asks for.

use std::time::Duration;

use crate::Error;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(20);
/// The window of the rate limit is a minute. A longer wait is returned to the caller.
const LONGEST_TOLD: u64 = 90;

/// Maximum number of retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    pub times: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self { times: 4 }
    }
}

impl Retries {
    /// Every failure is returned at once.
    pub const NONE: Self = Self { times: 0 };

    /// Wait before the next attempt, after this many.
    pub(crate) fn wait(self, error: &Error, tries: u32) -> Option<Duration> {
        if tries > self.times {
            return None;
        }
        match error {
            Error::Unreachable { .. } => Some(backoff(tries)),
            Error::Refused(refusal) if matches!(refusal.status, 429 | 503) => {
                match refusal.retry_after {
                    Some(told) if told > LONGEST_TOLD => None,
                    Some(told) => Some(Duration::from_secs(told).max(backoff(tries))),
                    None => Some(backoff(tries)),
                }
            }
            Error::Refused(_) | Error::Unexpected(_) => None,
        }
    }
}

/// Between half and all of a time that doubles with each attempt.
fn backoff(tries: u32) -> Duration {
    let doubled = FIRST.saturating_mul(1 << (tries.saturating_sub(1)).min(10));
    let whole = doubled.min(LONGEST);
    whole.mul_f64(rand::random_range(0.5..=1.0))
}

#[cfg(test)]
mod tests {
    use super::Retries;
    use crate::{Error, Refusal};

    fn refused(status: u16, retry_after: Option<u64>) -> Error {
        let refusal = Refusal {
            status,
            message: String::new(),
            details: Vec::new(),
            request_id: None,
            retry_after,
        };
        refusal.into()
    }

    #[test]
    fn temporary_failures_are_retried() {
        let retries = Retries { times: 2 };
        let wait = |status, after, tries| {
            let wait = retries.wait(&refused(status, after), tries);
            wait.map(|wait| wait.as_secs())
        };
        assert_eq!(wait(429, Some(7), 1), Some(7));
        assert_eq!(wait(503, None, 2), Some(0));
        assert_eq!(wait(503, None, 3), None);
        assert_eq!(wait(429, Some(3_600), 1), None);
        for status in [400, 401, 403, 404, 500, 502] {
            assert_eq!(wait(status, None, 1), None, "{status}");
        }
    }
}
