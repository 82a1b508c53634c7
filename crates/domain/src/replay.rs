//! Replays: deliveries of a time window that are sent again, as a job that a client can watch and cancel.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{DeliveryState, Issue, Issues, ReplayName, Timestamp, json::Object};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ReplayState {
    Running,
    /// Every delivery of the window was reopened; their results are in the log.
    Done,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    pub name: ReplayName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub start_time: Timestamp,
    pub end_time: Timestamp,
    /// States of the deliveries to reopen; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<DeliveryState>>,
    pub state: ReplayState,
    /// Number of deliveries to reopen; for a very large window a lower bound, until counted.
    pub total: u64,
    /// Number of deliveries reopened so far.
    pub done: u64,
}

/// A valid request to replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateReplay {
    pub start_time: Timestamp,
    /// Default: now.
    pub end_time: Option<Timestamp>,
    pub states: Option<Vec<DeliveryState>>,
}

impl CreateReplay {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let draft = Object::root(body, &issues).and_then(|fields| {
            let start = parse_time(&fields, "startTime", fields.require("startTime"));
            let end = parse_time(&fields, "endTime", fields.take("endTime"));
            if let (Some(start), Some(end)) = (start, end)
                && end < start
            {
                fields.report("endTime", Issue::OutOfRange);
            }
            let states = parse_states(&fields);
            fields.finish();
            Some(Self {
                start_time: start?,
                end_time: end,
                states,
            })
        });
        // `None` only after an issue was reported.
        issues.into_inner().or(())?;
        draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat))
    }
}

pub(crate) fn parse_time(
    fields: &Object<'_>,
    field: &'static str,
    value: Option<&Value>,
) -> Option<Timestamp> {
    let Some(text) = value?.as_str() else {
        fields.report(field, Issue::InvalidType);
        return None;
    };
    let time: Option<Timestamp> = text.parse().ok();
    // Within the years that the database supports.
    let known = |time: &Timestamp| (0..253_402_300_800_000_000).contains(&time.micros());
    if time.is_none() {
        fields.report(field, Issue::InvalidFormat);
    } else if !time.as_ref().is_some_and(known) {
        fields.report(field, Issue::OutOfRange);
    }
    time.filter(known)
}

/// An empty list would replay nothing, and is surely a mistake.
fn parse_states(fields: &Object<'_>) -> Option<Vec<DeliveryState>> {
    let items = fields.array("states", fields.take("states"))?;
    if items.is_empty() {
        fields.report("states", Issue::TooShort);
    }
    let mut states = Vec::new();
    for (at, item) in items.iter().take(DeliveryState::ALL.len() + 1).enumerate() {
        let path = format!("states[{at}]");
        let Some(word) = item.as_str() else {
            fields.report(&path, Issue::InvalidType);
            continue;
        };
        match DeliveryState::ALL
            .iter()
            .find(|state| state.as_str() == word)
        {
            None => fields.report(&path, Issue::InvalidEnum),
            Some(state) if states.contains(state) => fields.report(&path, Issue::Duplicate),
            Some(state) => states.push(*state),
        }
    }
    Some(states)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::CreateReplay;
    use crate::{DeliveryState, Issue};

    #[test]
    fn replay_needs_only_a_start() {
        let draft = CreateReplay::parse(&json!({"startTime": "2026-11-20T00:00:00Z"})).unwrap();
        assert_eq!((draft.end_time, draft.states), (None, None));
        let body = json!({
            "startTime": "2026-11-20T00:00:00+02:00", "endTime": "2026-11-21T00:00:00Z",
            "states": ["EXHAUSTED", "SUCCEEDED"]
        });
        let draft = CreateReplay::parse(&body).unwrap();
        let expected = vec![DeliveryState::Exhausted, DeliveryState::Succeeded];
        assert_eq!(draft.states, Some(expected));
    }

    #[test]
    fn invalid_replay_fields_are_named() {
        let failing = |body| {
            let issues = CreateReplay::parse(&body).unwrap_err();
            let found = issues.as_slice().iter();
            found
                .map(|one| (one.field.clone(), one.issue))
                .collect::<Vec<_>>()
        };
        let one = |field: &str, issue| vec![(field.to_owned(), issue)];
        let start = "2026-11-20T00:00:00Z";
        for (body, expected) in [
            (json!({}), one("startTime", Issue::Required)),
            (json!([]), one("body", Issue::InvalidType)),
            (
                json!({"startTime": 7}),
                one("startTime", Issue::InvalidType),
            ),
            (
                json!({"startTime": "yesterday"}),
                one("startTime", Issue::InvalidFormat),
            ),
            (
                json!({"startTime": "1492-01-01T00:00:00Z"}),
                one("startTime", Issue::OutOfRange),
            ),
            (
                json!({"startTime": start, "endTime": "2026-11-19T00:00:00Z"}),
                one("endTime", Issue::OutOfRange),
            ),
            (
                json!({"startTime": start, "states": []}),
                one("states", Issue::TooShort),
            ),
            (
                json!({"startTime": start, "states": ["LOST"]}),
                one("states[0]", Issue::InvalidEnum),
            ),
            (
                json!({"startTime": start, "states": ["PENDING", "PENDING"]}),
                one("states[1]", Issue::Duplicate),
            ),
            (
                json!({"startTime": start, "speed": 3}),
                one("speed", Issue::UnknownField),
            ),
        ] {
            assert_eq!(failing(body.clone()), expected, "{body}");
        }
    }
}
