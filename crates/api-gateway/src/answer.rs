//! The shapes of successful answers; those of what is created are [`crate::idempotency::Made`].

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use serde::{Serialize, Serializer, ser::SerializeMap};
use store::Page;

/// 200 and the resource.
pub(crate) struct Found<T>(pub(crate) T);

/// 200 and `{}`: it is gone.
pub(crate) struct Deleted;

/// 200 and one page of a list.
pub(crate) struct Listed<T> {
    /// The key of the items, `scans`.
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

/// Item by item, so that each has the order of keys that it has alone.
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
