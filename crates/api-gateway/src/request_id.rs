//! Ids of requests.

use std::sync::Arc;

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use domain::Id;

pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MAX_REQUEST_ID_BYTES: usize = 128;

/// Id of the request, repeated in the response.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) Arc<str>);

impl RequestId {
    /// Returns the caller's request id if it is valid, else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let id = headers
            .get(X_REQUEST_ID)
            .map(HeaderValue::as_bytes)
            .filter(|id| (1..=MAX_REQUEST_ID_BYTES).contains(&id.len()))
            .filter(|id| id.iter().all(u8::is_ascii_graphic))
            .map_or_else(
                || Id::generate().to_string(),
                |id| String::from_utf8_lossy(id).into_owned(),
            );
        Self(id.into())
    }
}
