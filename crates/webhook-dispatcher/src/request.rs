//! The request of a delivery: SPEC part 6, and nothing beside it.

use bytes::Bytes;
use domain::{Post, ScanName, connection::Method};
use serde::Serialize;
use store::deliveries::Task;

#[derive(Serialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    event_type: &'static str,
    name: ScanName,
    post: &'a Post,
}

/// The body, in a form that is the same at each attempt.
pub(crate) fn body(task: &Task) -> Result<Bytes, serde_json::Error> {
    let event = Event {
        event_type: "SCAN",
        name: task.scan,
        post: &task.post,
    };
    serde_json::to_vec(&event).map(Bytes::from)
}

/// Ours first: a header of the customer's of the same name takes its place.
pub(crate) fn headers(task: &Task) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    headers.extend(
        task.headers
            .0
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    headers
}

pub(crate) fn method(method: Method) -> outbound::Method {
    match method {
        Method::Post => outbound::Method::POST,
        Method::Put => outbound::Method::PUT,
        Method::Patch => outbound::Method::PATCH,
    }
}
