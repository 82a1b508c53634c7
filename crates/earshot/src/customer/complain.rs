//! Error messages that help: the field, the issue, the given value, a possible fix, and the id to give to support.

use std::{fmt::Write as _, io, process::ExitCode};

use client::{Detail, Error, Refusal};
use domain::error_chain;
use serde_json::Value;

use super::foreign::one_line;

const MAX_SHOWN: usize = 80;

#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage: no request was sent to the service.
    Usage(String),
    /// The service's error, or no answer.
    Api(Box<Error>, Given),
    /// A local error: a file, a receiver.
    Local(String),
    /// `diff` has found changes, and printed them.
    Differs,
    /// The reader of our output has closed the pipe.
    Closed,
}

/// Content of a request, for messages about it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    pub(crate) body: Value,
    pub(crate) parameters: Vec<(&'static str, String)>,
}

impl Given {
    pub(crate) fn body(body: &Value) -> Self {
        Self {
            body: body.clone(),
            parameters: Vec::new(),
        }
    }

    /// Returns the given value of the field; `None` if it is missing or a secret.
    fn at(&self, field: &str) -> Option<String> {
        let secret = ["headers", "signingSecrets"];
        if secret.iter().any(|start| field.starts_with(start)) {
            return None;
        }
        let parameter = self.parameters.iter().find(|(name, _)| *name == field);
        if let Some((_, value)) = parameter {
            return Some(shortened(value));
        }
        let pointer = field.replace('[', ".").replace(']', "").replace('.', "/");
        let value = self.body.pointer(&format!("/{pointer}"))?;
        Some(shortened(&value.to_string()))
    }
}

fn shortened(text: &str) -> String {
    let text = one_line(text);
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl Failure {
    pub(crate) fn usage(words: impl Into<String>) -> Self {
        Self::Usage(words.into())
    }

    pub(crate) fn with(self, given: Given) -> Self {
        match self {
            Self::Api(error, _) => Self::Api(error, given),
            other => other,
        }
    }

    /// Prints the error to stderr, and returns the matching exit code.
    pub(crate) fn report(self) -> ExitCode {
        let code = match &self {
            Self::Closed => return ExitCode::SUCCESS,
            Self::Differs => return ExitCode::from(4),
            Self::Usage(_) => 2,
            Self::Api(error, _) if matches!(**error, Error::Unreachable { .. }) => 3,
            Self::Api(error, _) if error.refusal().is_some_and(|it| it.status == 503) => 3,
            Self::Api(..) | Self::Local(_) => 1,
        };
        eprintln!("earshot: {}", self.words());
        ExitCode::from(code)
    }

    pub(crate) fn words(&self) -> String {
        match self {
            Self::Usage(words) | Self::Local(words) => words.clone(),
            Self::Closed | Self::Differs => String::new(),
            Self::Api(error, given) => match &**error {
                Error::Refused(refusal) => refused(refusal, given),
                other => error_chain(other),
            },
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Api(Box::new(error), Given::default())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Local(error.to_string()),
        }
    }
}

fn refused(refusal: &Refusal, given: &Given) -> String {
    let mut words = format!(
        "refused ({}): {}",
        refusal.status,
        one_line(&refusal.message)
    );
    for detail in &refusal.details {
        let _ = write!(
            words,
            "\n  {}: {}",
            one_line(&detail.field),
            one_line(&detail.issue)
        );
        if let Some(value) = given.at(&detail.field) {
            let _ = write!(words, ", given {value}");
        }
        let _ = write!(words, "\n    {}", way_out(detail));
    }
    if refusal.details.is_empty()
        && let Some(way) = way_of(refusal)
    {
        let _ = write!(words, "\n  {way}");
    }
    if let Some(id) = &refusal.request_id {
        let _ = write!(words, "\n  request id: {}", one_line(id));
    }
    words
}

/// Returns a fix for a refusal that names no field.
fn way_of(refusal: &Refusal) -> Option<String> {
    Some(match refusal.status {
        401 => "check that the key is complete, valid and for this service: see EARSHOT_API_KEY"
            .to_owned(),
        403 => "use another key: the role, account or Namespaces of this one do not allow it"
            .to_owned(),
        404 => "check the name: `earshot namespaces list`, and `list` of the resource".to_owned(),
        429 => format!(
            "the key's rate limit is reached: try again in {} s",
            refusal.retry_after.unwrap_or(60)
        ),
        500.. => "try again; if it happens again, give the operators the request id".to_owned(),
        _ => return None,
    })
}

fn way_out(detail: &Detail) -> &'static str {
    match detail.issue.as_str() {
        "required" => "give it",
        "too_short" => "use a longer value",
        "too_long" => "use a shorter value",
        "too_many" => "use fewer items, or a shorter time span",
        "too_costly" => "limit createTime, or search for less",
        "quota_exceeded" => "delete what is not needed, or ask the operators for a higher quota",
        "out_of_range" => "use a number within the bounds in the API reference at /docs",
        "invalid_type" => "use another JSON type; text needs double quotes",
        "invalid_format" => "see the format at /docs",
        "invalid_enum" => "see the allowed values at /docs",
        "unknown_field" => "remove it, or check the spelling",
        "duplicate" => "remove the duplicate",
        "not_found" => "see what exists with `list`, or create it first",
        "not_empty" | "in_use" => "add --force to delete it anyway",
        "forbidden" => "remove it: it is not allowed here",
        "forbidden_address" => "use a public address",
        "conflict" => "remove one of the contradicting fields",
        _ => "see its meaning at /docs",
    }
}

#[cfg(test)]
mod tests {
    use client::{Detail, Refusal};
    use serde_json::json;

    use super::{Given, refused};

    #[test]
    fn refusal_names_the_given_value_and_a_fix() {
        let detail = |field: &str, issue: &str| Detail {
            field: field.to_owned(),
            issue: issue.to_owned(),
        };
        let refusal = Refusal {
            status: 400,
            message: "invalid request".to_owned(),
            details: vec![
                detail("input.urls[1]", "invalid_format"),
                detail("headers.x-key", "invalid_format"),
                detail("force", "not_empty"),
            ],
            request_id: Some("abc".to_owned()),
            retry_after: None,
        };
        let body = json!({"input": {"urls": ["a", "ftp://b\u{1b}"]}, "headers": {"x-key": "hush"}});
        let words = refused(&refusal, &Given::body(&body));
        for part in [
            "given \"ftp://b",
            "--force",
            "request id: abc",
            "input.urls[1]: invalid_format",
        ] {
            assert!(words.contains(part), "{words}");
        }
        assert!(
            !words.contains("hush") && !words.contains('\u{1b}'),
            "{words}"
        );
    }
}
