//! What went wrong, in words that lead on: the field, the issue, what was given, one way out, and what to
//! name when asking about it.

use std::{fmt::Write as _, io, process::ExitCode};

use client::{Detail, Error, Refusal};
use serde_json::Value;

use super::foreign::one_line;

const MAX_SHOWN: usize = 80;

#[derive(Debug)]
pub(crate) enum Failure {
    /// Wrong usage: nothing was asked of the service.
    Usage(String),
    /// The service's answer, or none.
    Api(Box<Error>, Given),
    /// Something of this machine's: a file, a receiver.
    Local(String),
    /// Whoever read what we print has enough.
    Closed,
}

/// What a request was made of, for the one who made it.
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

    /// What stands there; `None` where nothing does, or what stands there is a secret.
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

    /// On stderr; the exit code says the same to scripts.
    pub(crate) fn report(self) -> ExitCode {
        let code = match &self {
            Self::Closed => return ExitCode::SUCCESS,
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
            Self::Closed => String::new(),
            Self::Api(error, given) => match &**error {
                Error::Refused(refusal) => refused(refusal, given),
                other => {
                    let mut words = other.to_string();
                    let mut cause = std::error::Error::source(other);
                    while let Some(error) = cause {
                        let _ = write!(words, ": {error}");
                        cause = error.source();
                    }
                    words
                }
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

/// Where no field failed.
fn way_of(refusal: &Refusal) -> Option<String> {
    Some(match refusal.status {
        401 => "is the key whole, not revoked, and of this service? See EARSHOT_API_KEY".to_owned(),
        403 => {
            "another key may do it: its role, account, or Namespaces do not allow this".to_owned()
        }
        404 => {
            "see what there is: `earshot namespaces list`, and `list` of what is in it".to_owned()
        }
        429 => format!(
            "the key's points are spent: try again in {} s",
            refusal.retry_after.unwrap_or(60)
        ),
        500.. => "try again; if it stays, show the operators the request id".to_owned(),
        _ => return None,
    })
}

fn way_out(detail: &Detail) -> &'static str {
    match detail.issue.as_str() {
        "required" => "give it",
        "too_short" => "give more of it",
        "too_long" => "give less of it",
        "too_many" => "give fewer, or ask for a shorter span",
        "too_costly" => "bound createTime, or search for less",
        "out_of_range" => "give a number within the bounds that the API's description names",
        "invalid_type" => "give another kind of JSON value; text stands in double quotes",
        "invalid_format" => "see its form at /docs",
        "invalid_enum" => "see the words that it takes at /docs",
        "unknown_field" => "leave it out, or look for a misspelling",
        "duplicate" => "leave the second one out",
        "not_found" => "see what there is with `list`, or make it first",
        "not_empty" | "in_use" => "add --force to do it all the same",
        "forbidden" => "leave it out: it is not allowed here",
        "forbidden_address" => "give an address that is public",
        "conflict" => "leave one of those that contradict each other out",
        _ => "see its meaning at /docs",
    }
}

#[cfg(test)]
mod tests {
    use client::{Detail, Refusal};
    use serde_json::json;

    use super::{Given, refused};

    #[test]
    fn a_refusal_names_what_was_given_and_a_way_out() {
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
