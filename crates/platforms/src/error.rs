//! Reasons why a platform did not answer.

use std::time::Duration;

/// Reason why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address may not be fetched.
    #[error("address not allowed: {0}")]
    Forbidden(String),
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    /// No request was sent: the platform's budget has none left.
    #[error("the budget is spent")]
    BudgetSpent { retry_after: Duration },
    #[error("no complete response in time")]
    Timeout,
    #[error("the request failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

/// A platform's wish that it is asked less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throttled {
    pub retry_after: Option<Duration>,
}

/// Reason why a poll returned nothing.
#[derive(Debug, thiserror::Error)]
pub enum PollError {
    /// The platform asks to slow down.
    #[error("throttled by the platform")]
    Throttled { retry_after: Option<Duration> },
    /// The operator's own bound on requests or spending is reached.
    #[error("the budget is spent")]
    BudgetSpent { retry_after: Duration },
    /// The feed does not exist (any more); retrying soon does not help.
    #[error("no such feed: {0}")]
    NotFound(String),
    /// The platform requires credentials, or rejects the configured ones.
    #[error("refused by the platform with status {status}")]
    Unauthorized { status: u16 },
    /// Like [`PollError::Unauthorized`], with advice for the operator.
    #[error("refused by the platform with status {status}: {advice}")]
    Refused { status: u16, advice: &'static str },
    /// The address may not be fetched.
    #[error("address not allowed: {0}")]
    Forbidden(String),
    /// No answer at all.
    #[error("no answer from the platform")]
    Unavailable(#[source] FetchError),
    /// An error response of the platform.
    #[error("the platform answered with status {status}")]
    Status {
        status: u16,
        retry_after: Option<Duration>,
    },
    /// A response that cannot be parsed.
    #[error("unreadable answer: {0}")]
    Malformed(String),
}

impl PollError {
    /// Wait that the platform asks for before the next request, if any.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Throttled { retry_after } | Self::Status { retry_after, .. } => *retry_after,
            Self::BudgetSpent { retry_after } => Some(*retry_after),
            _ => None,
        }
    }

    /// The platform's wish to be asked less.
    pub fn throttled(&self) -> Option<Throttled> {
        match self {
            Self::Throttled { retry_after } => Some(Throttled {
                retry_after: *retry_after,
            }),
            _ => None,
        }
    }

    /// Returns true if polling again cannot help until someone changes something.
    pub fn is_permanent(&self) -> bool {
        matches!(
            self,
            Self::NotFound(_)
                | Self::Unauthorized { .. }
                | Self::Refused { .. }
                | Self::Forbidden(_)
        )
    }
}

impl From<FetchError> for PollError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::BudgetSpent { retry_after } => Self::BudgetSpent { retry_after },
            FetchError::Forbidden(address) => Self::Forbidden(address),
            FetchError::TooLarge { limit_bytes } => {
                Self::Malformed(format!("more than {limit_bytes} bytes"))
            }
            other => Self::Unavailable(other),
        }
    }
}
