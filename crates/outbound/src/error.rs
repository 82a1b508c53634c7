//! Errors of requests to untrusted servers, with stable words.

use std::{error::Error as StdError, io, net::IpAddr, time::Duration};

use domain::Issue;

/// Reason why an exchange got no response. [`Failure::word`] is stored and shown to customers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("cannot resolve `{host}`: {reason}")]
    Dns { host: String, reason: String },
    /// A refused address. If it is absent, the name or the port itself is refused. The address of a name is not
    /// shown: customers must not learn addresses in an internal network.
    #[error("`{host}` is not a permitted address")]
    ForbiddenAddress {
        host: String,
        address: Option<IpAddr>,
    },
    #[error("the connection was refused")]
    ConnectRefused { address: IpAddr },
    #[error("no connection to `{host}` within {after:?}")]
    ConnectTimeout { host: String, after: Duration },
    #[error("cannot be reached: {reason}")]
    Unreachable { address: IpAddr, reason: String },
    #[error("tls handshake failed: {reason}")]
    Tls { reason: String },
    /// The operator's proxy cannot be used, or refuses the target.
    #[error("not let through by the proxy: {reason}")]
    Proxy { reason: String },
    #[error("timed out after {after:?} {activity}")]
    Timeout {
        after: Duration,
        activity: &'static str,
    },
    #[error("connection closed before the answer was complete")]
    Reset,
    #[error("not a valid http answer: {reason}")]
    Protocol { reason: String },
    /// The stored data does not make a valid request.
    #[error("invalid request: {reason}")]
    InvalidRequest { reason: String },
}

impl Failure {
    /// Word for logs, metrics and the API.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Dns { .. } => "dns_failure",
            Self::ForbiddenAddress { .. } => "forbidden_address",
            Self::ConnectRefused { .. } => "connect_refused",
            Self::ConnectTimeout { .. } => "connect_timeout",
            Self::Unreachable { .. } => "unreachable",
            Self::Tls { .. } => "tls_failure",
            Self::Proxy { .. } => "proxy_failure",
            Self::Timeout { .. } => "timeout",
            Self::Reset => "reset",
            Self::Protocol { .. } => "protocol_error",
            Self::InvalidRequest { .. } => "invalid_request",
        }
    }

    /// Marks a failure of the connection to the proxy. Only the operator may learn more about it.
    pub(crate) fn of_proxy(cause: Self) -> Self {
        tracing::info!(%cause, "the outbound proxy cannot be reached");
        Self::Proxy {
            reason: "it cannot be reached".to_owned(),
        }
    }

    pub(crate) fn invalid_request(reason: impl ToString) -> Self {
        Self::InvalidRequest {
            reason: reason.to_string(),
        }
    }

    /// Finds the deciding cause in a chain of errors from hyper or from our connector.
    pub(crate) fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut deepest = error;
        let mut next = Some(error);
        while let Some(current) = next {
            if let Some(failure) = current.downcast_ref::<Self>() {
                return failure.clone();
            }
            if let Some(io) = current.downcast_ref::<io::Error>()
                && is_reset(io)
            {
                return Self::Reset;
            }
            if let Some(hyper) = current.downcast_ref::<hyper::Error>()
                && (hyper.is_incomplete_message() || hyper.is_canceled() || hyper.is_closed())
            {
                return Self::Reset;
            }
            // Closed or reset by the peer, in HTTP/2: GOAWAY and RST_STREAM.
            if let Some(h2) = current.downcast_ref::<h2::Error>()
                && h2.is_remote()
            {
                return Self::Reset;
            }
            deepest = current;
            next = current.source();
        }
        Self::Protocol {
            reason: deepest.to_string(),
        }
    }
}

fn is_reset(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof};
    matches!(
        error.kind(),
        ConnectionReset | ConnectionAborted | BrokenPipe | TimedOut | UnexpectedEof
    )
}

/// Reason why a page could not be fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// `redirected` separates a bad redirect target from a bad URL in the request.
    #[error("{} cannot be requested ({issue:?})", if *redirected { "the target of a redirect" } else { "the url" })]
    Url { issue: Issue, redirected: bool },
    #[error("more than {limit} redirects")]
    TooManyRedirects { limit: usize },
    /// Before decompression (`wire`) or after it.
    #[error("larger than {limit_bytes} bytes{}", if *wire { "" } else { " when decompressed" })]
    TooLarge { limit_bytes: usize, wire: bool },
    #[error("cannot decompress the content: {reason}")]
    Encoding { reason: String },
    #[error(transparent)]
    Exchange(#[from] Failure),
}

impl Error {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Url { .. } => "invalid_url",
            Self::TooManyRedirects { .. } => "too_many_redirects",
            Self::TooLarge { .. } => "too_large",
            Self::Encoding { .. } => "invalid_encoding",
            Self::Exchange(failure) => failure.word(),
        }
    }
}
