//! The API's own description: `/openapi.yaml` as written, and `/openapi.json` generated from it.
//!
//! Both have an `ETag`, so that a repeated request gets a short response if nothing changed.

use std::sync::LazyLock;

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{
        CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, Header as _, IfNoneMatch, TryIntoHeaderValue,
    },
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const YAML: &str = include_str!("../../openapi.yaml");

static JSON: LazyLock<String> = LazyLock::new(|| {
    serde_yaml_ng::from_str::<Value>(YAML)
        .expect("tests read the same document")
        .to_string()
});

static YAML_TAG: LazyLock<EntityTag> = LazyLock::new(|| tag(YAML));
static JSON_TAG: LazyLock<EntityTag> = LazyLock::new(|| tag(&JSON));

/// `GET /openapi.yaml`
pub(crate) async fn yaml(request: HttpRequest) -> HttpResponse {
    answer(&request, "application/yaml", YAML, &YAML_TAG)
}

/// `GET /openapi.json`
pub(crate) async fn json(request: HttpRequest) -> HttpResponse {
    answer(&request, "application/json", &JSON, &JSON_TAG)
}

/// First hex digits of the hash of `content`: enough to distinguish releases.
pub(crate) fn fingerprint(content: &[u8]) -> String {
    hex::encode(&Sha256::digest(content)[..8])
}

/// Weak, because the compressed response has the same tag.
fn tag(content: &str) -> EntityTag {
    EntityTag::new_weak(fingerprint(content.as_bytes()))
}

fn answer(
    request: &HttpRequest,
    content_type: &'static str,
    content: &'static str,
    tag: &EntityTag,
) -> HttpResponse {
    let known = match IfNoneMatch::parse(request) {
        Ok(IfNoneMatch::Any) => true,
        Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|one| one.weak_eq(tag)),
        Err(_) => false,
    };
    let mut answer = if known {
        HttpResponse::NotModified()
    } else {
        HttpResponse::Ok()
    };
    // Clients may cache it but must revalidate: the next release may change it.
    answer.insert_header((CACHE_CONTROL, "no-cache"));
    if let Ok(tag) = tag.clone().try_into_value() {
        answer.insert_header((ETAG, tag));
    }
    if known {
        return answer.finish();
    }
    answer.insert_header((CONTENT_TYPE, content_type));
    answer.body(content)
}
