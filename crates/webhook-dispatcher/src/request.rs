//! The request of a delivery: SPEC part 6, and the options of its Connection.

use bytes::Bytes;
use domain::{
    Id, Post, ScanName, Timestamp,
    connection::{Format, Headers, Method, SigningSecret},
};
use store::{connections::Endpoint, deliveries::Task};

use crate::format;

const BAD_REQUEST: u16 = 400;
const TOO_LARGE: u16 = 413;

/// Content of a request.
pub(crate) struct Parts<'a> {
    /// Message id for the receiver, identical at each attempt.
    id: Id,
    scan: ScanName,
    post: &'a Post,
    method: Method,
    headers: &'a Headers,
    format: Format,
    is_plain: bool,
    secrets: &'a [SigningSecret],
}

impl<'a> Parts<'a> {
    pub(crate) fn of(task: &'a Task) -> Self {
        Self {
            id: task.delivery.delivery,
            scan: task.scan,
            post: &task.post,
            method: task.method,
            headers: &task.headers,
            format: task.format,
            is_plain: is_refused(task),
            secrets: &task.signing_secrets,
        }
    }

    /// Content of an event without a delivery.
    pub(crate) fn of_sample(endpoint: &'a Endpoint, scan: ScanName, post: &'a Post) -> Self {
        Self {
            id: Id::generate(),
            scan,
            post,
            method: endpoint.method,
            headers: &endpoint.headers,
            format: endpoint.format,
            is_plain: false,
            secrets: &endpoint.signing_secrets,
        }
    }

    /// The body. It is identical at each attempt, except after a chat service refused it.
    pub(crate) fn body(&self) -> Result<Bytes, serde_json::Error> {
        let body = if self.is_plain {
            format::plain_body
        } else {
            format::body
        };
        body(self.format, self.scan, self.post)
    }

    /// Our headers come first: a header of the customer with the same name replaces ours. Signatures come last, and
    /// nothing replaces them.
    pub(crate) fn headers(&self, body: &[u8], now: Timestamp) -> Vec<(String, String)> {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers.extend(
            self.headers
                .0
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        headers.extend(webhook::signature_headers(self.secrets, self.id, now, body));
        headers
    }

    pub(crate) fn method(&self) -> outbound::Method {
        match self.method {
            Method::Post => outbound::Method::POST,
            Method::Put => outbound::Method::PUT,
            Method::Patch => outbound::Method::PATCH,
        }
    }
}

/// Returns true if the last attempt was answered as a service answers a message that it does not accept. What was before
/// the delivery was reopened does not count, because the cause may be gone.
fn is_refused(task: &Task) -> bool {
    let is_again = task.attempt_count > task.schedule_base;
    is_again && matches!(task.last_status_code, Some(BAD_REQUEST | TOO_LARGE))
}
