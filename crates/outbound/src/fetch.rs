//! Reads a page that a customer named: GET, redirects followed here, everything bounded.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use domain::{
    Issue, Timestamp,
    web_url::{self, Kind, WebUrl},
};
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, COOKIE, LOCATION,
    },
};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use url::Url;

use crate::{
    Client, Error, Failure, Page,
    body::Body,
    client::header_map,
    decode::{ACCEPTED, Decoder},
    exchange::{forbidden, retry_after},
    large::{self, SMALL_BYTES},
    trace::{Stage, Trace},
};

/// Limits of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time for everything together, including redirects.
    pub total: Duration,
    pub max_redirects: usize,
    /// Size of the body as it is sent.
    pub max_wire_bytes: usize,
    /// Size of the body after decompression.
    pub max_body_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            total: Duration::from_secs(20),
            max_redirects: 5,
            max_wire_bytes: 5 << 20,
            max_body_bytes: 10 << 20,
        }
    }
}

impl Client {
    /// Gets `url`. Any status is a response; `headers` (for example conditional ones) are sent too.
    ///
    /// # Errors
    /// When the URL or a redirect's target is refused, nothing answers in time, or a limit is reached.
    pub async fn fetch(
        &self,
        url: &str,
        limits: Limits,
        headers: &[(String, String)],
    ) -> Result<Page, Error> {
        let url = WebUrl::parse(url, self.policy(), Kind::Seed)
            .map_err(|issue| refusal(issue, url, false))?
            .url()
            .clone();
        let mut headers = header_map(headers)?;
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPTED));
        headers
            .entry(ACCEPT)
            .or_insert(HeaderValue::from_static("*/*"));

        let trace = Arc::new(Trace::default());
        let work = Box::pin(self.fetch_hops(url, limits, headers, &trace));
        match large::timeout(limits.total, work).await {
            Ok(outcome) => outcome,
            Err(_) => Err(trace.timeout(limits.total).into()),
        }
    }

    async fn fetch_hops(
        &self,
        mut url: Url,
        limits: Limits,
        mut headers: HeaderMap,
        trace: &Arc<Trace>,
    ) -> Result<Page, Error> {
        for _ in 0..=limits.max_redirects {
            trace.enter(Stage::Waiting);
            let (response, _checkout) = self
                .send(
                    Method::GET,
                    &url,
                    headers.clone(),
                    Body::empty(),
                    Arc::clone(trace),
                )
                .await?;
            trace.enter(Stage::Reading);
            let Some(location) = redirect(&response) else {
                return read(url, response, limits).await;
            };
            let target = self.judge_redirect(&url, location)?;
            if target.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
                headers.remove(COOKIE);
            }
            url = target;
        }
        Err(Error::TooManyRedirects {
            limit: limits.max_redirects,
        })
    }

    /// The server chooses the redirect's target, so it is checked like a customer's URL.
    fn judge_redirect(&self, from: &Url, location: &HeaderValue) -> Result<Url, Error> {
        let malformed = || Error::Url {
            issue: Issue::InvalidFormat,
            redirected: true,
        };
        let target = std::str::from_utf8(location.as_bytes())
            .ok()
            .and_then(|location| from.join(location).ok())
            .ok_or_else(malformed)?;
        // Each link of the page may be resolved against it.
        if target.as_str().len() > web_url::MAX_BYTES {
            return Err(refusal(Issue::TooLong, target.as_str(), true));
        }
        match web_url::check(&target, self.policy(), Kind::Seed) {
            Ok(()) => Ok(target),
            Err(issue) => Err(refusal(issue, target.as_str(), true)),
        }
    }
}

fn refusal(issue: Issue, url: &str, redirected: bool) -> Error {
    match issue {
        Issue::ForbiddenAddress => forbidden(url).into(),
        issue => Error::Url { issue, redirected },
    }
}

/// The target of a redirect. 300 and 304 are not redirects, and neither is a response without a location.
fn redirect(response: &Response<Incoming>) -> Option<&HeaderValue> {
    let is_redirect = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    is_redirect
        .then(|| response.headers().get(LOCATION))
        .flatten()
}

pub(crate) async fn read(
    url: Url,
    response: Response<Incoming>,
    limits: Limits,
) -> Result<Page, Error> {
    let (head, mut body) = response.into_parts();
    let too_large = Error::TooLarge {
        limit_bytes: limits.max_wire_bytes,
        wire: true,
    };
    // Announced as too large: no need to read any of it.
    let announced = head
        .headers
        .get(CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limits.max_wire_bytes as u64) {
        return Err(too_large);
    }

    let encoding = head
        .headers
        .get(CONTENT_ENCODING)
        .map(|value| value.to_str().unwrap_or("?"));
    let mut decoded = Decoded::new(encoding, limits.max_body_bytes)?;
    let mut read_bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Failure::of(&error))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        read_bytes += data.len();
        if read_bytes > limits.max_wire_bytes {
            return Err(too_large);
        }
        decoded.write(data).await?;
    }
    // An empty body is empty in any coding: 304 responses have the header without a body.
    let bytes = if read_bytes == 0 {
        Vec::new()
    } else {
        decoded.finish().await?
    };
    let status = head.status.as_u16();
    let wait = retry_after(&head.headers, Timestamp::now());
    Ok(Page::new(url, status, &head.headers, wait, bytes.into()))
}

/// A body as it is decompressed. One that becomes large waits for a place, and needs little memory until then.
struct Decoded<'a> {
    encoding: Option<&'a str>,
    max_bytes: usize,
    decoder: Decoder,
    /// Pieces of the body; `None` once it is larger than a small one.
    small: Option<Vec<Bytes>>,
}

impl<'a> Decoded<'a> {
    fn new(encoding: Option<&'a str>, max_bytes: usize) -> Result<Self, Error> {
        Ok(Self {
            encoding,
            max_bytes,
            decoder: Decoder::new(encoding, max_bytes.min(SMALL_BYTES))?,
            small: Some(Vec::new()),
        })
    }

    async fn write(&mut self, data: Bytes) -> Result<(), Error> {
        let written = self.decoder.write(&data);
        let Some(small) = &mut self.small else {
            return written;
        };
        small.push(data);
        let bytes: usize = small.iter().map(Bytes::len).sum();
        if bytes > SMALL_BYTES || is_too_large(&written) {
            return self.grow().await;
        }
        written
    }

    async fn finish(mut self) -> Result<Vec<u8>, Error> {
        let small = self.small.is_some();
        let decoder = std::mem::replace(&mut self.decoder, Decoder::new(None, 0)?);
        let finished = decoder.finish();
        if small && is_too_large(&finished) {
            self.grow().await?;
            return self.decoder.finish();
        }
        finished
    }

    /// Decompresses again, with the limit of large bodies: a few bytes can become many at once.
    async fn grow(&mut self) -> Result<(), Error> {
        self.decoder = Decoder::new(None, 0)?;
        large::take_place().await;
        self.decoder = Decoder::new(self.encoding, self.max_bytes)?;
        for data in self.small.take().unwrap_or_default() {
            self.decoder.write(&data)?;
        }
        Ok(())
    }
}

fn is_too_large<T>(written: &Result<T, Error>) -> bool {
    matches!(written, Err(Error::TooLarge { .. }))
}
