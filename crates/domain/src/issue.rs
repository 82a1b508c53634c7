//! Errors in the fields of a request, as words that clients branch on.

use serde::Serialize;

/// Reason why a field failed. The published list: API.md part 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Issue {
    /// The field must be given.
    Required,
    /// Fewer characters, bytes or items than allowed.
    TooShort,
    /// More characters or bytes than allowed.
    TooLong,
    /// More items than allowed.
    TooMany,
    /// A number outside its bounds.
    OutOfRange,
    /// Another JSON type than expected.
    InvalidType,
    /// Right type, wrong form.
    InvalidFormat,
    /// A word outside the defined set.
    InvalidEnum,
    /// Takes longer than one request may; the message says how to narrow it.
    TooCostly,
    /// The account has as many as its quota allows.
    QuotaExceeded,
    /// No field or query parameter has this name.
    UnknownField,
    /// A repeated item in a list without repetitions.
    Duplicate,
    /// The resource that the field names does not exist.
    NotFound,
    /// The resource still contains others; `force` deletes them too.
    NotEmpty,
    /// Another resource still refers to this one; `force` removes the reference.
    InUse,
    /// Well-formed, but not allowed here.
    Forbidden,
    /// The address is not a public one.
    ForbiddenAddress,
    /// The field contradicts another field or the state of the resource.
    Conflict,
}

/// One failing field: its path in the body, or the name of the parameter or header, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FieldIssue {
    pub field: String,
    pub issue: Issue,
    /// Text for people in the message of the response; clients branch on `issue`.
    #[serde(skip)]
    pub hint: Option<String>,
}

/// Every failing field of one request.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("invalid request: {}", self.summary())]
pub struct Issues(Vec<FieldIssue>);

impl Issues {
    pub fn one(field: impl Into<String>, issue: Issue) -> Self {
        let mut issues = Self::default();
        issues.add(field, issue);
        issues
    }

    pub fn one_with_hint(field: impl Into<String>, issue: Issue, hint: impl Into<String>) -> Self {
        let mut issues = Self::default();
        issues.add_with_hint(field, issue, hint);
        issues
    }

    pub fn add(&mut self, field: impl Into<String>, issue: Issue) {
        self.0.push(FieldIssue {
            field: field.into(),
            issue,
            hint: None,
        });
    }

    pub fn add_with_hint(
        &mut self,
        field: impl Into<String>,
        issue: Issue,
        hint: impl Into<String>,
    ) {
        self.0.push(FieldIssue {
            field: field.into(),
            issue,
            hint: Some(hint.into()),
        });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn as_slice(&self) -> &[FieldIssue] {
        &self.0
    }

    pub fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Returns `Ok(value)` if nothing failed.
    ///
    /// # Errors
    /// The issues, if there are any.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.is_empty() {
            Ok(value)
        } else {
            Err(self)
        }
    }

    /// The hints, or else the failing fields, in one short line.
    pub fn summary(&self) -> String {
        let words = |one: &FieldIssue| match &one.hint {
            Some(hint) => format!("{}: {hint}", one.field),
            None => one.field.clone(),
        };
        let mut parts: Vec<String> = self.0.iter().take(5).map(words).collect();
        if self.0.len() > parts.len() {
            parts.push(format!("and {} more", self.0.len() - parts.len()));
        }
        parts.join(", ")
    }
}
