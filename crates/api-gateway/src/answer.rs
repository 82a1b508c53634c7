//! The shapes of successful answers.

use actix_web::{HttpRequest, HttpResponse, Responder, body::BoxBody};
use serde::Serialize;
use serde_json::{Map, Value};
use store::Page;

/// 201 and the new resource.
pub(crate) struct Created<T>(pub(crate) T);

/// 200 and the resource.
pub(crate) struct Found<T>(pub(crate) T);

/// 200 and one page of a list.
pub(crate) struct Listed<T> {
    /// The key of the items, `scans`.
    pub(crate) key: &'static str,
    pub(crate) page: Page<T>,
}

impl<T: Serialize> Responder for Created<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Created().json(self.0)
    }
}

impl<T: Serialize> Responder for Found<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        HttpResponse::Ok().json(self.0)
    }
}

impl<T: Serialize> Responder for Listed<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let items = match serde_json::to_value(&self.page.items) {
            Ok(items) => items,
            Err(error) => return HttpResponse::from_error(crate::ApiError::Internal(error.into())),
        };
        let mut body = Map::from_iter([(self.key.to_owned(), items)]);
        if let Some(token) = self.page.next_page_token {
            body.insert("nextPageToken".to_owned(), Value::from(token));
        }
        HttpResponse::Ok().json(body)
    }
}
