//! Validated requests to create and to change a Connection. Both use the same parser for each field.

use std::cell::RefCell;

use serde_json::Value;

use super::{
    Connection, ConnectionState, ConnectionType, Format, Headers, MAX_SIGNING_SECRETS, Method,
    PER_SECOND, SigningSecret,
};
use crate::{
    Issue, Issues,
    address::AddressPolicy,
    json::Object,
    namespace::nickname,
    patch::{Patch, Paths},
    web_header,
    web_url::{self, WebUrl},
};

/// The paths that a PATCH may name.
pub const PATHS: Paths = Paths {
    settable: &[
        "nickname",
        "type",
        "url",
        "method",
        "headers",
        "state",
        "format",
        "maxPerSecond",
        "signingSecrets",
    ],
    output_only: OUTPUT_ONLY,
};

const OUTPUT_ONLY: &[&str] = &["name", "createTime", "updateTime", "stateReason", "health"];

/// A valid request to create a Connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateConnection {
    pub nickname: String,
    pub url: String,
    pub method: Method,
    pub headers: Headers,
    pub format: Format,
    pub max_per_second: Option<u32>,
    pub signing_secrets: Vec<SigningSecret>,
}

impl CreateConnection {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value, addresses: &AddressPolicy) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let draft = Object::root(body, &issues).and_then(|fields| {
            let nickname = nickname(&fields);
            let kind = connection_type(&fields);
            let url = url(&fields, addresses);
            let method = method(&fields);
            let headers = headers(&fields);
            let format = format(&fields);
            let max_per_second = max_per_second(&fields);
            let signing_secrets = signing_secrets(&fields);
            // A new Connection is active: a client cannot set its state yet.
            fields.ignore(&["state"]);
            fields.ignore(OUTPUT_ONLY);
            fields.finish();
            kind?;
            Some(Self {
                nickname: nickname?,
                url: url?,
                method: method?,
                headers: headers?,
                format: format?,
                max_per_second: max_per_second?,
                signing_secrets: signing_secrets?,
            })
        });
        // `None` only after an issue was reported.
        issues.into_inner().or(())?;
        draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat))
    }
}

/// A valid request to change a Connection: `None` means unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConnectionChange {
    pub nickname: Option<String>,
    pub url: Option<String>,
    pub method: Option<Method>,
    pub headers: Option<Headers>,
    pub state: Option<ConnectionState>,
    pub format: Option<Format>,
    pub max_per_second: Option<Option<u32>>,
    pub signing_secrets: Option<Vec<SigningSecret>>,
}

impl ConnectionChange {
    /// Returns the change that `patch` makes to the Connection.
    ///
    /// # Errors
    /// Every field that fails; a `conflict` on `headers` if new ones must be merged with stored ones that
    /// cannot be decrypted any more.
    pub fn of(
        patch: &Patch,
        current: &Connection,
        addresses: &AddressPolicy,
    ) -> Result<Self, Issues> {
        let named = patch.merged_into("headers");
        if named.is_some() && current.headers == Headers::unreadable() {
            let mut issues = Issues::default();
            let hint = "stored ones cannot be read, replace them all with updateMask=headers";
            issues.add_with_hint("headers", Issue::Conflict, hint);
            return Err(issues);
        }
        let mut current = current.clone();
        // Names are case-insensitive: a header in the patch replaces the stored one.
        for name in named.into_iter().flat_map(|headers| headers.keys()) {
            let same = current
                .headers
                .0
                .keys()
                .find(|own| own.eq_ignore_ascii_case(name));
            if let Some(own) = same.cloned()
                && let Some(value) = current.headers.0.remove(&own)
            {
                current.headers.0.insert(name.clone(), value);
            }
        }
        // Our Connections always have a JSON form.
        let current = serde_json::to_value(&current).unwrap_or_default();
        Self::parse(&patch.apply(&current, PATHS), addresses)
    }

    fn parse(document: &Value, addresses: &AddressPolicy) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let change = Object::root(document, &issues).map(|fields| {
            fields.given("type", || connection_type(&fields));
            let change = Self {
                nickname: fields.given("nickname", || nickname(&fields)),
                url: fields.given("url", || url(&fields, addresses)),
                method: fields.given("method", || method(&fields)),
                headers: fields.given("headers", || headers(&fields)),
                state: fields.given("state", || fields.word("state", fields.require("state"))),
                format: fields.given("format", || format(&fields)),
                max_per_second: fields.given("maxPerSecond", || max_per_second(&fields)),
                signing_secrets: fields.given("signingSecrets", || signing_secrets(&fields)),
            };
            fields.ignore(OUTPUT_ONLY);
            fields.finish();
            change
        });
        issues.into_inner().or(change.unwrap_or_default())
    }
}

fn connection_type(fields: &Object<'_>) -> Option<ConnectionType> {
    fields.word("type", fields.require("type"))
}

fn url(fields: &Object<'_>, addresses: &AddressPolicy) -> Option<String> {
    let text = fields.text("url", fields.require("url"))?;
    WebUrl::parse(text, addresses, web_url::Kind::Connection)
        .map(|url| url.as_str().to_owned())
        .map_err(|issue| fields.report("url", issue))
        .ok()
}

fn method(fields: &Object<'_>) -> Option<Method> {
    match fields.take("method") {
        None => Some(Method::Post),
        given => fields.word("method", given),
    }
}

fn format(fields: &Object<'_>) -> Option<Format> {
    match fields.take("format") {
        None => Some(Format::default()),
        given => fields.word("format", given),
    }
}

fn max_per_second(fields: &Object<'_>) -> Option<Option<u32>> {
    const FIELD: &str = "maxPerSecond";
    let Some(value) = fields.take(FIELD) else {
        return Some(None);
    };
    fields.whole_number(FIELD, value, PER_SECOND).map(Some)
}

fn signing_secrets(fields: &Object<'_>) -> Option<Vec<SigningSecret>> {
    const FIELD: &str = "signingSecrets";
    let Some(value) = fields.take(FIELD) else {
        return Some(Vec::new());
    };
    let items = fields.array(FIELD, Some(value))?;
    if items.len() > MAX_SIGNING_SECRETS {
        fields.report(FIELD, Issue::TooMany);
        return None;
    }
    let mut secrets: Vec<SigningSecret> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let parsed = match item.as_str() {
            None => Err(Issue::InvalidType),
            Some(text) => text.parse().map_err(|_secret| Issue::InvalidFormat),
        };
        match parsed {
            Ok(secret) if secrets.contains(&secret) => {
                fields.report(&format!("{FIELD}[{at}]"), Issue::Duplicate);
            }
            Ok(secret) => secrets.push(secret),
            Err(issue) => fields.report(&format!("{FIELD}[{at}]"), issue),
        }
    }
    (secrets.len() == items.len()).then_some(secrets)
}

fn headers(fields: &Object<'_>) -> Option<Headers> {
    let Some(value) = fields.take("headers") else {
        return Some(Headers::default());
    };
    let Some(map) = value.as_object() else {
        fields.report("headers", Issue::InvalidType);
        return None;
    };
    let mut headers = Vec::new();
    for (name, value) in map {
        match value.as_str() {
            Some(text) => headers.push((name.clone(), text.to_owned())),
            None => fields.report(&format!("headers.{name}"), Issue::InvalidType),
        }
    }
    let issues = web_header::check_headers(&headers);
    let sound = issues.is_empty();
    fields.issues().borrow_mut().extend(issues);
    sound.then(|| Headers(headers.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ConnectionChange, CreateConnection, Format, Headers, Method, PATHS};
    use crate::{
        Issue, Issues,
        address::AddressPolicy,
        connection::{ConnectionState, tests::sample},
        patch::Patch,
    };

    const SECRET: &str = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";

    fn listed(issues: &Issues) -> Vec<(&str, Issue)> {
        let all = issues.as_slice().iter();
        all.map(|one| (one.field.as_str(), one.issue)).collect()
    }

    fn created(body: &Value) -> Result<CreateConnection, Issues> {
        CreateConnection::parse(body, &AddressPolicy::default())
    }

    fn changed(body: &Value, mask: Option<&str>) -> Result<ConnectionChange, Issues> {
        let patch = Patch::parse(body, mask, PATHS)?;
        ConnectionChange::of(&patch, &sample(), &AddressPolicy::default())
    }

    #[test]
    fn headers_are_merged_case_insensitively() {
        let body = json!({"headers": {"X-A": null, "X-B": "3"}});
        let headers = [("X-B".to_owned(), "3".to_owned())];
        let change = changed(&body, None).unwrap();
        assert_eq!(change.headers, Some(Headers(headers.into())));
    }

    #[test]
    fn unreadable_headers_can_be_replaced() {
        let mut current = sample();
        current.headers = Headers::unreadable();
        let body = json!({"nickname": "new", "headers": {"x-a": "1"}});
        let changed = |mask| {
            let patch = Patch::parse(&body, mask, PATHS).unwrap();
            ConnectionChange::of(&patch, &current, &AddressPolicy::default())
        };
        let issues = changed(None).unwrap_err();
        assert_eq!(listed(&issues), [("headers", Issue::Conflict)]);
        assert_eq!(changed(Some("nickname")).unwrap().headers, None);
        assert!(changed(Some("headers")).unwrap().headers.is_some());
    }

    #[test]
    fn omitted_fields_have_defaults() {
        let body = json!({"nickname": "ours", "type": "HTTP_CONNECTION", "url": "https://example.com/hook"});
        let draft = created(&body).unwrap();
        assert_eq!(
            (draft.method, draft.headers, draft.format),
            (Method::Post, Headers::default(), Format::Earshot)
        );
        assert_eq!(
            (draft.max_per_second, draft.signing_secrets),
            (None, vec![])
        );
    }

    #[test]
    fn every_failing_field_is_named() {
        let body = json!({
            "nickname": 7, "type": "FTP", "url": "http://127.0.0.1/", "method": "GET",
            "headers": {"Host": "x", "a": 1}, "format": "IRC", "maxPerSecond": 0,
            "signingSecrets": [SECRET, "whsec_short"]
        });
        let issues = created(&body).unwrap_err();
        let fields: Vec<&str> = listed(&issues).iter().map(|(field, _)| *field).collect();
        assert_eq!(
            fields,
            [
                "nickname",
                "type",
                "url",
                "method",
                "headers.a",
                "headers.Host",
                "format",
                "maxPerSecond",
                "signingSecrets[1]"
            ]
        );
    }

    #[test]
    fn secrets_and_rates_are_bounded() {
        let failing = |field: &str, value: Value| {
            let issues = changed(&json!({ field: value }), None).unwrap_err();
            issues.as_slice()[0].issue
        };
        for (value, issue) in [
            (json!(0), Issue::OutOfRange),
            (json!(10_001), Issue::OutOfRange),
            (json!(-1), Issue::OutOfRange),
            (json!(1.5), Issue::InvalidType),
            (json!("5"), Issue::InvalidType),
            (json!(1e300), Issue::OutOfRange),
        ] {
            assert_eq!(failing("maxPerSecond", value.clone()), issue, "{value}");
        }
        for (value, issue) in [
            (json!([SECRET, SECRET, SECRET]), Issue::TooMany),
            (json!([SECRET, SECRET]), Issue::Duplicate),
            (json!([7]), Issue::InvalidType),
            (json!(SECRET), Issue::InvalidType),
            (json!(["hush"]), Issue::InvalidFormat),
        ] {
            assert_eq!(failing("signingSecrets", value.clone()), issue, "{value}");
        }
    }

    #[test]
    fn a_change_holds_what_was_named() {
        let change = changed(&json!({"headers": {"x-b": null, "x-c": "3"}}), None).unwrap();
        let headers = [("x-a", "1"), ("x-c", "3")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let expected = ConnectionChange {
            headers: Some(Headers(headers.into())),
            ..ConnectionChange::default()
        };
        assert_eq!(change, expected);

        let body = json!({"headers": {"x-c": "3"}, "maxPerSecond": null, "state": "DISABLED"});
        let change = changed(&body, None).unwrap();
        assert_eq!(change.max_per_second, Some(None));
        assert_eq!(change.state, Some(ConnectionState::Disabled));
        let change = changed(&body, Some("headers")).unwrap();
        let headers = [("x-c".to_owned(), "3".to_owned())];
        assert_eq!(change.headers, Some(Headers(headers.into())));
        assert_eq!((change.max_per_second, change.state), (None, None));
    }

    #[test]
    fn required_fields_cannot_be_cleared() {
        for (body, mask) in [
            (
                json!({"nickname": null, "url": null, "type": null, "state": null}),
                None,
            ),
            (json!({}), Some("state,type,url,nickname")),
        ] {
            let issues = changed(&body, mask).unwrap_err();
            let mut fields = listed(&issues);
            fields.sort_unstable();
            assert_eq!(
                fields,
                ["nickname", "state", "type", "url"].map(|field| (field, Issue::Required))
            );
        }
        let issues = changed(&json!({"colour": 1, "stateReason": "x"}), None).unwrap_err();
        assert_eq!(listed(&issues), [("colour", Issue::UnknownField)]);
    }

    #[test]
    fn mask_star_replaces_the_whole_connection() {
        let body = json!({
            "nickname": "new", "type": "HTTP_CONNECTION", "url": "https://example.com/", "state": "ACTIVE"
        });
        let change = changed(&body, Some("*")).unwrap();
        assert_eq!(change.method, Some(Method::Post));
        assert_eq!(change.headers, Some(Headers::default()));
        assert_eq!(change.max_per_second, Some(None));
        assert_eq!(change.signing_secrets, Some(vec![]));
    }
}
