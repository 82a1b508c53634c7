//! Rules for headers that customers add to their webhooks, and the wait that a server asks for.
//!
//! Fields for HTTP message framing and connection management are refused: only the client may set them, and a
//! wrong one allows request smuggling. All other fields are up to the customer.

use std::{collections::HashSet, time::Duration};

use chrono::DateTime;

use crate::{Issue, Issues, Timestamp};

pub const MAX_HEADERS: usize = 20;
/// Names and values together.
pub const MAX_TOTAL_BYTES: usize = 8 * 1_024;

/// Checks names and values; issues are on `headers` or `headers.<name>`.
#[must_use]
pub fn check_headers(headers: &[(String, String)]) -> Issues {
    let mut issues = Issues::default();
    if headers.len() > MAX_HEADERS {
        issues.add_with_hint("headers", Issue::TooMany, "at most 20");
    }
    let bytes: usize = headers.iter().map(|(n, v)| n.len() + v.len()).sum();
    if bytes > MAX_TOTAL_BYTES {
        issues.add_with_hint("headers", Issue::TooMany, "at most 8 KiB in all");
    }
    if !issues.is_empty() {
        // The paths below repeat the names, and a response must not contain that many.
        return issues;
    }
    let mut seen = HashSet::new();
    for (name, value) in headers {
        if let Some((issue, hint)) = check_header(name, value) {
            issues.add_with_hint(format!("headers.{name}"), issue, hint);
        } else if !seen.insert(name.to_ascii_lowercase()) {
            let hint = "given twice; names are case-insensitive";
            issues.add_with_hint(format!("headers.{name}"), Issue::Duplicate, hint);
        }
    }
    issues
}

fn check_header(name: &str, value: &str) -> Option<(Issue, &'static str)> {
    if name.is_empty() || !name.bytes().all(is_token_byte) {
        Some((Issue::InvalidFormat, "not a valid field name"))
    } else if is_forbidden(name) {
        Some((Issue::Forbidden, "set by Earshot itself"))
    } else if !is_field_value(value) {
        Some((Issue::InvalidFormat, "not a valid field value"))
    } else {
        None
    }
}

/// RFC 9110 5.6.2.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns whether this is a field value of RFC 9110 5.5, without the obsolete bytes beyond ASCII. White space at the
/// ends is refused: it would be lost on the way, and a receiver that compares a secret would never find it equal.
fn is_field_value(value: &str) -> bool {
    value.trim_matches([' ', '\t']) == value
        && value
            .bytes()
            .all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte))
}

/// Message framing and connection management: RFC 9112, RFC 9110 7.6.1 and 10.1.1, RFC 9113 8.2.2.
pub fn is_forbidden(name: &str) -> bool {
    const FORBIDDEN: [&str; 11] = [
        "host",
        "content-length",
        // The body is sent unencoded; a receiver would try to decode it.
        "content-encoding",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "te",
        "trailer",
        "upgrade",
        "expect",
        "http2-settings",
    ];
    let name = name.to_ascii_lowercase();
    FORBIDDEN.contains(&name.as_str()) || name.starts_with("proxy-")
}

/// The wait that `Retry-After` asks for (RFC 9110 10.2.3): seconds, or a date. A date in the past means now.
pub fn parse_retry_after(text: &str, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    // Discord, among others, sends decimals.
    if let Some((whole, rest)) = text.split_once('.')
        && let Ok(seconds) = whole.parse::<u32>()
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Some(Duration::from_secs(u64::from(seconds) + 1));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(Timestamp::from(DateTime::from(date)).since(now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{check_headers, parse_retry_after};
    use crate::{FieldIssue, Issue};

    fn issues(headers: &[(&str, &str)]) -> Vec<(String, Issue)> {
        let owned: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let pair = |one: &FieldIssue| (one.field.clone(), one.issue);
        check_headers(&owned).as_slice().iter().map(pair).collect()
    }

    #[test]
    fn ordinary_headers_pass() {
        let fine = [
            ("X-Webhook-Secret", "s3cret with spaces"),
            ("Authorization", "Bearer abc"),
            ("Content-Type", "application/json"),
            ("x-empty", ""),
        ];
        assert_eq!(issues(&fine), []);
    }

    #[test]
    fn malformed_names_and_values_are_invalid() {
        for (name, value) in [
            ("", "a"),
            ("x y", "a"),
            ("x:y", "a"),
            ("x\r\ny", "a"),
            (":authority", "a"),
            ("schlüssel", "a"),
            ("x", "a\r\nhost: b"),
            ("x", "a\0"),
            ("x", "\u{7f}"),
            ("x", "größe"),
            ("x", " a"),
            ("x", "a\t"),
        ] {
            let expected = (format!("headers.{name}"), Issue::InvalidFormat);
            assert_eq!(issues(&[(name, value)]), [expected], "{name:?}: {value:?}");
        }
    }

    #[test]
    fn fields_that_frame_messages_are_forbidden() {
        for name in [
            "Host",
            "content-length",
            "Transfer-Encoding",
            "CONNECTION",
            "Keep-Alive",
            "TE",
            "Trailer",
            "Upgrade",
            "Expect",
            "Proxy-Authorization",
            "HTTP2-Settings",
        ] {
            let expected = (format!("headers.{name}"), Issue::Forbidden);
            assert_eq!(issues(&[(name, "a")]), [expected]);
        }
    }

    #[test]
    fn header_names_are_case_insensitive() {
        let expected = ("headers.X-A".to_owned(), Issue::Duplicate);
        assert_eq!(issues(&[("x-a", "1"), ("X-A", "2")]), [expected]);
    }

    #[test]
    fn number_and_size_of_headers_are_limited() {
        let many: Vec<(String, String)> =
            (0..21).map(|n| (format!("x-{n}"), String::new())).collect();
        let one = |issues: crate::Issues| issues.as_slice()[0].clone();
        assert!(check_headers(&many[..20]).is_empty());
        assert_eq!(one(check_headers(&many)).issue, Issue::TooMany);

        let big = [("x".to_owned(), "v".repeat(8_191))];
        assert!(check_headers(&big).is_empty());
        let bigger = [("xy".to_owned(), "v".repeat(8_191))];
        assert_eq!(one(check_headers(&bigger)).field, "headers");
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = "1994-11-06T08:49:07Z".parse().unwrap();
        for (text, expected) in [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("0.65", Some(1)),
            ("64.57", Some(65)),
            ("1.", None),
            ("1.-5", None),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(30)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("soon", None),
            ("-1", None),
            ("99999999999999999999", None),
        ] {
            let expected = expected.map(Duration::from_secs);
            assert_eq!(parse_retry_after(text, now), expected, "{text}");
        }
    }
}
