//! The request of a delivery: SPEC part 6, and the options of its Connection.

use bytes::Bytes;
use domain::{
    Id, Timestamp,
    connection::{Format, Headers, Method, SigningSecret},
};
use store::{
    connections::Endpoint,
    deliveries::{Subject, Task},
};

use crate::format::{self, Shape};

const BAD_REQUEST: u16 = 400;
const TOO_LARGE: u16 = 413;
const UNPROCESSABLE: u16 = 422;

/// Content of a request.
pub(crate) struct Parts<'a> {
    /// Message id for the receiver, identical at each attempt.
    id: Id,
    subject: &'a Subject,
    method: Method,
    headers: &'a Headers,
    format: Format,
    shape: Shape,
    secrets: &'a [SigningSecret],
}

impl<'a> Parts<'a> {
    pub(crate) fn of(task: &'a Task) -> Self {
        Self {
            id: task.delivery.delivery,
            subject: &task.subject,
            method: task.method,
            headers: &task.headers,
            format: task.format,
            shape: shape(task),
            secrets: &task.signing_secrets,
        }
    }

    /// Content of an event without a delivery.
    pub(crate) fn of_sample(endpoint: &'a Endpoint, subject: &'a Subject) -> Self {
        Self {
            id: Id::generate(),
            subject,
            method: endpoint.method,
            headers: &endpoint.headers,
            format: endpoint.format,
            shape: Shape::Full,
            secrets: &endpoint.signing_secrets,
        }
    }

    /// The body. It is identical at each attempt, except after a chat service refused it.
    pub(crate) fn body(&self) -> Result<Bytes, serde_json::Error> {
        format::body(self.format, self.shape, self.subject)
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

/// Returns the full message, unless the last answer looks like that of a service that does not accept it. Answers from
/// before the delivery was reopened do not count, because their cause may be gone. Plain messages with and without a
/// thread alternate: a Discord channel accepts only one of them, and its webhook does not say which.
fn shape(task: &Task) -> Shape {
    let tries = task.attempt_count.saturating_sub(task.schedule_base);
    let is_refused = task.last_status_code.is_some_and(is_refusal);
    match tries {
        1.. if is_refused && tries % 2 == 1 => Shape::PlainThread,
        1.. if is_refused => Shape::Plain,
        _ => Shape::Full,
    }
}

/// Returns true if this answer seems to refuse the form of the message, and the next attempt has another form. For
/// Discord, the two plain forms take turns for as long as they are refused.
pub(crate) fn refuses_form(task: &Task, status: Option<u16>) -> bool {
    let has_another = match task.format {
        Format::Earshot | Format::Email => false,
        Format::Slack | Format::Teams => shape(task) == Shape::Full,
        Format::Discord => true,
    };
    has_another && status.is_some_and(is_refusal)
}

fn is_refusal(status: u16) -> bool {
    matches!(status, BAD_REQUEST | TOO_LARGE | UNPROCESSABLE)
}
