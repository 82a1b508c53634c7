//! Shapes of successful responses. Responses to creations are in [`crate::idempotency::Made`].

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use serde::{Serialize, Serializer, ser::SerializeMap};
use store::Page;

/// 200 with the resource.
pub(crate) struct Found<T>(pub(crate) T);

/// 200 with `{}`: the resource was deleted.
pub(crate) struct Deleted;

/// 200 with one page of a list.
pub(crate) struct Listed<T> {
    /// JSON key of the items, for example `scans`.
    pub(crate) key: &'static str,
    pub(crate) page: Page<T>,
}

impl<T: Serialize> Responder for Found<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(self.0)
    }
}

impl Responder for Deleted {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(serde_json::Map::new())
    }
}

/// Serialises item by item, so that the keys of an item have the same order as in a response of its own.
impl<T: Serialize> Serialize for Listed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry(self.key, &self.page.items)?;
        if let Some(token) = &self.page.next_page_token {
            body.serialize_entry("nextPageToken", token)?;
        }
        body.end()
    }
}

impl<T: Serialize> Responder for Listed<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(self)
    }
}
