//! Getting an answer over HTTP, within bounds.
//!
//! [`Direct`] is for addresses that the operator named: any address, but bounded in time, size and
//! redirects. Addresses that customers name go through another [`Fetch`], which the scanner gives.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use reqwest::redirect;
use tracing::{Instrument as _, field::Empty};
use url::{Host, Url};

use crate::PollError;

/// `Earshot/<version>`; a platform's `user_agent` setting replaces it.
pub const USER_AGENT: &str = concat!(
    "Earshot/",
    env!("CARGO_PKG_VERSION"),
    " (self-hosted content monitoring)"
);

const MAX_REDIRECTS: usize = 5;

/// Fetches one document. Redirects are followed within the implementation's own rules.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// # Errors
    /// [`FetchError`] when there is no answer; an answer of any status is not an error.
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError>;

    /// Sends a form, as requests for tokens do.
    ///
    /// # Errors
    /// As [`Fetch::get`]; always where forms are not sent at all.
    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let _ = (url, headers, form, limits);
        Err(FetchError::Failed("no forms are sent from here".into()))
    }
}

/// What bounds one exchange.
#[derive(Debug, Clone)]
pub struct FetchLimits {
    /// Of the body, after decompression.
    pub max_bytes: usize,
    /// From the first look at the address to the last byte, redirects included.
    pub timeout: Duration,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            max_bytes: 5 * 1024 * 1024,
            timeout: Duration::from_secs(20),
        }
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Fetched {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Where the redirects ended.
    pub final_url: Url,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The address is not one that may be fetched.
    #[error("address not allowed: {0}")]
    Forbidden(String),
    #[error("the answer is larger than {limit_bytes} bytes")]
    TooLarge { limit_bytes: usize },
    /// Nothing was asked: the platform's budget has no request left.
    #[error("the budget is spent")]
    BudgetSpent { retry_after: Duration },
    #[error("no whole answer in time")]
    Timeout,
    #[error("the exchange failed")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Fetched {
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The wait that `Retry-After` asks for, in seconds or as a date; at most a day.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let value = self.header("retry-after")?.trim();
        let wait = match value.parse::<u64>() {
            Ok(seconds) => Duration::from_secs(seconds),
            Err(_) => {
                let time = chrono::DateTime::parse_from_rfc2822(value).ok()?;
                let now = domain::Timestamp::now();
                domain::Timestamp::from(time.to_utc()).since(now)
            }
        };
        Some(wait.min(Duration::from_hours(24)))
    }

    /// The answer itself when its status says success; `feed` names what was asked for.
    pub(crate) fn success(self, feed: &str) -> Result<Self, PollError> {
        let retry_after = self.retry_after();
        match self.status {
            200..=299 => Ok(self),
            429 => Err(PollError::Throttled { retry_after }),
            404 | 410 => Err(PollError::NotFound(feed.to_owned())),
            status @ (401 | 403) => Err(PollError::Unauthorized { status }),
            status => Err(PollError::Status {
                status,
                retry_after,
            }),
        }
    }

    pub(crate) fn json<T: serde::de::DeserializeOwned>(&self) -> Result<T, PollError> {
        crate::text::repair::read_json(&self.body)
            .map_err(|error| PollError::Malformed(error.to_string()))
    }
}

/// Fetches from addresses that the operator named.
#[derive(Debug, Clone)]
pub struct Direct {
    client: reqwest::Client,
}

impl Direct {
    /// A client of its own, with its own pool of connections.
    ///
    /// # Errors
    /// When TLS cannot be set up, or `user_agent` is not a header's value.
    pub fn new(user_agent: Option<&str>) -> Result<Self, FetchError> {
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(&[b"h2", b"http/1.1"])?)
            .user_agent(user_agent.unwrap_or(USER_AGENT))
            .redirect(redirect::Policy::custom(follow))
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(90))
            .build()
            .map_err(failed)?;
        Ok(Self { client })
    }
}

#[async_trait]
impl Fetch for Direct {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let request = self.client.get(url.clone());
        self.send("GET", url, request, headers, limits).await
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let body = url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(form)
            .finish();
        let request = self.client.post(url.clone()).body(body).header(
            reqwest::header::CONTENT_TYPE,
            "application/x-www-form-urlencoded",
        );
        self.send("POST", url, request, headers, limits).await
    }
}

impl Direct {
    async fn send(
        &self,
        method: &'static str,
        url: &Url,
        request: reqwest::RequestBuilder,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let span = tracing::info_span!(
            "request",
            otel.name = method,
            otel.kind = "client",
            otel.status_code = Empty,
            http.request.method = method,
            http.response.status_code = Empty,
            server.address = url.host_str(),
        );
        let fetched = exchange(request, headers, limits)
            .instrument(span.clone())
            .await;
        match &fetched {
            Ok(fetched) => {
                span.record("http.response.status_code", fetched.status);
            }
            Err(_) => {
                span.record("otel.status_code", "ERROR");
            }
        }
        fetched
    }
}

async fn exchange(
    mut request: reqwest::RequestBuilder,
    headers: &[(&str, &str)],
    limits: &FetchLimits,
) -> Result<Fetched, FetchError> {
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.timeout(limits.timeout);
    let mut response = request.send().await.map_err(failed)?;
    let limit_bytes = limits.max_bytes;
    let declared = response.content_length().unwrap_or(0);
    if declared > limit_bytes as u64 {
        return Err(FetchError::TooLarge { limit_bytes });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        if body.len() + chunk.len() > limit_bytes {
            return Err(FetchError::TooLarge { limit_bytes });
        }
        body.extend_from_slice(&chunk);
    }
    let text = |value: &reqwest::header::HeaderValue| {
        String::from_utf8_lossy(value.as_bytes()).into_owned()
    };
    Ok(Fetched {
        status: response.status().as_u16(),
        headers: response
            .headers()
            .iter()
            .map(|(name, value)| (name.as_str().to_owned(), text(value)))
            .collect(),
        body,
        final_url: response.url().clone(),
    })
}

/// A client's TLS configuration that depends on no process-wide provider, for protocols named as in ALPN.
pub(crate) fn tls(protocols: &[&[u8]]) -> Result<rustls::ClientConfig, FetchError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| FetchError::Failed(error.into()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(config)
}

/// A platform may move, but may not send us out of TLS or into the operator's own network.
fn follow(attempt: redirect::Attempt<'_>) -> redirect::Action {
    let from = attempt.previous().last().cloned();
    let downgraded = from.as_ref().is_some_and(|url| url.scheme() == "https")
        && attempt.url().scheme() != "https";
    let same_host = from.is_some_and(|url| url.host() == attempt.url().host());
    let inward = match attempt.url().host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) | None => true,
    };
    if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("too many redirects")
    } else if downgraded || (inward && !same_host) {
        attempt.error("redirect to an address that may not be fetched")
    } else {
        attempt.follow()
    }
}

fn failed(error: reqwest::Error) -> FetchError {
    if error.is_timeout() {
        FetchError::Timeout
    } else {
        // The address may carry a key in its query.
        FetchError::Failed(error.without_url().into())
    }
}
