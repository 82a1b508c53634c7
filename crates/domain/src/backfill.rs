//! A request to search the past posts of a Manager's feeds.

use std::{cell::RefCell, time::Duration};

use serde_json::Value;

use crate::{Issue, Issues, Timestamp, json::Object, replay::parse_time};

/// Maximum distance of the start from now, and the default.
pub const MAX_BACK: Duration = Duration::from_hours(30 * 24);
/// Allowed delay of a client's clock.
const SLACK: Duration = Duration::from_mins(1);

/// A valid request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreateBackfill {
    pub start_time: Timestamp,
    /// True if the matches are delivered.
    pub notify: bool,
}

impl CreateBackfill {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value, now: Timestamp) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let earliest = now.minus(MAX_BACK);
        let draft = Object::root(body, &issues).and_then(|fields| {
            let given = fields.take("startTime");
            let start = parse_time(&fields, "startTime", given);
            if start.is_some_and(|start| start < earliest.minus(SLACK) || start > now) {
                fields.report("startTime", Issue::OutOfRange);
            }
            let notify = match fields.take("notify") {
                None => Some(false),
                given => fields.boolean("notify", given),
            };
            fields.finish();
            Some(Self {
                start_time: start.map_or(earliest, |start| start.max(earliest)),
                notify: notify?,
            })
        });
        // `None` only after an issue was reported.
        issues.into_inner().or(())?;
        draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{CreateBackfill, MAX_BACK};
    use crate::{Issue, Timestamp};

    fn parse(body: &Value) -> Result<CreateBackfill, Vec<(String, Issue)>> {
        let now: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
        CreateBackfill::parse(body, now).map_err(|issues| {
            let all = issues.as_slice().iter();
            all.map(|one| (one.field.clone(), one.issue)).collect()
        })
    }

    #[test]
    fn backfill_covers_at_most_thirty_days_and_is_silent_by_default() {
        let now: Timestamp = "2026-11-21T00:00:00Z".parse().unwrap();
        let silent = parse(&json!({})).unwrap();
        assert_eq!(
            (silent.start_time, silent.notify),
            (now.minus(MAX_BACK), false)
        );
        let given = parse(&json!({"startTime": "2026-11-01T00:00:00Z", "notify": true})).unwrap();
        assert_eq!(given.start_time.to_string(), "2026-11-01T00:00:00.000000Z");
        assert!(given.notify);
        for (body, field, issue) in [
            (
                json!({"startTime": "2026-10-01T00:00:00Z"}),
                "startTime",
                Issue::OutOfRange,
            ),
            (
                json!({"startTime": "2026-11-22T00:00:00Z"}),
                "startTime",
                Issue::OutOfRange,
            ),
            (
                json!({"startTime": "yesterday"}),
                "startTime",
                Issue::InvalidFormat,
            ),
            (json!({"startTime": 5}), "startTime", Issue::InvalidType),
            (json!({"notify": "yes"}), "notify", Issue::InvalidType),
            (json!({"since": 1}), "since", Issue::UnknownField),
            (json!([]), "body", Issue::InvalidType),
        ] {
            assert_eq!(
                parse(&body).unwrap_err(),
                [(field.to_owned(), issue)],
                "{body}"
            );
        }
    }
}
