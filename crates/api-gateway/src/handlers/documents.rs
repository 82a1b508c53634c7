//! The API's own description: `/openapi.yaml` as written, and `/openapi.json` generated from it.
//!
//! Both have an `ETag`, so that a repeated request gets a short response if nothing changed.

use std::{borrow::Cow, sync::LazyLock};

use actix_web::{
    HttpRequest, HttpResponse,
    http::header::{
        CACHE_CONTROL, CONTENT_TYPE, ETAG, EntityTag, Header as _, IfNoneMatch, TryIntoHeaderValue,
    },
};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::packed::Packed;

const YAML: &str = include_str!("../../openapi.yaml");

static YAML_DOCUMENT: LazyLock<Document> =
    LazyLock::new(|| Document::new("application/yaml", YAML.as_bytes().into()));

static JSON_DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let json = serde_yaml_ng::from_str::<Value>(YAML).expect("tests read the same document");
    let json = json.to_string().into_bytes();
    Document::new("application/json", json.into())
});

struct Document {
    content_type: &'static str,
    content: Packed,
    /// Weak, because the compressed response has the same tag.
    tag: EntityTag,
}

/// `GET /openapi.yaml`
pub(crate) async fn yaml(request: HttpRequest) -> HttpResponse {
    YAML_DOCUMENT.answer(&request)
}

/// `GET /openapi.json`
pub(crate) async fn json(request: HttpRequest) -> HttpResponse {
    JSON_DOCUMENT.answer(&request)
}

/// First hex digits of the hash of `content`: enough to distinguish releases.
pub(crate) fn fingerprint(content: &[u8]) -> String {
    hex::encode(&Sha256::digest(content)[..8])
}

impl Document {
    fn new(content_type: &'static str, content: Cow<'static, [u8]>) -> Self {
        Self {
            content_type,
            tag: EntityTag::new_weak(fingerprint(&content)),
            content: Packed::new(content),
        }
    }

    fn answer(&'static self, request: &HttpRequest) -> HttpResponse {
        let known = match IfNoneMatch::parse(request) {
            Ok(IfNoneMatch::Any) => true,
            Ok(IfNoneMatch::Items(tags)) => tags.iter().any(|one| one.weak_eq(&self.tag)),
            Err(_) => false,
        };
        let mut answer = if known {
            HttpResponse::NotModified()
        } else {
            HttpResponse::Ok()
        };
        // Clients may cache it but must revalidate: the next release may change it.
        answer.insert_header((CACHE_CONTROL, "no-cache"));
        if let Ok(tag) = self.tag.clone().try_into_value() {
            answer.insert_header((ETAG, tag));
        }
        if known {
            return answer.finish();
        }
        answer.insert_header((CONTENT_TYPE, self.content_type));
        self.content.answer(request, answer)
    }
}
