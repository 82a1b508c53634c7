//! A client of Earshot's public REST API.
//!
//! It handles what every client needs: it retries safe requests, and creates too, with an `Idempotency-Key`; it
//! obeys the waits of 429 and 503; it reads lists page by page; and it parses errors. The caller chooses the
//! type of a response: the types of `domain`, or plain JSON.
//!
//! The key is sent only to the configured address: redirects are not followed.

mod error;
mod page;
mod request;
mod retry;

use std::{pin::Pin, sync::Arc, time::Duration};

use reqwest::{Method, Response, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::{Host, Url};

pub use error::{Detail, Error, Refusal};
pub use page::{Page, Pages, Query};
pub use request::{Change, Request};
pub use retry::Retries;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The slowest request, `:test` of a Connection, takes at most twelve seconds.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Enough for a page of 100 Scans with posts of the maximum size.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Answers requests in place of a server at the client's address.
pub type Answerer = Arc<dyn Fn(http::Request<Vec<u8>>) -> Answer + Send + Sync>;
pub type Answer = Pin<Box<dyn Future<Output = http::Response<Vec<u8>>> + Send>>;

/// A client with an address and a key. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    base: Url,
    key: SecretString,
    http: reqwest::Client,
    answerer: Option<Answerer>,
    retries: Retries,
    test_mode: bool,
}

impl Client {
    /// `base` is the address before `/v1`, for example `https://earshot.example.com`; a final `/v1` is ignored. The
    /// proxies of the environment are used: `HTTPS_PROXY`, `ALL_PROXY` (also `socks5://` and `socks5h://`), `NO_PROXY`.
    ///
    /// # Errors
    /// If no HTTP client can be created.
    pub fn new(base: Url, key: SecretString) -> Result<Self, Error> {
        // An error only means that one is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("earshot-client/", env!("CARGO_PKG_VERSION")));
        if is_local(&base) {
            // A proxy cannot reach this machine's loopback.
            http = http.no_proxy();
            if base.scheme() == "http" {
                // The system's CA certificates are not needed, and a small image may have none.
                http = http.tls_certs_only([]);
            }
        }
        let http = http
            .build()
            .map_err(|error| Error::unreachable(&base, error))?;
        // A file or variable with a key often ends in a line break.
        let key = SecretString::from(key.expose_secret().trim());
        Ok(Self {
            base,
            key,
            http,
            answerer: None,
            retries: Retries::default(),
            test_mode: false,
        })
    }

    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Asks `answerer` instead of a server: for the process that serves the API.
    #[must_use]
    pub fn answered_by(mut self, answerer: Answerer) -> Self {
        self.answerer = Some(answerer);
        self
    }

    /// Sets `x-test`: every request runs in a transaction that is rolled back.
    #[must_use]
    pub fn with_test_mode(mut self, on: bool) -> Self {
        self.test_mode = on;
        self
    }

    pub fn base(&self) -> &Url {
        &self.base
    }

    /// # Errors
    /// Same as [`Client::call`].
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        self.call(Request::get(name)).await
    }

    /// Reads one page; `collection` is a path such as `namespaces/…/managers`, whose last word is the key of
    /// the items.
    ///
    /// # Errors
    /// Same as [`Client::call`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        collection: &str,
        query: &Query,
    ) -> Result<Page<T>, Error> {
        let request = Request::get(collection).query(query.parameters());
        let body: Value = self.call(request).await?;
        Page::read(collection, body)
    }

    /// Reads a whole list, page by page.
    #[must_use]
    pub fn pages<T: DeserializeOwned>(&self, collection: &str, query: Query) -> Pages<'_, T> {
        Pages::new(self, collection, query)
    }

    /// Creates a resource with a new `Idempotency-Key`, so that a retry does not create a second one.
    ///
    /// # Errors
    /// Same as [`Client::call`].
    pub async fn create<T: DeserializeOwned>(
        &self,
        collection: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let request = Request::new(Method::POST, collection).json(body);
        self.call(request.idempotent()).await
    }

    /// Sends a merge patch; with a mask, only the fields in it change.
    ///
    /// # Errors
    /// Same as [`Client::call`].
    pub async fn update<T: DeserializeOwned>(
        &self,
        name: &str,
        change: &Change<'_>,
    ) -> Result<T, Error> {
        let mask = change
            .mask
            .map(|mask| ("updateMask".to_owned(), mask.to_owned()));
        let request = Request::new(Method::PATCH, name).query(mask);
        self.call(request.json(change.body)).await
    }

    /// # Errors
    /// Same as [`Client::call`].
    pub async fn delete(&self, name: &str, force: bool) -> Result<(), Error> {
        let force = force.then(|| ("force".to_owned(), "true".to_owned()));
        let request = Request::new(Method::DELETE, name).query(force);
        self.call::<Value>(request).await.map(drop)
    }

    /// Calls a custom method: `name` and `verb` of `namespaces/…/managers/…:apply`.
    ///
    /// # Errors
    /// Same as [`Client::call`].
    pub async fn act<T: DeserializeOwned>(
        &self,
        name: &str,
        verb: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let request = Request::new(Method::POST, &format!("{name}:{verb}"));
        self.call(request.json(body)).await
    }

    /// Sends a request, retries it if that is safe and may help, and reads the response.
    ///
    /// # Errors
    /// An error response, no response, or a response that does not match the API.
    pub async fn call<T: DeserializeOwned>(&self, request: Request) -> Result<T, Error> {
        let body = self.send(&request).await?;
        serde_json::from_slice(&body).map_err(Error::Unexpected)
    }

    async fn send(&self, request: &Request) -> Result<Vec<u8>, Error> {
        let url = request.url(&self.base);
        let mut tries = 0;
        loop {
            let error = match self.attempt(request, url.clone()).await {
                Ok(body) => return Ok(body),
                Err(error) => error,
            };
            tries += 1;
            match self.retries.wait(&error, tries) {
                Some(wait) if request.may_be_repeated(&error) => tokio::time::sleep(wait).await,
                _ => return Err(error),
            }
        }
    }

    async fn attempt(&self, request: &Request, url: Url) -> Result<Vec<u8>, Error> {
        let mut sent = self
            .http
            .request(request.method.clone(), url)
            .bearer_auth(self.key.expose_secret());
        if self.test_mode {
            sent = sent.header("x-test", "true");
        }
        if let Some(key) = &request.idempotency_key {
            sent = sent.header("idempotency-key", key);
        }
        if let Some(body) = &request.body {
            sent = sent
                .header(header::CONTENT_TYPE, "application/json")
                .body(body.clone());
        }
        let unreachable = |error| Error::unreachable(&self.base, error);
        let sent = sent.build().map_err(unreachable)?;
        let answer = match &self.answerer {
            Some(answerer) => answerer(plain(sent).map_err(unreachable)?).await.into(),
            None => self.http.execute(sent).await.map_err(unreachable)?,
        };
        let status = answer.status();
        let head = answer.headers().clone();
        let body = bounded(answer).await.map_err(unreachable)?;
        if status == StatusCode::OK || status == StatusCode::CREATED {
            return Ok(body);
        }
        Err(Refusal::read(status, &head, &body).into())
    }
}

/// Returns the request with its body in memory, where it is already.
fn plain(request: reqwest::Request) -> Result<http::Request<Vec<u8>>, reqwest::Error> {
    let request: http::Request<reqwest::Body> = request.try_into()?;
    Ok(request.map(|body| body.as_bytes().unwrap_or_default().to_vec()))
}

/// Reads at most the maximum size; a longer response is truncated and so cannot be parsed.
async fn bounded(mut answer: Response) -> Result<Vec<u8>, reqwest::Error> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await? {
        if body.len() + chunk.len() > MAX_ANSWER_BYTES {
            break;
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Returns true if the address is on this machine.
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
