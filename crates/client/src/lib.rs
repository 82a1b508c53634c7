//! A client of Earshot's public REST API.
//!
//! It knows what every client must: that safe requests are tried again, and creates too, under an
//! `Idempotency-Key`; that 429 and 503 say when to come again; that lists come in pages; and how a refusal
//! is read. Answers are read as whatever the caller asks for: the types of `domain`, or JSON as it stands.
//!
//! The key goes to the address that it was given for alone: redirects are not followed.

mod error;
mod page;
mod request;
mod retry;

use std::time::Duration;

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
/// `:test` of a Connection takes twelve seconds at most, and is the slowest.
const TIMEOUT: Duration = Duration::from_secs(60);
/// A page of 100 Scans with posts as long as they may be.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// Who calls, where. Cheap to clone.
#[derive(Clone)]
pub struct Client {
    base: Url,
    key: SecretString,
    http: reqwest::Client,
    retries: Retries,
    test_mode: bool,
}

impl Client {
    /// `base` is where `/v1` is found, such as `https://earshot.example.com`.
    ///
    /// # Errors
    /// When no HTTP client can be made.
    pub fn new(base: Url, key: SecretString) -> Result<Self, Error> {
        // An error only says that there is one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("earshot-client/", env!("CARGO_PKG_VERSION")));
        if is_local(&base) {
            // No proxy reaches this machine.
            http = http.no_proxy();
        }
        let http = http
            .build()
            .map_err(|error| Error::unreachable(&base, error))?;
        Ok(Self {
            base,
            key,
            http,
            retries: Retries::default(),
            test_mode: false,
        })
    }

    #[must_use]
    pub fn with_retries(mut self, retries: Retries) -> Self {
        self.retries = retries;
        self
    }

    /// Whether everything is done for real and taken back: `x-test`.
    #[must_use]
    pub fn with_test_mode(mut self, on: bool) -> Self {
        self.test_mode = on;
        self
    }

    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// # Errors
    /// As [`Client::call`].
    pub async fn get<T: DeserializeOwned>(&self, name: &str) -> Result<T, Error> {
        self.call(Request::get(name)).await
    }

    /// One page; `collection` is a path such as `namespaces/…/managers`, whose last word is the key of the
    /// items.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn list<T: DeserializeOwned>(
        &self,
        collection: &str,
        query: &Query,
    ) -> Result<Page<T>, Error> {
        let request = Request::get(collection).query(query.parameters());
        let body: Value = self.call(request).await?;
        Page::read(collection, body)
    }

    /// All of a list, page by page.
    #[must_use]
    pub fn pages<T: DeserializeOwned>(&self, collection: &str, query: Query) -> Pages<'_, T> {
        Pages::new(self, collection, query)
    }

    /// Under an `Idempotency-Key` of its own, so that trying again makes nothing twice.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn create<T: DeserializeOwned>(
        &self,
        collection: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let request = Request::new(Method::POST, collection).json(body);
        self.call(request.idempotent()).await
    }

    /// A merge patch; with a mask only what that names.
    ///
    /// # Errors
    /// As [`Client::call`].
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
    /// As [`Client::call`].
    pub async fn delete(&self, name: &str, force: bool) -> Result<(), Error> {
        let force = force.then(|| ("force".to_owned(), "true".to_owned()));
        let request = Request::new(Method::DELETE, name).query(force);
        self.call::<Value>(request).await.map(drop)
    }

    /// A custom method: `name` and `verb` of `namespaces/…/managers/…:apply`.
    ///
    /// # Errors
    /// As [`Client::call`].
    pub async fn act<T: DeserializeOwned>(
        &self,
        name: &str,
        verb: &str,
        body: &Value,
    ) -> Result<T, Error> {
        let request = Request::new(Method::POST, &format!("{name}:{verb}"));
        self.call(request.json(body)).await
    }

    /// Sends a request, again where that is safe and may help, and reads the answer.
    ///
    /// # Errors
    /// A refusal, nobody there, or an answer that is none of the API's.
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
                Some(wait) if request.may_be_repeated() => tokio::time::sleep(wait).await,
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
        let answer = sent.send().await.map_err(unreachable)?;
        let status = answer.status();
        let head = answer.headers().clone();
        let body = bounded(answer).await.map_err(unreachable)?;
        if status == StatusCode::OK || status == StatusCode::CREATED {
            return Ok(body);
        }
        Err(Refusal::read(status, &head, &body).into())
    }
}

/// As much as we take; what is longer reads as damaged.
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

/// Whether the address is of this machine.
#[must_use]
pub fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost",
        None => false,
    }
}
