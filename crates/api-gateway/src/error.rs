//! All errors of a request, and the only place that knows status codes.
//!
//! The body follows part 7 of SPEC.md: `{code, message, details?}`. Causes are logged here, once, and never sent to
//! the client.

use actix_web::{
    HttpResponse, ResponseError,
    http::{
        StatusCode,
        header::{self, HeaderValue},
    },
};
use domain::{FieldIssue, Issue, Issues};
use serde::Serialize;
use store::{QueryError, quotas::Exceeded};

use crate::rates::standing::Standing;

/// Maximum number of reported fields: more than anyone reads, and it keeps responses to hostile bodies small.
const MAX_DETAILS: usize = 1_000;
/// Maximum number of fields named in the message, which is for people.
const MAX_NAMED: usize = 5;
const MAX_MESSAGE_CHARS: usize = 300;
/// In seconds. The client has waited for five already, and a statement ends after 30 at the latest.
const READS_RETRY_AFTER: &str = "10";

#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The key is missing or invalid. The response does not say which.
    #[error("api key missing or invalid")]
    Unauthenticated,
    /// The key is valid but lacks permission.
    #[error("{0}")]
    Forbidden(&'static str),
    /// Kind of the missing part of the path, for example `manager` or `path`.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The key or its account has too few points or spends too fast, or the address sent too many invalid keys.
    #[error("rate limit exceeded")]
    RateLimited {
        /// In seconds.
        retry_after: i64,
        standing: Standing,
    },
    /// The account already runs its maximum of expensive reads, previews or connection tests, sends its maximum of
    /// large bodies, or holds its maximum of database connections.
    #[error("too many costly requests at the same time")]
    TooManyAtOnce,
    /// Clients of the account do not read the responses that it has.
    #[error("too many bytes of responses wait to be read: read them first")]
    TooManyBytes,
    /// The account's share of memory for responses is reserved by reads that have no answer yet, for example because
    /// the database is silent.
    #[error("too many lists or previews of the account have no answer yet: wait for them")]
    TooManyReads,
    #[error("method not allowed")]
    MethodNotAllowed {
        /// Methods that the path supports.
        allow: String,
    },
    #[error("request body larger than {0} bytes")]
    BodyTooLarge(usize),
    #[error("request body did not arrive in time")]
    BodyTimeout,
    #[error("content type must be application/json")]
    UnsupportedMediaType,
    #[error("{0}")]
    Malformed(String),
    /// These fields, parameters or headers are invalid.
    #[error("invalid request: {}", summary(.0))]
    Invalid(#[from] Issues),
    /// Status of a request that the framework refused.
    #[error("{}", reason(*.0))]
    Framework(StatusCode),
    /// The database is unavailable or too busy. The client should retry.
    #[error("service temporarily unavailable")]
    Unavailable(#[source] anyhow::Error),
    #[error("internal error")]
    Internal(#[source] anyhow::Error),
}

#[derive(Serialize)]
struct Body<'a> {
    code: u16,
    message: String,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    details: &'a [FieldIssue],
}

impl ApiError {
    fn log(&self) {
        match self {
            Self::Unavailable(cause) => tracing::warn!("cannot answer now: {cause:#}"),
            Self::Internal(cause) => tracing::error!("request failed: {cause:#}"),
            _ => {}
        }
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match self {
            Self::Malformed(_) | Self::Invalid(_) => StatusCode::BAD_REQUEST,
            Self::Unauthenticated => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::RateLimited { .. }
            | Self::TooManyAtOnce
            | Self::TooManyBytes
            | Self::TooManyReads => StatusCode::TOO_MANY_REQUESTS,
            Self::MethodNotAllowed { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Framework(status) => *status,
            Self::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        self.log();
        let mut answer = HttpResponse::build(self.status_code());
        match self {
            Self::Unauthenticated => {
                answer.insert_header((header::WWW_AUTHENTICATE, "Bearer"));
            }
            Self::MethodNotAllowed { allow } => {
                if let Ok(allow) = HeaderValue::from_str(allow) {
                    answer.insert_header((header::ALLOW, allow));
                }
            }
            Self::RateLimited { retry_after, .. } => {
                answer.insert_header((header::RETRY_AFTER, *retry_after));
            }
            Self::Unavailable(_) | Self::TooManyAtOnce | Self::TooManyBytes => {
                answer.insert_header((header::RETRY_AFTER, "1"));
            }
            Self::TooManyReads => {
                answer.insert_header((header::RETRY_AFTER, READS_RETRY_AFTER));
            }
            _ => {}
        }
        let details = match self {
            Self::Invalid(issues) => {
                let all = issues.as_slice();
                &all[..all.len().min(MAX_DETAILS)]
            }
            _ => &[],
        };
        let mut answer = answer.json(Body {
            code: self.status_code().as_u16(),
            message: shortened(&self.to_string()),
            details,
        });
        if let Self::RateLimited { standing, .. } = self {
            standing.add_to(answer.headers_mut());
        }
        answer
    }
}

/// One short line with the invalid fields and the reasons.
fn summary(issues: &Issues) -> String {
    let all = issues.as_slice();
    let named = all.iter().take(MAX_NAMED).map(|one| {
        let why = one.hint.clone().unwrap_or_else(|| words(one.issue));
        format!("{}: {why}", one.field)
    });
    let mut parts: Vec<String> = named.collect();
    if all.len() > MAX_NAMED {
        parts.push(format!("and {} more", all.len() - MAX_NAMED));
    }
    parts.join(", ")
}

/// Writes `too_long` as `too long`.
fn words(issue: Issue) -> String {
    let word = serde_json::to_value(issue).unwrap_or_default();
    word.as_str().unwrap_or("failed").replace('_', " ")
}

/// Standard reason of a status, also for responses that are not an [`ApiError`].
pub(crate) fn reason(status: StatusCode) -> String {
    status
        .canonical_reason()
        .unwrap_or("request failed")
        .to_ascii_lowercase()
}

/// Shortens a message, which may repeat client input, and replaces its control characters.
fn shortened(message: &str) -> String {
    message
        .chars()
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .take(MAX_MESSAGE_CHARS)
        .collect()
}

/// Error on `field` that names the exceeded quota.
pub(crate) fn refusal(field: &str, exceeded: &Exceeded) -> ApiError {
    Issues::one_with_hint(field, Issue::QuotaExceeded, exceeded.to_string()).into()
}

impl From<QueryError> for ApiError {
    fn from(error: QueryError) -> Self {
        if store::lost_namespace(&error) {
            Self::NotFound("namespace")
        } else if store::is_passing(&error) || store::is_cut_off(&error) {
            Self::Unavailable(error.into())
        } else {
            Self::Internal(error.into())
        }
    }
}

impl From<store::Error> for ApiError {
    fn from(error: store::Error) -> Self {
        match error {
            store::Error::Query(error) => error.into(),
            store::Error::Pool(_) | store::Error::QuotaRace(_) | store::Error::PlansChanged => {
                Self::Unavailable(error.into())
            }
            store::Error::QuotaExceeded(exceeded) => refusal(exceeded.quota, &exceeded),
            store::Error::Sealed(_) | store::Error::Json(_) => Self::Internal(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use actix_web::{ResponseError, body::to_bytes};
    use domain::{Issue, Issues};

    use super::{ApiError, MAX_DETAILS};

    async fn body(error: ApiError) -> serde_json::Value {
        let bytes = to_bytes(error.error_response().into_body()).await.unwrap();
        serde_json::from_slice(&bytes).unwrap()
    }

    #[actix_web::test]
    async fn invalid_fields_are_listed_in_details() {
        let error = body(Issues::one("nickname", Issue::TooShort).into()).await;
        let expected = serde_json::json!({
            "code": 400, "message": "invalid request: nickname: too short",
            "details": [{"field": "nickname", "issue": "too_short"}]
        });
        assert_eq!(error, expected);
        let error = body(ApiError::NotFound("path")).await;
        assert_eq!(
            error,
            serde_json::json!({"code": 404, "message": "path not found"})
        );
    }

    #[actix_web::test]
    async fn messages_name_the_reason() {
        let mut issues = Issues::one("headers", Issue::TooMany);
        issues.add_with_hint(
            "pageToken",
            Issue::InvalidFormat,
            "not a token of this list",
        );
        let error = body(issues.into()).await;
        assert_eq!(
            error["message"],
            "invalid request: headers: too many, pageToken: not a token of this list"
        );
    }

    #[actix_web::test]
    async fn causes_do_not_reach_the_client() {
        let error = body(ApiError::Internal(anyhow::anyhow!("password is hush"))).await;
        assert_eq!(
            error,
            serde_json::json!({"code": 500, "message": "internal error"})
        );
    }

    #[actix_web::test]
    async fn error_responses_stay_small() {
        let mut issues = Issues::default();
        for n in 0..50_000 {
            issues.add(format!("x{n}"), Issue::UnknownField);
        }
        let error = body(issues.into()).await;
        assert_eq!(error["details"].as_array().unwrap().len(), MAX_DETAILS);
    }
}
