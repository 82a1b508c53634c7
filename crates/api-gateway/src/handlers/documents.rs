//! The API's description of itself: `/openapi.yaml` as it was written, `/openapi.json` made of it.

use std::sync::LazyLock;

use actix_web::{HttpResponse, http::header::CONTENT_TYPE};
use serde_json::Value;

const YAML: &str = include_str!("../../openapi.yaml");

static JSON: LazyLock<String> = LazyLock::new(|| {
    serde_yaml_ng::from_str::<Value>(YAML)
        .expect("tests read the same document")
        .to_string()
});

/// `GET /openapi.yaml`
pub(crate) async fn yaml() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/yaml"))
        .body(YAML)
}

/// `GET /openapi.json`
pub(crate) async fn json() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((CONTENT_TYPE, "application/json"))
        .body(JSON.as_str())
}
