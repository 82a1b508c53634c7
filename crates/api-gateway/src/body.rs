//! JSON bodies, which are read only after all checks that come before them.

use std::{cell::RefCell, collections::HashSet, time::Duration};

use actix_web::{
    FromRequest, HttpMessage, HttpRequest,
    dev::Payload,
    http::{
        Method,
        header::{CONTENT_ENCODING, CONTENT_LENGTH},
    },
    web::{BytesMut, Data},
};
use domain::{
    FieldIssue, Issue, Issues, json,
    patch::{Patch, Paths},
};
use futures::{
    StreamExt,
    future::{Ready, ready},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    ApiError,
    authenticate::Caller,
    idempotency::Once,
    in_flight::{CHUNK_BYTES, MAX_BODY_BYTES, Reserved, uncounted_bytes},
    query::Parameters,
    state::AppState,
};

/// Maximum texts with a NUL character that a response names.
const MAX_NULS: usize = 100;

/// Request body that has not been read yet.
pub(crate) struct RawJson {
    payload: Payload,
    declared_length: Option<u64>,
    /// Maximum size of a body for which no bytes are reserved.
    uncounted_bytes: usize,
    is_json: bool,
    /// Errors outside the body: `x-test`, query parameters, and `Idempotency-Key`.
    beside: Issues,
    /// `updateMask` of a PATCH.
    mask: Option<String>,
    /// Cancelled when the gateway stops: the rest of the body is not waited for.
    cut: CancellationToken,
    timeout: Duration,
    once: Once,
    caller: Option<Caller>,
}

/// A request body that is JSON, and has not been checked further: a missing resource is reported before its fields.
pub(crate) struct Body {
    json: Value,
    /// Errors outside the body.
    beside: Issues,
    mask: Option<String>,
    /// Bytes of the body, which are reserved until it is parsed.
    reserved: Vec<Reserved>,
}

impl Body {
    /// Returns the bytes of the body, for a handler that keeps its text after it is parsed.
    pub(crate) fn take_reserved(&mut self) -> Vec<Reserved> {
        std::mem::take(&mut self.reserved)
    }

    /// Returns what `parse` makes of the body, or all invalid fields, including those outside the body.
    pub(crate) fn parse<T>(
        self,
        parse: impl FnOnce(&Value) -> Result<T, Issues>,
    ) -> Result<T, Issues> {
        let mut issues = self.beside;
        let parsed = parse(&self.json);
        let found = parsed.as_ref().err().cloned().unwrap_or_default();
        // PostgreSQL cannot store text with a NUL character.
        let named = found.as_slice().iter().map(|one| one.field.as_str());
        let named: HashSet<&str> = named.collect();
        for path in paths_with_nul(&self.json) {
            if !named.contains(path.as_str()) {
                issues.add_with_hint(path, Issue::InvalidFormat, "holds a nul character");
            }
        }
        drop(named);
        issues.extend(found);
        let issues = with_visible_names(&issues);
        match parsed {
            Ok(draft) => issues.or(draft),
            Err(_) => Err(issues),
        }
    }

    /// True if the body has this field.
    pub(crate) fn has(&self, field: &str) -> bool {
        self.json.get(field).is_some()
    }

    /// Returns what `parse` makes of the change, and the fields that it names.
    pub(crate) fn patch<T>(
        mut self,
        paths: Paths,
        parse: impl FnOnce(&Patch) -> Result<T, Issues>,
    ) -> Result<(T, Vec<String>), Issues> {
        let mask = self.mask.take();
        self.parse(|body| {
            let patch = Patch::parse(body, mask.as_deref(), paths)?;
            Ok((parse(&patch)?, patch.named(paths)))
        })
    }

    /// Accepts the body of a custom method without fields.
    pub(crate) fn nothing(self) -> Result<(), Issues> {
        self.parse(|body| {
            let issues = RefCell::default();
            if let Some(fields) = json::Object::root(body, &issues) {
                fields.finish();
            }
            issues.into_inner().or(())
        })
    }
}

impl RawJson {
    /// Returns the fingerprint that identifies a repeated request, once the body was read.
    pub(crate) fn once(&self) -> Once {
        self.once.clone()
    }

    /// Reads the body. Reports errors in this order: 413, 415, 400 for malformed JSON. Call before a transaction, which
    /// must not wait for a client.
    pub(crate) async fn read(self) -> Result<Body, ApiError> {
        self.read_as(false).await
    }

    /// Same as [`RawJson::read`], for a custom method without fields: an empty body of any content type is `{}`.
    pub(crate) async fn read_optional(self) -> Result<Body, ApiError> {
        self.read_as(true).await
    }

    async fn read_as(mut self, may_be_empty: bool) -> Result<Body, ApiError> {
        let is_json = self.is_json;
        let (beside, mask) = (std::mem::take(&mut self.beside), self.mask.take());
        let cut = self.cut.clone();
        let once = self.once();
        let (bytes, reserved) = tokio::select! {
            read = tokio::time::timeout(self.timeout, self.bytes()) => {
                read.map_err(|_elapsed| ApiError::BodyTimeout)??
            }
            () = cut.cancelled() => {
                let cause = anyhow::anyhow!("the gateway stops, and a body is not whole");
                return Err(ApiError::Unavailable(cause));
            }
        };
        once.body_was(&bytes);
        let json = if may_be_empty && bytes.is_empty() {
            Value::Object(serde_json::Map::new())
        } else if is_json {
            json::parse(&bytes)
                .map_err(|error| ApiError::Malformed(not_json(&error.to_string())))?
        } else {
            return Err(ApiError::UnsupportedMediaType);
        };
        Ok(Body {
            json,
            beside,
            mask,
            reserved,
        })
    }

    async fn bytes(mut self) -> Result<(BytesMut, Vec<Reserved>), ApiError> {
        let max = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
        if self.declared_length.is_some_and(|length| length > max) {
            return Err(ApiError::BodyTooLarge(MAX_BODY_BYTES));
        }
        let is_long = self
            .declared_length
            .is_some_and(|length| length > CHUNK_BYTES as u64);
        let (mut bytes, mut reserved, mut reserved_bytes) = (BytesMut::new(), Vec::new(), 0);
        while let Some(chunk) = self.payload.next().await {
            let chunk = chunk.map_err(|error| {
                ApiError::Malformed(format!("body cannot be read: {error}").to_lowercase())
            })?;
            let wanted_bytes = match bytes.len() + chunk.len() {
                length if length > MAX_BODY_BYTES => {
                    return Err(ApiError::BodyTooLarge(MAX_BODY_BYTES));
                }
                length if length <= self.uncounted_bytes => 0,
                // A body that is to be longer does not first take a part, and then wait for the rest.
                length if length <= CHUNK_BYTES && !is_long => CHUNK_BYTES,
                _ => MAX_BODY_BYTES,
            };
            if wanted_bytes > reserved_bytes
                && let Some(caller) = &self.caller
            {
                let more = caller.reserve_body(wanted_bytes - reserved_bytes);
                reserved.push(more.await?);
                reserved_bytes = wanted_bytes;
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((bytes, reserved))
    }
}

impl FromRequest for RawJson {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let headers = request.headers();
        let declared_length = headers
            .get(CONTENT_LENGTH)
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.parse().ok());
        let encoded = headers
            .get_all(CONTENT_ENCODING)
            .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"));
        let state = request.app_data::<Data<AppState>>();
        let parameters = Parameters::of(request);
        let changes = request.method() == Method::PATCH;
        let (mask, mut beside) = if changes {
            parameters.update_mask()
        } else {
            (None, parameters.none().err().unwrap_or_default())
        };
        let once = Once::of(request).unwrap_or_else(|issues| {
            beside.extend(issues);
            Once::default()
        });
        ready(Ok(Self {
            payload: payload.take(),
            declared_length,
            uncounted_bytes: uncounted_bytes(request.version()),
            is_json: !encoded && is_json(request, changes),
            cut: state.map(|state| state.bodies()).unwrap_or_default(),
            timeout: state.map(|state| state.body_timeout).unwrap_or_default(),
            beside,
            mask,
            once,
            caller: request.extensions().get::<Caller>().cloned(),
        }))
    }
}

/// Accepts `application/json` and, for changes, `application/merge-patch+json`. The charset, if given, must be
/// UTF-8 (RFC 8259 8.1).
fn is_json(request: &HttpRequest, changes: bool) -> bool {
    let Ok(Some(mime)) = request.mime_type() else {
        return false;
    };
    let essence = mime.essence_str();
    (essence == "application/json" || changes && essence == "application/merge-patch+json")
        && mime
            .get_param("charset")
            .is_none_or(|charset| charset == "utf-8")
}

/// Explains why the body is not JSON: in lower case, except for keys of the body, which are in backquotes.
fn not_json(why: &str) -> String {
    let words = why.split('`').enumerate().map(|(at, part)| {
        let quoted = at % 2 == 1;
        if quoted {
            part.to_owned()
        } else {
            part.to_lowercase()
        }
    });
    let words: Vec<String> = words.collect();
    format!("body is not valid json: {}", words.join("`"))
}

/// Writes an empty key as `""`, because a path that ends in nothing is hard to read.
fn with_visible_names(issues: &Issues) -> Issues {
    let mut shown = Issues::default();
    for FieldIssue { field, issue, hint } in issues.as_slice() {
        let nothing = field.is_empty() || field.ends_with('.');
        let field = format!("{field}{}", if nothing { r#""""# } else { "" });
        match hint {
            Some(hint) => shown.add_with_hint(field, *issue, hint.as_str()),
            None => shown.add(field, *issue),
        }
    }
    shown
}

/// Paths of texts in the body that contain a NUL character, up to [`MAX_NULS`]. Their keys are cut like those of other
/// issues: a body may have a long one with many texts.
fn paths_with_nul(body: &Value) -> Vec<String> {
    enum Part<'a> {
        Key(&'a str),
        At(usize),
    }
    fn walk<'a>(value: &'a Value, path: &mut Vec<Part<'a>>, found: &mut Vec<String>) {
        if found.len() >= MAX_NULS {
            return;
        }
        match value {
            Value::String(text) if text.contains('\0') => found.push(written(path)),
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    path.push(Part::At(at));
                    walk(item, path, found);
                    path.pop();
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    path.push(Part::Key(key));
                    walk(value, path, found);
                    path.pop();
                }
            }
            _ => {}
        }
    }
    fn written(path: &[Part<'_>]) -> String {
        let mut text = String::new();
        for part in path {
            match part {
                Part::At(at) => text.push_str(&format!("[{at}]")),
                Part::Key(key) => {
                    if !text.is_empty() {
                        text.push('.');
                    }
                    text.push_str(&json::shown(key));
                }
            }
        }
        text
    }
    let mut found = Vec::new();
    walk(body, &mut Vec::new(), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use domain::{Issue, Issues};

    use super::{MAX_NULS, not_json, paths_with_nul, with_visible_names};

    #[test]
    fn messages_are_lower_case_and_keys_are_unchanged() {
        let expected = "body is not valid json: eof while parsing an object";
        assert_eq!(not_json("EOF while parsing an object"), expected);
        let expected = "body is not valid json: duplicate key `Nickname` at line 1";
        assert_eq!(not_json("Duplicate key `Nickname` at line 1"), expected);
    }

    #[test]
    fn empty_keys_are_shown_as_quotes() {
        let mut issues = Issues::one("", Issue::UnknownField);
        issues.add("input.", Issue::UnknownField);
        issues.add("nickname", Issue::Required);
        let shown = with_visible_names(&issues);
        let fields: Vec<&str> = shown
            .as_slice()
            .iter()
            .map(|one| one.field.as_str())
            .collect();
        assert_eq!(fields, [r#""""#, r#"input."""#, "nickname"]);
    }

    #[test]
    fn nul_is_found_in_keys_and_values_of_any_depth() {
        let body =
            json!({"": {"": ["\0"]}, "a": "x\0", "b": [{"c": "\0"}, "fine"], "d": {"e": "\0y"}});
        assert_eq!(paths_with_nul(&body), [r#""".""[0]"#, "a", "b[0].c", "d.e"]);
    }

    #[test]
    fn many_texts_with_nul_under_a_long_key_need_little_memory() {
        let key = "k".repeat(100_000);
        let paths = paths_with_nul(&json!({ key: vec!["\0"; 10_000] }));
        assert_eq!(paths.len(), MAX_NULS);
        assert_eq!(paths[99], format!("{}[99]", "k".repeat(80)));
    }
}
