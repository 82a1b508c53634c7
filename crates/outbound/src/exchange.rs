//! One webhook: a request, and its result.
//!
//! One deadline covers everything from DNS to the body. The response counts when its whole head has arrived in
//! time: a server that sends the status line and withholds the headers has not responded. The body is read only
//! for the log; its length, its speed and its end do not change the outcome. Redirects are returned like any
//! other response.
//!
//! A server may answer before it has read the request. It has a second to read the rest, which is given up then. Otherwise
//! a server that reads nothing could keep many requests in our memory.

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use domain::{
    Issue, Timestamp,
    web_header::parse_retry_after,
    web_url::{Kind, WebUrl},
};
use http::{HeaderMap, Method, header::RETRY_AFTER};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use tokio::time::{timeout, timeout_at};

use crate::{
    Client, Failure, Phases,
    body::Body,
    client::header_map,
    connection::Opened,
    trace::{Stage, Trace},
};

/// Reads enough that a short body ends and its connection can be reused.
const MAX_READ_BYTES: usize = 64 * 1_024;
/// Bytes of the body that are stored in the log.
const MAX_KEPT_BYTES: usize = 4 * 1_024;
/// How long a server may read on after its response.
const READ_ON: Duration = Duration::from_secs(1);

/// A request to a customer's endpoint.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    pub method: Method,
    /// Checked again before use: the operator's policy may have changed since it was stored.
    pub url: &'a str,
    /// If a name occurs twice, the later value is sent.
    pub headers: &'a [(String, String)],
    pub body: Bytes,
}

/// Result of a request.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub status: Result<u16, Failure>,
    pub phases: Phases,
    /// Address of the peer; without a response, the address that was tried last.
    pub address: Option<IpAddr>,
    /// The first 4 KiB of the response body as text, safe to store.
    pub body: Option<String>,
    /// The pause that the endpoint asks for.
    pub retry_after: Option<Duration>,
}

impl Exchange {
    /// Returns true if the endpoint accepted it: any 2xx.
    pub fn is_success(&self) -> bool {
        matches!(self.status, Ok(200..=299))
    }
}

impl Client {
    /// Sends `request` and gives up after `deadline`.
    pub async fn exchange(&self, request: Request<'_>, deadline: Duration) -> Exchange {
        let started = Instant::now();
        let until = (started + deadline).into();
        let trace = Arc::new(Trace::default());
        let (body, mut unsent) = Body::new(request.body);

        let head = async {
            let url = self.judge(request.url)?;
            let headers = header_map(request.headers)?;
            let sent = self.send(request.method, url.url(), headers, body, Arc::clone(&trace));
            timeout_at(until, sent)
                .await
                .unwrap_or_else(|_| Err(trace.timeout(deadline)))
        };
        let head = Box::pin(head).await;
        let first_byte = started.elapsed();
        trace.enter(Stage::Reading);

        let mut progress = trace.snapshot();
        let mut answered = None;
        let mut exchange = match head {
            Err(failure) => failed(failure),
            Ok((response, checkout)) => {
                answered = Some(checkout);
                progress.phases.first_byte = Some(first_byte);
                if let Some(opened) = response.extensions().get::<Opened>() {
                    progress.address = opened.address;
                    if !Arc::ptr_eq(&opened.by, &trace) {
                        // The connection was reused: the times belong to an attempt that was not needed.
                        progress.phases.dns = None;
                        progress.phases.connect = None;
                        progress.phases.tls = None;
                    }
                }
                Exchange {
                    status: Ok(response.status().as_u16()),
                    retry_after: retry_after(response.headers(), Timestamp::now()),
                    body: excerpt(response.into_body(), until).await,
                    ..failed(Failure::Reset)
                }
            }
        };
        exchange.address = progress.address;
        exchange.phases = Phases {
            total: started.elapsed(),
            ..progress.phases
        };
        if let Some(checkout) = answered
            && timeout(READ_ON, unsent.sent()).await.is_err()
        {
            checkout.give_up(deadline);
        }
        exchange
    }

    fn judge(&self, url: &str) -> Result<WebUrl, Failure> {
        WebUrl::parse(url, self.policy(), Kind::Connection).map_err(|issue| match issue {
            Issue::ForbiddenAddress => forbidden(url),
            Issue::Forbidden => Failure::invalid_request("http is not allowed here"),
            _ => Failure::invalid_request("not a valid webhook url"),
        })
    }
}

fn failed(failure: Failure) -> Exchange {
    Exchange {
        status: Err(failure),
        phases: Phases::default(),
        address: None,
        body: None,
        retry_after: None,
    }
}

/// Names only the host: paths of webhooks are often secrets.
pub(crate) fn forbidden(url: &str) -> Failure {
    let host = url::Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default();
    let address = domain::web_url::literal_address(&host);
    Failure::ForbiddenAddress { host, address }
}

/// Reads until the end, the size limit or the deadline. Only a body read to its end keeps the connection in
/// use; otherwise it is closed.
async fn excerpt(mut body: Incoming, until: tokio::time::Instant) -> Option<String> {
    let mut kept = Vec::new();
    let mut read = 0;
    while read <= MAX_READ_BYTES
        && let Ok(Some(Ok(frame))) = timeout_at(until, body.frame()).await
    {
        let Some(data) = frame.data_ref() else {
            continue;
        };
        read += data.len();
        let room = MAX_KEPT_BYTES - kept.len();
        kept.extend_from_slice(&data[..data.len().min(room)]);
    }
    (!kept.is_empty()).then(|| printable(&kept))
}

/// Text of limited size. PostgreSQL text cannot contain NUL.
fn printable(bytes: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(MAX_KEPT_BYTES));
    text
}

pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    parse_retry_after(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

#[cfg(test)]
mod tests {
    use super::{MAX_KEPT_BYTES, printable};

    #[test]
    fn an_excerpt_is_storable_text_of_bounded_size() {
        assert_eq!(printable(b"a\0b\xffc"), "a\u{fffd}b\u{fffd}c");
        assert!(printable(&[0xff; MAX_KEPT_BYTES]).len() <= MAX_KEPT_BYTES);
    }
}
