//! The shapes that SPEC.md defines for errors, timestamps and posts.

use std::collections::BTreeSet;

use serde_json::Value;

/// Asserts RFC 3339 in UTC with exactly six fractional digits.
#[track_caller]
pub(crate) fn assert_timestamp(value: &Value) {
    let text = value
        .as_str()
        .unwrap_or_else(|| panic!("no timestamp: {value}"));
    let pattern = "0000-00-00T00:00:00.000000Z";
    let fits = |(found, wanted): (char, char)| match wanted {
        '0' => found.is_ascii_digit(),
        other => found == other,
    };
    assert!(
        text.len() == pattern.len() && text.chars().zip(pattern.chars()).all(fits),
        "not a timestamp: {text}"
    );
}

/// Asserts the shape of part 7: `{code, message, details?: [{field, issue}]}`, and nothing more.
#[track_caller]
pub(crate) fn assert_error(status: u16, body: &Value) {
    let fields = body
        .as_object()
        .unwrap_or_else(|| panic!("not an object: {body}"));
    assert_eq!(body["code"], status, "{body}");
    let message = body["message"].as_str().unwrap_or_default();
    let begins_lower = message.chars().next().is_some_and(|c| !c.is_uppercase());
    assert!(begins_lower && message.len() <= 1_000, "{body}");
    for field in fields.keys() {
        let known = ["code", "message", "details"].contains(&field.as_str());
        assert!(known, "{field}: {body}");
    }
    if let Some(details) = fields.get("details") {
        for detail in details.as_array().unwrap() {
            assert_eq!(keys(detail), ["field", "issue"], "{body}");
            assert!(detail["field"].is_string() && detail["issue"].is_string());
        }
    }
}

/// Asserts the shape of part 2.6, for the kind of post.
#[track_caller]
pub(crate) fn assert_post(post: &Value) {
    let mut wanted = vec!["id", "text", "time", "title", "type", "url", "user"];
    match post["type"].as_str().unwrap() {
        "FORUM_LINK" => {
            wanted.push("subforum");
            wanted.sort_unstable();
            assert_party(&post["subforum"]);
        }
        "NETWORK_POST" => {}
        other => panic!("a post of an unknown type: {other}"),
    }
    assert_eq!(keys(post), wanted, "{post}");
    assert_timestamp(&post["time"]);
    assert_party(&post["user"]);
    for field in ["id", "title", "text"] {
        assert!(
            post[field].as_str().is_some_and(|text| !text.is_empty()),
            "{post}"
        );
    }
    assert_address(&post["url"]);
}

/// Asserts `{id, name, url}`.
#[track_caller]
fn assert_party(party: &Value) {
    assert_eq!(keys(party), ["id", "name", "url"], "{party}");
    for field in ["id", "name"] {
        assert!(
            party[field].as_str().is_some_and(|text| !text.is_empty()),
            "{party}"
        );
    }
    assert_address(&party["url"]);
}

#[track_caller]
fn assert_address(value: &Value) {
    let text = value.as_str().unwrap_or_default();
    assert!(
        text.starts_with("http://") || text.starts_with("https://"),
        "{value}"
    );
}

/// Returns the names of an object's fields, sorted.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("not an object: {value}"));
    let keys: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    keys.into_iter().collect()
}
