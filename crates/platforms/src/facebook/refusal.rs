//! Errors of the Graph API by code, and how much of a limit is used.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::null;
use crate::{Fetched, MAX_PAUSE, PollError, budget::Left};

const USAGE: [&str; 3] = ["x-app-usage", "x-page-usage", "x-business-use-case-usage"];
const MAX_HEADER_BYTES: usize = 16 * 1024;
/// Maximum number of limits read from one header.
const MAX_LIMITS: usize = 100;
/// Limits apply to a sliding hour. Without an estimate, some of the limit is free again after this time.
const PAUSE: Duration = Duration::from_mins(10);
/// Longest estimate that a refused feed waits for. It comes from the count of the token, unlike the `Retry-After` of a
/// firewall, and requests before that time add to the count.
const MAX_ESTIMATE: Duration = Duration::from_hours(24);

#[derive(Deserialize)]
struct Refusal {
    error: Code,
}

#[derive(Deserialize)]
struct Code {
    #[serde(default, deserialize_with = "null::or_default")]
    code: i64,
    #[serde(default, deserialize_with = "null::or_default")]
    error_subcode: i64,
}

/// Returns an error response as an error, by its code. The message is left out: it is meant for developers and
/// may contain anything.
pub(super) fn check(answer: &Fetched, feed: &str) -> Result<(), PollError> {
    let status = answer.status;
    if status < 400 || answer.body.len() > 64 * 1024 {
        return Ok(());
    }
    let Ok(Refusal { error }) = serde_json::from_slice(&answer.body) else {
        return Ok(());
    };
    let refused = |advice| Err(PollError::Refused { status, advice });
    match (error.code, error.error_subcode) {
        (190 | 102, _) => {
            refused("the token is wrong or has expired: put a new Page access token into `token`")
        }
        (10 | 200..=299, _) => refused(
            "the token may not read this Page: it needs `pages_read_engagement` (and \
             `pages_read_user_content` for visitors' posts), granted by a manager of the Page after app \
             review",
        ),
        (12 | 2635, _) => refused("`api_version` is not served (any more): set a newer one"),
        (4 | 17 | 32 | 341 | 613 | 80_000..=80_099, _) => Err(PollError::Throttled {
            retry_after: Some(answer.retry_after().unwrap_or_else(|| pause(answer))),
        }),
        (100, 33) | (803, _) => Err(PollError::NotFound(feed.to_owned())),
        _ => Ok(()),
    }
}

/// Zero requests left once a limit is used up; otherwise `None`, because percentages do not convert to
/// requests.
pub(crate) fn left(answer: &Fetched) -> Option<Left> {
    let used = limits(answer).iter().any(|limit| {
        ["call_count", "total_time", "total_cputime"]
            .iter()
            .any(|part| {
                limit[*part]
                    .as_f64()
                    .is_some_and(|percent| percent >= 100.0)
            })
    });
    used.then(|| Left {
        requests: 0,
        reset_in: pause(answer).min(MAX_PAUSE),
    })
}

/// The longest wait that the headers estimate, in minutes.
fn pause(answer: &Fetched) -> Duration {
    let minutes = limits(answer)
        .iter()
        .filter_map(|limit| limit["estimated_time_to_regain_access"].as_u64())
        .max();
    let told = minutes.filter(|minutes| *minutes > 0);
    told.map_or(PAUSE, |minutes| {
        Duration::from_secs(minutes.saturating_mul(60)).min(MAX_ESTIMATE)
    })
}

/// The limits in the headers: a single one, or lists by business.
fn limits(answer: &Fetched) -> Vec<Value> {
    let mut found = Vec::new();
    for name in USAGE {
        let header = answer
            .header(name)
            .filter(|text| text.len() <= MAX_HEADER_BYTES);
        let read = header.and_then(|text| serde_json::from_str::<Value>(text).ok());
        let Some(Value::Object(read)) = read else {
            continue;
        };
        let lists = read.values().filter_map(Value::as_array).flatten().cloned();
        found.extend(lists.take(MAX_LIMITS));
        found.push(Value::Object(read));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{check, left};
    use crate::{Fetched, MAX_PAUSE, PollError};

    fn answer(status: u16, header: Option<(&str, &str)>, body: &str) -> Fetched {
        let headers = header.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Fetched {
            status,
            headers: headers.into_iter().collect(),
            body: body.into(),
            final_url: "https://graph.facebook.com/".parse().unwrap(),
        }
    }

    #[test]
    fn a_limit_at_100_percent_leaves_nothing() {
        let wait = |name, value| {
            let left = left(&answer(200, Some((name, value)), ""))?;
            assert_eq!(left.requests, 0);
            Some(left.reset_in)
        };
        let app = "x-app-usage";
        assert_eq!(
            wait(
                app,
                r#"{"call_count":99,"total_time":25,"total_cputime":25}"#
            ),
            None
        );
        let full = r#"{"call_count":28,"total_time":100,"total_cputime":25}"#;
        assert_eq!(wait(app, full), Some(Duration::from_mins(10)));
        let business = r#"{"17": [{"type":"pages","call_count":100,"total_cputime":25,"total_time":25,
            "estimated_time_to_regain_access":19}]}"#;
        let name = "x-business-use-case-usage";
        assert_eq!(wait(name, business), Some(MAX_PAUSE));
        let near = business.replace("19", "11");
        assert_eq!(wait(name, &near), Some(Duration::from_mins(11)));
        // A refused poll waits for the whole estimate.
        for (minutes, hours) in [("120", 2), ("18446744073709551615", 24)] {
            let far = business.replace("19", minutes);
            let refusal = answer(400, Some((name, &far)), r#"{"error": {"code": 32}}"#);
            let wait = check(&refusal, "page/1").unwrap_err().retry_after();
            assert_eq!(wait, Some(Duration::from_hours(hours)));
        }
        for odd in [
            "",
            "100",
            "[100]",
            "{\"call_count\":\"100\"}",
            "{\"a\":[[100]]}",
        ] {
            assert_eq!(wait(app, odd), None, "{odd}");
        }
    }

    #[test]
    fn errors_are_distinguished_by_their_codes() {
        let of = |status, code: i64, subcode: i64| {
            let body = format!(
                r#"{{"error":{{"message":"s3cret","code":{code},"error_subcode":{subcode}}}}}"#
            );
            check(&answer(status, None, &body), "page/1").err()
        };
        for (code, subcode, word) in [
            (190, 463, "expired"),
            (10, 0, "pages_read_engagement"),
            (12, 0, "api_version"),
        ] {
            let error = of(400, code, subcode).unwrap();
            assert!(error.is_permanent());
            let text = error.to_string();
            assert!(text.contains(word) && !text.contains("s3cret"), "{text}");
        }
        assert!(matches!(of(400, 4, 0), Some(PollError::Throttled { .. })));
        assert!(matches!(
            of(400, 80_001, 0),
            Some(PollError::Throttled { .. })
        ));
        assert!(matches!(of(400, 100, 33), Some(PollError::NotFound(_))));
        assert!(of(500, 1, 0).is_none() && of(200, 190, 0).is_none());
        for body in ["", "[]", "{\"error\":\"x\"}", "<html>"] {
            assert!(check(&answer(400, None, body), "page/1").is_ok());
        }
    }
}
