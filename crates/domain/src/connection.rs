//! Connections: where events are delivered.

use std::{cell::RefCell, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ConnectionName, Issue, Issues, Timestamp,
    address::AddressPolicy,
    json::Object,
    namespace::NICKNAME_CHARS,
    web_header,
    web_url::{self, WebUrl},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ConnectionType {
    HttpConnection,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Post,
    Put,
    Patch,
}

impl Method {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum ConnectionState {
    Active,
    /// Nothing is sent; what comes waits.
    Disabled,
}

/// Custom headers by name. Values are secrets: they are in no `Debug` output.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Headers(pub BTreeMap<String, String>);

impl Headers {
    /// What a key without write permission sees.
    #[must_use]
    pub fn masked(&self) -> Self {
        Self(
            self.0
                .keys()
                .map(|name| (name.clone(), "***".to_owned()))
                .collect(),
        )
    }
}

impl std::fmt::Debug for Headers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    pub name: ConnectionName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub nickname: String,
    #[serde(rename = "type")]
    pub connection_type: ConnectionType,
    pub url: String,
    pub method: Method,
    pub headers: Headers,
    pub state: ConnectionState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
}

/// A valid request to create a Connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateConnection {
    pub nickname: String,
    pub url: String,
    pub method: Method,
    pub headers: Headers,
}

impl CreateConnection {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value, addresses: &AddressPolicy) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let draft = Object::root(body, &issues).and_then(|fields| {
            let nickname = fields.trimmed("nickname", fields.require("nickname"), NICKNAME_CHARS);
            let kind = fields.word::<ConnectionType>("type", fields.require("type"));
            let url = fields.text("url", fields.require("url")).and_then(|text| {
                let parsed = WebUrl::parse(text, addresses, web_url::Kind::Connection);
                parsed.map_err(|issue| fields.note("url", issue)).ok()
            });
            let given = fields.take("method");
            let method = if given.is_none() {
                Some(Method::Post)
            } else {
                fields.word("method", given)
            };
            let headers = parse_headers(&fields);
            fields.ignore(&["name", "createTime", "updateTime", "state", "stateReason"]);
            fields.finish();
            kind?;
            Some(Self {
                nickname: nickname?,
                url: url?.as_str().to_owned(),
                method: method?,
                headers: headers?,
            })
        });
        // A draft is missing only where an issue was noted.
        issues.into_inner().or(())?;
        draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat))
    }
}

fn parse_headers(fields: &Object<'_>) -> Option<Headers> {
    let Some(value) = fields.take("headers") else {
        return Some(Headers::default());
    };
    let Some(map) = value.as_object() else {
        fields.note("headers", Issue::InvalidType);
        return None;
    };
    let mut headers = Vec::new();
    for (name, value) in map {
        match value.as_str() {
            Some(text) => headers.push((name.clone(), text.to_owned())),
            None => fields.note(&format!("headers.{name}"), Issue::InvalidType),
        }
    }
    let issues = web_header::check_headers(&headers);
    let sound = issues.is_empty();
    fields.issues().borrow_mut().extend(issues);
    sound.then(|| Headers(headers.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CreateConnection, Headers, Method};
    use crate::{Issue, address::AddressPolicy};

    fn failing(body: &serde_json::Value) -> Vec<(String, Issue)> {
        let issues = CreateConnection::parse(body, &AddressPolicy::default()).unwrap_err();
        issues
            .as_slice()
            .iter()
            .map(|one| (one.field.clone(), one.issue))
            .collect()
    }

    #[test]
    fn method_defaults_to_post() {
        let body = json!({"nickname": "ours", "type": "HTTP_CONNECTION", "url": "https://example.com/hook"});
        let draft = CreateConnection::parse(&body, &AddressPolicy::default()).unwrap();
        assert_eq!(
            (draft.method, draft.headers),
            (Method::Post, Headers::default())
        );
    }

    #[test]
    fn every_failing_field_is_named() {
        let body = json!({
            "nickname": 7, "type": "FTP", "url": "http://127.0.0.1/", "method": "GET", "headers": {"Host": "x", "a": 1}
        });
        let failing = failing(&body);
        let fields: Vec<&str> = failing.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "nickname",
                "type",
                "url",
                "method",
                "headers.a",
                "headers.Host"
            ]
        );
    }

    #[test]
    fn header_values_are_not_in_debug_output() {
        let headers = Headers([("x-secret".to_owned(), "hush".to_owned())].into());
        let shown = format!("{headers:?}");
        assert!(shown.contains("x-secret") && !shown.contains("hush"));
    }
}
