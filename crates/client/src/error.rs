//! What can go wrong, as a caller tells it apart.

use reqwest::{StatusCode, header::HeaderMap};
use serde::Deserialize;
use url::Url;

const MAX_SHOWN: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service answered, and did not do it.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// Nobody answered, or not to the end.
    #[error("cannot reach {address}")]
    Unreachable {
        address: String,
        #[source]
        cause: reqwest::Error,
    },
    /// Whoever answered does not speak this API.
    #[error("the answer is not what this API answers")]
    Unexpected(#[source] serde_json::Error),
}

/// `{code, message, details}`, or what came in its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub status: u16,
    pub message: String,
    pub details: Vec<Detail>,
    pub request_id: Option<String>,
    /// Seconds, where the service says so.
    pub retry_after: Option<u64>,
}

/// A field that failed, or a parameter or header by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Detail {
    pub field: String,
    /// A word of the API's list; new ones may come.
    pub issue: String,
}

#[derive(Deserialize)]
struct Body {
    message: String,
    #[serde(default)]
    details: Vec<Detail>,
}

impl Error {
    pub(crate) fn unreachable(base: &Url, cause: reqwest::Error) -> Self {
        Self::Unreachable {
            address: base.origin().ascii_serialization(),
            // The address may hold what was asked for, which nobody needs to read here.
            cause: cause.without_url(),
        }
    }

    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Unreachable { .. } | Self::Unexpected(_) => None,
        }
    }

    /// Whether the service may well answer later, with nothing changed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Refused(refusal) => matches!(refusal.status, 408 | 429) || refusal.status >= 500,
            Self::Unreachable { .. } => true,
            Self::Unexpected(_) => false,
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(Box::new(refusal))
    }
}

impl Refusal {
    pub(crate) fn read(status: StatusCode, head: &HeaderMap, body: &[u8]) -> Self {
        let text = |name: &str| {
            let value = head.get(name).and_then(|value| value.to_str().ok());
            value.map(str::to_owned)
        };
        let (message, details) = match serde_json::from_slice::<Body>(body) {
            Ok(body) => (body.message, body.details),
            // A proxy's page, perhaps.
            Err(_) => {
                let shown = String::from_utf8_lossy(body);
                let shown: String = shown.chars().take(MAX_SHOWN).collect();
                (format!("HTTP {status}: {}", shown.trim()), Vec::new())
            }
        };
        Self {
            status: status.as_u16(),
            message,
            details,
            request_id: text("x-request-id"),
            retry_after: text("retry-after").and_then(|value| value.parse().ok()),
        }
    }
}
