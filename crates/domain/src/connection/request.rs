//! Validated requests to create and to change a Connection. Both use the same parser for each field.

use std::cell::RefCell;

use serde_json::Value;

use super::{
    Connection, ConnectionState, ConnectionType, Digest, Format, Headers, MAX_SIGNING_SECRETS,
    Method, PER_SECOND, Recipients, SigningSecret, digest::digest,
};
use crate::{
    Issue, Issues, ServiceEventType,
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
        "events",
        "digest",
    ],
    output_only: OUTPUT_ONLY,
};

const OUTPUT_ONLY: &[&str] = &[
    "name",
    "createTime",
    "updateTime",
    "stateReason",
    "health",
    "recipients",
];

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
    pub events: Vec<ServiceEventType>,
    pub digest: Option<Digest>,
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
            let events = events(&fields);
            let digest = digest(&fields);
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
                events: events?,
                digest: digest?,
            })
        });
        // `None` only after an issue was reported.
        issues.into_inner().or(())?;
        let draft = draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat))?;
        let (headers, secrets) = (Some(&draft.headers), Some(&draft.signing_secrets[..]));
        let mut issues = check_format(draft.format, Some(draft.url.as_str()), headers, secrets);
        check_digest(draft.format, draft.digest.as_ref(), &mut issues);
        issues.or(draft)
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
    pub events: Option<Vec<ServiceEventType>>,
    pub digest: Option<Option<Digest>>,
}

impl ConnectionChange {
    /// Returns the change that `patch` makes to the Connection.
    ///
    /// # Errors
    /// Every field that fails; a `conflict` on `headers` if new ones must be merged with stored ones that
    /// cannot be decrypted any more, or on `format` if it would change to or from e-mail.
    pub fn of(
        patch: &Patch,
        current: &Connection,
        addresses: &AddressPolicy,
    ) -> Result<Self, Issues> {
        let stored = current;
        let named = patch.merged_into("headers");
        if named.is_some() && current.headers == Headers::unreadable() {
            let hint = "stored ones cannot be read, replace them all with updateMask=headers";
            return Err(Issues::one_with_hint("headers", Issue::Conflict, hint));
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
        let change = Self::parse(&patch.apply(&current, PATHS), addresses)?;
        let format = change.format.unwrap_or(stored.format);
        // Scans that wait for a digest, and the answers of recipients, belong to the format.
        if (format == Format::Email) != (stored.format == Format::Email) {
            let hint = "it cannot change to or from EMAIL: create another Connection";
            return Err(Issues::one_with_hint("format", Issue::Conflict, hint));
        }
        let is_moved = change.format.is_some() || change.url.is_some();
        let url = is_moved.then(|| change.url.as_deref().unwrap_or(&stored.url));
        let secrets = change.signing_secrets.as_deref();
        let mut issues = check_format(format, url, change.headers.as_ref(), secrets);
        let digest = change.digest.as_ref().unwrap_or(&stored.digest);
        check_digest(format, digest.as_ref(), &mut issues);
        issues.or(change)
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
                events: fields.given("events", || events(&fields)),
                digest: fields.given("digest", || digest(&fields)),
            };
            fields.ignore(OUTPUT_ONLY);
            fields.finish();
            change
        });
        issues.into_inner().or(change.unwrap_or_default())
    }
}

/// Reports what contradicts the format: e-mail goes to a `mailto:` URL, and everything else to a web address. E-mail has
/// neither headers of the customer nor a signature.
fn check_format(
    format: Format,
    url: Option<&str>,
    headers: Option<&Headers>,
    secrets: Option<&[SigningSecret]>,
) -> Issues {
    let mut issues = Issues::default();
    let is_email = format == Format::Email;
    if url.is_some_and(|url| Recipients::are_named_by(url) != is_email) {
        let hint = "a `url` with `mailto:` needs the format EMAIL, which needs such a `url`";
        issues.add_with_hint("url", Issue::Conflict, hint);
    }
    let hint = "the format EMAIL has neither headers nor signatures";
    if is_email && headers.is_some_and(|headers| !headers.0.is_empty()) {
        issues.add_with_hint("headers", Issue::Conflict, hint);
    }
    if is_email && secrets.is_some_and(|secrets| !secrets.is_empty()) {
        issues.add_with_hint("signingSecrets", Issue::Conflict, hint);
    }
    issues
}

fn check_digest(format: Format, digest: Option<&Digest>, issues: &mut Issues) {
    if format != Format::Email && digest.is_some() {
        let hint = "only the format EMAIL has a `digest`";
        issues.add_with_hint("digest", Issue::Conflict, hint);
    }
}

fn connection_type(fields: &Object<'_>) -> Option<ConnectionType> {
    fields.word("type", fields.require("type"))
}

fn url(fields: &Object<'_>, addresses: &AddressPolicy) -> Option<String> {
    let text = fields.text("url", fields.require("url"))?;
    if Recipients::are_named_by(text) {
        return text
            .parse::<Recipients>()
            .map(|recipients| recipients.to_string())
            .map_err(|issue| fields.report("url", issue))
            .ok();
    }
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

fn events(fields: &Object<'_>) -> Option<Vec<ServiceEventType>> {
    const FIELD: &str = "events";
    let Some(value) = fields.take(FIELD) else {
        return Some(Vec::new());
    };
    let items = fields.array(FIELD, Some(value))?;
    // No valid list is longer, and a report for each item of a long one would be long too.
    if items.len() > ServiceEventType::ALL.len() {
        fields.report(FIELD, Issue::TooMany);
        return None;
    }
    let known = |word: &str| {
        let mut all = ServiceEventType::ALL.into_iter();
        all.find(|one| one.as_str() == word)
    };
    let mut events = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let parsed = match item.as_str() {
            None => Err(Issue::InvalidType),
            Some(word) => known(word).ok_or(Issue::InvalidEnum),
        };
        match parsed {
            Ok(event) if events.contains(&event) => {
                fields.report(&format!("{FIELD}[{at}]"), Issue::Duplicate);
            }
            Ok(event) => events.push(event),
            Err(issue) => fields.report(&format!("{FIELD}[{at}]"), issue),
        }
    }
    (events.len() == items.len()).then_some(events)
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
        connection::{ConnectionState, Period, tests::sample},
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
            (draft.max_per_second, draft.signing_secrets, draft.events),
            (None, vec![], vec![])
        );
    }

    #[test]
    fn every_failing_field_is_named() {
        let body = json!({
            "nickname": 7, "type": "FTP", "url": "http://127.0.0.1/", "method": "GET",
            "headers": {"Host": "x", "a": 1}, "format": "IRC", "maxPerSecond": 0,
            "signingSecrets": [SECRET, "whsec_short"], "events": ["MANAGER_APPLIED", "SCAN"]
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
                "signingSecrets[1]",
                "events[1]"
            ]
        );
    }

    #[test]
    fn email_goes_to_mailto_addresses_and_nothing_else_does() {
        let mail = "mailto:ada@example.com";
        let body = |url: &str, format: &str| json!({"nickname": "ours", "type": "HTTP_CONNECTION", "url": url, "format": format});
        let draft = created(&body(mail, "EMAIL")).unwrap();
        assert_eq!((draft.url.as_str(), draft.format), (mail, Format::Email));
        for wrong in [body(mail, "SLACK"), body("https://example.com/", "EMAIL")] {
            let issues = created(&wrong).unwrap_err();
            assert_eq!(listed(&issues), [("url", Issue::Conflict)]);
        }
        let mut extras = body(mail, "EMAIL");
        extras["headers"] = json!({"x-a": "1"});
        extras["signingSecrets"] = json!([SECRET]);
        let issues = created(&extras).unwrap_err();
        let expected = ["headers", "signingSecrets"].map(|field| (field, Issue::Conflict));
        assert_eq!(listed(&issues), expected);

        // The stored Connection is for webhooks.
        for (change, field) in [
            (json!({"url": mail}), "url"),
            (json!({"format": "EMAIL"}), "format"),
            (json!({"format": "EMAIL", "url": mail}), "format"),
        ] {
            let issues = changed(&change, None).unwrap_err();
            assert_eq!(listed(&issues), [(field, Issue::Conflict)]);
        }
        assert!(changed(&json!({"format": "SLACK"}), None).is_ok());
        assert!(changed(&json!({"nickname": "new"}), None).is_ok());
    }

    #[test]
    fn digest_has_a_period_and_a_time_zone() {
        let body = |digest: Value| {
            json!({
                "nickname": "ours", "type": "HTTP_CONNECTION", "url": "mailto:ada@example.com",
                "format": "EMAIL", "digest": digest
            })
        };
        let digest = |value: Value| created(&body(value)).unwrap().digest.unwrap();
        let daily = digest(json!({"period": "DAILY", "timeZone": "Europe/Berlin"}));
        assert_eq!(
            (daily.period, daily.time_zone.as_str()),
            (Period::Daily, "Europe/Berlin")
        );
        assert_eq!(digest(json!({"period": "HOURLY"})).time_zone, "UTC");
        assert_eq!(created(&body(Value::Null)).unwrap().digest, None);
        for (wrong, field, issue) in [
            (json!("DAILY"), "digest", Issue::InvalidType),
            (json!({}), "digest.period", Issue::Required),
            (
                json!({"period": "YEARLY"}),
                "digest.period",
                Issue::InvalidEnum,
            ),
            (
                json!({"period": "DAILY", "timeZone": "<+03>-3"}),
                "digest.timeZone",
                Issue::InvalidFormat,
            ),
        ] {
            let issues = created(&body(wrong)).unwrap_err();
            assert_eq!(listed(&issues), [(field, issue)]);
        }
        let issues = changed(&json!({"digest": {"period": "DAILY"}}), None).unwrap_err();
        assert_eq!(listed(&issues), [("digest", Issue::Conflict)]);
    }

    #[test]
    fn secrets_rates_and_events_are_bounded() {
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
        for (value, issue) in [
            (json!(vec!["POST_DELETED"; 7]), Issue::TooMany),
            (json!(["POST_DELETED", "POST_DELETED"]), Issue::Duplicate),
            (json!([7]), Issue::InvalidType),
            (json!("POST_DELETED"), Issue::InvalidType),
            (json!(["post_deleted"]), Issue::InvalidEnum),
        ] {
            assert_eq!(failing("events", value.clone()), issue, "{value}");
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
        assert_eq!(change.events, Some(vec![]));
    }
}
