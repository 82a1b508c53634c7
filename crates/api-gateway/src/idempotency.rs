//! `Idempotency-Key`: a repeated POST gets the response of the first one.
//!
//! Responses are kept for a day, by API key, path and `Idempotency-Key`. Only the response of a successful request
//! is kept, and it is written in the request's transaction. A failed request changed nothing and may be repeated as
//! a new one. The same key with another body is 400 `conflict`. Of two concurrent requests the second waits for the
//! first, on any replica. Test mode keeps nothing.

use std::sync::{Arc, OnceLock};

use actix_web::{
    HttpRequest, HttpResponse, Responder,
    body::BoxBody,
    http::{
        Method, StatusCode,
        header::{self, HeaderName, HeaderValue},
    },
};
use domain::{Id, Issue, Issues};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use store::{
    AsyncPgConnection,
    idempotency::{self, Answer, RequestId},
};

use crate::{
    ApiError,
    authenticate::Caller,
    transaction::{Outcome, Work},
};

pub(crate) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Header of a repeated response.
const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");
/// Name in responses.
const FIELD: &str = "Idempotency-Key";
const MAX_BYTES: usize = 255;

/// Idempotency of a request, if it has a key.
#[derive(Clone, Default)]
pub(crate) struct Once {
    /// Hash of the path and the key, if there is one.
    request: Option<[u8; 32]>,
    /// Hash of the body, set when the body was read.
    body: Arc<OnceLock<[u8; 32]>>,
}

impl Once {
    /// Reads the header of a POST; other methods need none.
    pub(crate) fn of(request: &HttpRequest) -> Result<Self, Issues> {
        let mut values = request.headers().get_all(IDEMPOTENCY_KEY);
        let Some(value) = values.next().filter(|_| request.method() == Method::POST) else {
            return Ok(Self::default());
        };
        let issue = match value.as_bytes() {
            _ if values.next().is_some() => Issue::Duplicate,
            [] => Issue::TooShort,
            key if key.len() > MAX_BYTES => Issue::TooLong,
            key if !key.iter().all(u8::is_ascii_graphic) => Issue::InvalidFormat,
            key => {
                // A path has no line breaks.
                let hash = Sha256::new()
                    .chain_update(request.match_info().as_str())
                    .chain_update("\n")
                    .chain_update(key);
                return Ok(Self {
                    request: Some(hash.finalize().into()),
                    body: Arc::default(),
                });
            }
        };
        Err(Issues::one(FIELD, issue))
    }

    pub(crate) fn body_was(&self, bytes: &[u8]) {
        if self.request.is_some() {
            // The body is read only once.
            let _ = self.body.set(Sha256::digest(bytes).into());
        }
    }

    fn request(&self, api_key: Id) -> Option<(RequestId, [u8; 32])> {
        let hash = self.request?;
        let body = *self.body.get()?;
        Some((RequestId { api_key, hash }, body))
    }
}

/// The created resource, from this request or from the first one with its key.
pub(crate) enum Made<T> {
    Now(T),
    Before(Answer),
}

impl<T: Serialize> Responder for Made<T> {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        match self {
            Self::Now(made) => HttpResponse::Created().json(made),
            Self::Before(answer) => {
                let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::CREATED);
                HttpResponse::build(status)
                    .insert_header((header::CONTENT_TYPE, "application/json"))
                    .insert_header((REPLAYED, HeaderValue::from_static("true")))
                    .body(answer.body)
            }
        }
    }
}

impl Caller {
    /// Same as [`Caller::write`], for work that creates a resource (201). Requests with the same
    /// `Idempotency-Key` run it once.
    pub(crate) async fn create<T, W>(&self, once: &Once, work: W) -> Result<Made<T>, ApiError>
    where
        T: Serialize + Send,
        W: for<'c> Work<&'c mut AsyncPgConnection, Result<Outcome<T>, ApiError>, Future: Send>
            + Send,
    {
        let Some((request, body_hash)) = once.request(self.key.id) else {
            return self.write(work).await.map(Made::Now);
        };
        let sealer = &self.state.sealer;
        self.write(async move |conn| {
            if let Some(first) = idempotency::begin(conn, sealer, &request).await? {
                return if first.body_hash == body_hash {
                    Ok(Outcome::of(Made::Before(first), None))
                } else {
                    let hint = "came before with another body";
                    Err(Issues::one_with_hint(FIELD, Issue::Conflict, hint).into())
                };
            }
            let outcome = work(conn).await?;
            let body = serde_json::to_string(&outcome.answer)
                .map_err(|error| ApiError::Internal(error.into()))?;
            let answer = Answer {
                body_hash,
                status: StatusCode::CREATED.as_u16(),
                body,
            };
            idempotency::finish(conn, sealer, &request, &answer).await?;
            Ok(outcome.map(Made::Now))
        })
        .await
    }
}
