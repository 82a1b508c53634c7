//! Origins whose pages may call the API from a browser (`gateway.cors_allowed_origins`).
//!
//! None by default: without CORS headers a browser keeps answers from a page. With some, a preflight is
//! answered before anything else, since it carries no key; all other requests are answered as ever, and the
//! browser decides by the headers. Cookies play no part, keys are sent by hand.

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

/// Response headers that a page may read in addition to those that it always may.
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
        // A request of another origin is no fault: its browser sees no permission, and that is all.
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
