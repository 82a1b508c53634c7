//! Namespaces: they contain all other resources.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Issues, NamespaceName, Timestamp,
    json::Object,
    patch::Paths,
    screen::{self, Mute},
};

pub const NICKNAME_CHARS: std::ops::RangeInclusive<usize> = 1..=120;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    pub name: NamespaceName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub nickname: String,
    /// Apply to all its Managers, in addition to their own mutes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mutes: Vec<Mute>,
}

/// The paths that a PATCH may name.
pub const PATHS: Paths = Paths {
    settable: &["nickname", "mutes"],
    output_only: &["name", "createTime", "updateTime"],
};

/// A valid request to create a Namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CreateNamespace {
    pub nickname: String,
    pub mutes: Vec<Mute>,
}

impl CreateNamespace {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let draft = Object::root(body, &issues).map(|fields| {
            let draft = Self {
                nickname: nickname(&fields).unwrap_or_default(),
                mutes: screen::mutes(&fields).unwrap_or_default(),
            };
            fields.ignore(PATHS.output_only);
            fields.finish();
            draft
        });
        issues.into_inner().or(draft.unwrap_or_default())
    }
}

/// A valid request to change a Namespace: `None` means unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceChange {
    pub nickname: Option<String>,
    pub mutes: Option<Vec<Mute>>,
}

impl NamespaceChange {
    /// Parses the result of [`Patch::apply`].
    ///
    /// # Errors
    /// Every field that fails.
    ///
    /// [`Patch::apply`]: crate::patch::Patch::apply
    pub fn parse(document: &Value) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let change = Object::root(document, &issues).map(|fields| {
            let change = Self {
                nickname: fields.given("nickname", || nickname(&fields)),
                mutes: fields.given("mutes", || screen::mutes(&fields)),
            };
            fields.ignore(PATHS.output_only);
            fields.finish();
            change
        });
        issues.into_inner().or(change.unwrap_or_default())
    }
}

/// The nickname of any resource.
pub(crate) fn nickname(fields: &Object<'_>) -> Option<String> {
    fields.trimmed("nickname", fields.require("nickname"), NICKNAME_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CreateNamespace;
    use crate::{FieldIssue, Issue};

    #[test]
    fn every_failing_field_is_named() {
        let issues = CreateNamespace::parse(&json!({"nickname": "  ", "colour": 1})).unwrap_err();
        let expected = [
            ("nickname", Issue::TooShort),
            ("colour", Issue::UnknownField),
        ]
        .map(|(field, issue)| FieldIssue {
            field: field.into(),
            issue,
            hint: None,
        });
        assert_eq!(issues.as_slice(), expected);
    }
}
