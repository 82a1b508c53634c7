//! Namespaces: the containers of everything else.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Issues, NamespaceName, Timestamp, json::Object};

pub const NICKNAME_CHARS: std::ops::RangeInclusive<usize> = 1..=120;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Namespace {
    pub name: NamespaceName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub nickname: String,
}

/// A valid request to create a Namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateNamespace {
    pub nickname: String,
}

impl CreateNamespace {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let nickname = Object::root(body, &issues).and_then(|fields| {
            let nickname = fields.trimmed("nickname", fields.require("nickname"), NICKNAME_CHARS);
            fields.ignore(&["name", "createTime", "updateTime"]);
            fields.finish();
            nickname
        });
        issues.into_inner().or(())?;
        Ok(Self {
            nickname: nickname.unwrap_or_default(),
        })
    }
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
