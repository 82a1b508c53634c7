//! HTTP requests with limits.
//!
//! [`Direct`] is for addresses from the operator: any address, but limited in time, size and redirects.
//! Addresses from customers use another [`Fetch`], the guarded one, which the scanner supplies. A redirect to
//! another origin is chosen by the server, so it also uses the guarded one, without credentials.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use domain::{Timestamp, egress::Egress, web_header::parse_retry_after};
use outbound::large;
use reqwest::redirect;
use tracing::{Instrument as _, field::Empty};
use url::Url;

use crate::{
    egress,
    error::{FetchError, PollError},
};

/// Longest pause before a platform is asked again, even if its answer asks for a longer one. A firewall in front of a
/// platform may ask for a day by default, and to ask again costs one request.
pub const MAX_PAUSE: Duration = Duration::from_mins(15);

/// `Earshot/<version>`; a platform's `user_agent` setting replaces it.
pub const USER_AGENT: &str = concat!(
    "Earshot/",
    env!("CARGO_PKG_VERSION"),
    " (self-hosted content monitoring)"
);

const MAX_REDIRECTS: usize = 5;
/// Answers of this size need no place: nearly all pages of platforms. A poll keeps its place while it waits for its
/// budget, so ordinary polls must not need one.
const SMALL_BYTES: usize = 1 << 20;
/// Headers that a request may carry to another origin. Every other header may be a credential.
const HARMLESS_HEADERS: [&str; 3] = ["accept", "if-modified-since", "if-none-match"];

/// Fetches one document. Each implementation has its own rules for redirects.
#[async_trait]
pub trait Fetch: Send + Sync {
    /// # Errors
    /// [`FetchError`] if there is no response; a response with any status is not an error.
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError>;

    /// Sends a form, for token requests.
    ///
    /// # Errors
    /// Same as [`Fetch::get`]; always if the implementation does not send forms.
    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let _ = (url, headers, form, limits);
        Err(FetchError::Failed("this client sends no forms".into()))
    }
}

/// Limits of one exchange.
#[derive(Debug, Clone)]
pub struct FetchLimits {
    /// Maximum size of the body after decompression.
    pub max_bytes: usize,
    /// Time from the DNS lookup to the last byte, including redirects.
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

/// A response.
#[derive(Debug, Clone)]
pub struct Fetched {
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The address after redirects.
    pub final_url: Url,
}

impl Fetched {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The wait in `Retry-After`, given in seconds or as a date; at most [`MAX_PAUSE`].
    pub fn retry_after(&self) -> Option<Duration> {
        let wait = parse_retry_after(self.header("retry-after")?, Timestamp::now())?;
        Some(wait.min(MAX_PAUSE))
    }

    /// Returns the response if its status is a success; `feed` names what was requested.
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

/// Fetches addresses from the operator.
#[derive(Clone)]
pub struct Direct {
    client: reqwest::Client,
    guarded: Option<Arc<dyn Fetch>>,
}

impl Direct {
    /// Builds a client with a separate connection pool. It follows redirects only within their origin.
    ///
    /// # Errors
    /// When TLS cannot be set up, or `user_agent` is not a valid header value.
    pub fn new(user_agent: Option<&str>) -> Result<Self, FetchError> {
        Self::leaving_by(egress::current(), user_agent)
    }

    /// Same as [`Self::new`], with the given way out. Without a proxy in it, those of the environment are used
    /// (`HTTPS_PROXY`).
    ///
    /// # Errors
    /// Same as [`Self::new`].
    pub fn leaving_by(egress: &Egress, user_agent: Option<&str>) -> Result<Self, FetchError> {
        let mut client = reqwest::Client::builder();
        if let Some(proxy) = &egress.proxy {
            client = client.proxy(egress::for_reqwest(proxy.clone()));
        }
        let client = client
            .tls_backend_preconfigured(egress::tls(egress, &[b"h2", b"http/1.1"])?)
            .user_agent(user_agent.unwrap_or(USER_AGENT))
            .redirect(redirect::Policy::none())
            .connect_timeout(Duration::from_secs(10))
            .pool_idle_timeout(Duration::from_secs(90))
            .build()
            .map_err(failed)?;
        Ok(Self {
            client,
            guarded: None,
        })
    }

    /// Follows redirects to other origins through `guarded`, which refuses internal addresses.
    #[must_use]
    pub fn with_redirects(self, guarded: Arc<dyn Fetch>) -> Self {
        Self {
            guarded: Some(guarded),
            ..self
        }
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
        let deadline = Instant::now() + limits.timeout;
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let limits = FetchLimits {
                timeout: deadline.saturating_duration_since(Instant::now()),
                ..limits.clone()
            };
            let request = self.client.get(at.clone());
            let answer = self.send("GET", &at, request, headers, &limits).await?;
            let Some(target) = redirect_target(&answer) else {
                return Ok(answer);
            };
            if target.origin() != url.origin() {
                return self.leave(&at, &target, headers, &limits).await;
            }
            at = target;
        }
        Err(FetchError::Failed("too many redirects".into()))
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
        let content_type = ("content-type", "application/x-www-form-urlencoded");
        let headers = [headers, &[content_type]].concat();
        self.post(url, &headers, body, limits).await
    }
}

impl Direct {
    /// Posts `body`. A redirect is returned like any other response, so that a secret in a header is sent only to
    /// the configured address.
    ///
    /// # Errors
    /// Same as [`Fetch::get`].
    pub async fn post(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        body: String,
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let request = self.client.post(url.clone()).body(body);
        self.send("POST", url, request, headers, limits).await
    }

    /// Follows a redirect to another origin: guarded, and without headers that may be credentials.
    async fn leave(
        &self,
        from: &Url,
        target: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let is_downgrade = from.scheme() == "https" && target.scheme() != "https";
        let guarded = self.guarded.as_ref().filter(|_| !is_downgrade);
        let Some(guarded) = guarded else {
            let refused = "redirect to another origin that may not be followed";
            return Err(FetchError::Failed(refused.into()));
        };
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .filter(|(name, _)| HARMLESS_HEADERS.contains(name))
            .copied()
            .collect();
        guarded.get(target, &headers, limits).await
    }

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
    // Boxed, because the time limit holds copies of it.
    let read = Box::pin(read(request, limits.max_bytes));
    let answer = large::timeout(limits.timeout, read).await;
    answer.unwrap_or(Err(FetchError::Timeout))
}

async fn read(request: reqwest::RequestBuilder, limit_bytes: usize) -> Result<Fetched, FetchError> {
    let mut response = request.send().await.map_err(failed)?;
    let declared = response.content_length().unwrap_or(0);
    if declared > limit_bytes as u64 {
        return Err(FetchError::TooLarge { limit_bytes });
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(failed)? {
        let bytes = body.len() + chunk.len();
        if bytes > limit_bytes {
            return Err(FetchError::TooLarge { limit_bytes });
        }
        if bytes > SMALL_BYTES {
            large::take_place().await;
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

/// Redirect target of a response to a GET; `None` if it does not redirect.
fn redirect_target(answer: &Fetched) -> Option<Url> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    answer.final_url.join(answer.header("location")?).ok()
}

fn failed(error: reqwest::Error) -> FetchError {
    if error.is_timeout() {
        FetchError::Timeout
    } else {
        // The address may contain a key in its query.
        FetchError::Failed(error.without_url().into())
    }
}
