//! Origins whose pages may call the API from a browser (`gateway.cors_allowed_origins`).
//!
//! None by default: without CORS headers a browser hides responses from the page. If some are configured,
//! preflights are answered before anything else, because they carry no key. All other requests are answered as
//! usual, and the browser decides by the headers. Cookies are not used; clients send keys explicitly.

use actix_cors::Cors;
use actix_web::{http::Method, middleware::Condition};

/// How long a browser may remember a preflight, in seconds; browsers have smaller limits.
const MAX_AGE: usize = 7_200;

const METHODS: [Method; 5] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PATCH,
    Method::DELETE,
];

/// Response headers that a page may read in addition to the ones that browsers always allow.
const EXPOSED: [&str; 8] = [
    "x-request-id",
    "x-test",
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "retry-after",
    "idempotency-replayed",
    "www-authenticate",
];

pub(crate) fn cors(origins: &[String]) -> Condition<Cors> {
    let mut cors = Cors::default()
        .allowed_methods(METHODS)
        .allow_any_header()
        .expose_headers(EXPOSED)
        .max_age(MAX_AGE)
        // Requests from other origins are not refused: the browser sees no permission, and hides the response.
        .block_on_origin_mismatch(false);
    if origins.iter().any(|origin| origin == "*") {
        cors = cors.allow_any_origin().send_wildcard();
    } else {
        for origin in origins {
            cors = cors.allowed_origin(origin);
        }
    }
    Condition::new(!origins.is_empty(), cors)
}
