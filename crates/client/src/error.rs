//! Errors of a call, in the categories that callers need.

use reqwest::{StatusCode, header::HeaderMap};
use serde::Deserialize;
use url::Url;

const MAX_SHOWN: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The service answered with an error.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// There was no response, or it was incomplete.
    #[error("cannot reach {address}")]
    Unreachable {
        address: String,
        #[source]
        cause: reqwest::Error,
    },
    /// The response does not match this API.
    #[error("the response does not match this API")]
    Unexpected(#[source] serde_json::Error),
}

/// `{code, message, details}`, or the body that came instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    pub status: u16,
    pub message: String,
    pub details: Vec<Detail>,
    pub request_id: Option<String>,
    /// Seconds, if the service sent them.
    pub retry_after: Option<u64>,
}

/// A field that failed, or a parameter or header, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Detail {
    pub field: String,
    /// A word of the API's list; future versions may add words.
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
            // The address may contain the request's parameters, which do not belong in the message.
            cause: cause.without_url(),
        }
    }

    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            Self::Unreachable { .. } | Self::Unexpected(_) => None,
        }
    }

    /// Returns true if the same request may succeed later.
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
            // For example a proxy's error page.
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
