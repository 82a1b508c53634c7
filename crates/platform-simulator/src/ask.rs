//! Requests and responses, independent of the transport, so that [`super::InMemory`] returns without a network
//! the same as the server returns over one.

use std::collections::HashMap;

use actix_web::{HttpRequest, HttpResponse, http::StatusCode, web};
use serde_json::Value;

use super::world::World;

/// One request.
#[derive(Debug, Default)]
pub(crate) struct Ask {
    pub(crate) is_post: bool,
    /// Path below the platform's own path, without a leading slash.
    pub(crate) path: String,
    pub(crate) query: HashMap<String, String>,
    /// The query again, with repeated parameters.
    pub(crate) all: Vec<(String, String)>,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    /// Fields of a form in the body.
    pub(crate) form: HashMap<String, String>,
}

/// One response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Value,
}

/// Function that answers for a platform.
pub(crate) type Answer = fn(&World, &Ask) -> Reply;

impl Ask {
    pub(crate) fn new(path: &str, query: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let pairs = |bytes: &[u8]| url::form_urlencoded::parse(bytes).into_owned().collect();
        let lower = |header: &(&str, &str)| (header.0.to_ascii_lowercase(), header.1.to_owned());
        Self {
            is_post: false,
            path: path.trim_start_matches('/').to_owned(),
            query: pairs(query.as_bytes()),
            all: url::form_urlencoded::parse(query.as_bytes())
                .into_owned()
                .collect(),
            headers: headers.iter().map(lower).collect(),
            form: pairs(body),
        }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.text(name).parse().ok()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|header| header.0 == name);
        found.map(|header| header.1.as_str())
    }
}

impl Reply {
    pub(crate) fn ok(body: Value) -> Self {
        Self::status(200, body)
    }

    pub(crate) fn status(status: u16, body: Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body,
        }
    }
}

/// Serves everything below `scope` with `answer`.
pub(crate) fn serve(config: &mut web::ServiceConfig, scope: &str, answer: Answer) {
    let below = scope.len();
    let handle = move |world: web::Data<World>, request: HttpRequest, body: web::Bytes| {
        let headers: Vec<(&str, &str)> = request
            .headers()
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect();
        let path = request.path().get(below..).unwrap_or_default();
        let mut ask = Ask::new(path, request.query_string(), &headers, &body);
        ask.is_post = request.method() == actix_web::http::Method::POST;
        let reply = answer(&world, &ask);
        let status = StatusCode::from_u16(reply.status);
        let mut response = HttpResponse::build(status.unwrap_or_default());
        for (name, value) in reply.headers {
            response.insert_header((name, value));
        }
        std::future::ready(response.json(reply.body))
    };
    config.service(web::scope(scope).default_service(web::to(handle)));
}
