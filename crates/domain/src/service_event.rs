//! Service events: what happened to a Namespace's resources, for the Connections that ask for it.

use serde::{Deserialize, Serialize};

use crate::{Id, Timestamp, manager::ApplyError};

/// Type of a service event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ServiceEventType {
    ManagerApplied,
    ManagerApplyFailed,
    /// The service disabled a Connection, because of its endpoint's responses or because no recipient is left.
    ConnectionDisabled,
    /// Posts of a feed may be missing.
    CoverageGap,
    /// A Scan's post was deleted at its source, or at the request of its author.
    PostDeleted,
    /// A re-check found that the text of a Scan's post was edited at its source.
    PostEdited,
}

impl ServiceEventType {
    pub const ALL: [Self; 6] = [
        Self::ManagerApplied,
        Self::ManagerApplyFailed,
        Self::ConnectionDisabled,
        Self::CoverageGap,
        Self::PostDeleted,
        Self::PostEdited,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::ManagerApplied => "MANAGER_APPLIED",
            Self::ManagerApplyFailed => "MANAGER_APPLY_FAILED",
            Self::ConnectionDisabled => "CONNECTION_DISABLED",
            Self::CoverageGap => "COVERAGE_GAP",
            Self::PostDeleted => "POST_DELETED",
            Self::PostEdited => "POST_EDITED",
        }
    }
}

/// The body that a Connection receives. It contains nothing of a post but its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceEvent {
    #[serde(rename = "type")]
    pub event_type: ServiceEventType,
    /// The same for all Connections, and at each attempt.
    pub id: Id,
    /// Time of the cause.
    pub time: Timestamp,
    /// Name of the Manager, Connection, Namespace or Scan that it is about.
    pub name: String,
    #[serde(flatten)]
    pub details: Details,
}

/// The fields that only some types have.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Details {
    /// Nickname of the Manager or Connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nickname: Option<String>,
    /// Why the Manager could not be applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ApplyError>,
    /// Why the Connection was disabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<CoverageGap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<ScanPost>,
}

/// A period whose posts may be missing from a feed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageGap {
    /// Name of the feed; an address in it is masked.
    pub feed: String,
    /// Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Timestamp>,
    pub to: Timestamp,
    pub reason: String,
}

/// The post of a Scan. It has no text, which the erasure of a post would have to find in stored events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanPost {
    pub id: String,
}

impl ServiceEvent {
    /// A sentence that says what happened, and what else is known.
    pub fn summary(&self) -> (String, Option<String>) {
        let named = self.details.nickname.as_deref().unwrap_or(&self.name);
        match self.event_type {
            ServiceEventType::ManagerApplied => (format!("Manager “{named}” is applied"), None),
            ServiceEventType::ManagerApplyFailed => (
                format!("Manager “{named}” could not be applied"),
                self.details.error.as_ref().map(|one| one.message.clone()),
            ),
            ServiceEventType::ConnectionDisabled => (
                format!("Connection “{named}” is disabled"),
                self.details.reason.clone(),
            ),
            ServiceEventType::CoverageGap => {
                let gap = self.details.gap.as_ref();
                let feed = gap.map_or(named, |gap| gap.feed.as_str());
                (
                    format!("Posts of {feed} may be missing"),
                    gap.map(CoverageGap::summary),
                )
            }
            ServiceEventType::PostDeleted => (
                "The post of a Scan was deleted".to_owned(),
                Some(self.name.clone()),
            ),
            ServiceEventType::PostEdited => (
                "The post of a Scan was edited".to_owned(),
                Some(self.name.clone()),
            ),
        }
    }
}

impl CoverageGap {
    fn summary(&self) -> String {
        let minute = |time: Timestamp| time.to_chrono().format("%Y-%m-%d %H:%M UTC").to_string();
        let to = minute(self.to);
        match self.from.map(minute) {
            Some(from) => format!("{from} to {to}: {}", self.reason),
            None => format!("Before {to}: {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{ServiceEvent, ServiceEventType};

    #[test]
    fn words_are_those_of_json() {
        for one in ServiceEventType::ALL {
            assert_eq!(json!(one), json!(one.as_str()));
        }
    }

    #[test]
    fn event_keeps_its_json_form() {
        let name = "namespaces/01jd3y8k6q9v2w4x5z7a8b9c0d";
        let event = |event_type: &str, details: serde_json::Value| {
            let mut json = json!({
                "type": event_type, "id": "01jd3yc5r6s7t8v9w0x1y2z3a4",
                "time": "2026-11-21T01:02:03.000123Z", "name": name,
            });
            let fields = json.as_object_mut().unwrap();
            fields.extend(details.as_object().unwrap().clone());
            json
        };
        let gap = json!({
            "feed": "reddit:r/a", "from": "2026-11-21T01:00:00.000000Z",
            "to": "2026-11-21T02:00:00.000000Z", "reason": "a pause",
        });
        for (json, sentence, text) in [
            (
                event("MANAGER_APPLIED", json!({"nickname": "Backups"})),
                "Manager “Backups” is applied",
                None,
            ),
            (
                event(
                    "MANAGER_APPLY_FAILED",
                    json!({"nickname": "Backups", "error": {"code": "no_reachable_url", "message": "none"}}),
                ),
                "Manager “Backups” could not be applied",
                Some("none"),
            ),
            (
                event(
                    "CONNECTION_DISABLED",
                    json!({"nickname": "Ours", "reason": "gone"}),
                ),
                "Connection “Ours” is disabled",
                Some("gone"),
            ),
            (
                event("COVERAGE_GAP", json!({"gap": gap})),
                "Posts of reddit:r/a may be missing",
                Some("2026-11-21 01:00 UTC to 2026-11-21 02:00 UTC: a pause"),
            ),
            (
                event("POST_DELETED", json!({"post": {"id": "reddit:t3_a"}})),
                "The post of a Scan was deleted",
                Some(name),
            ),
            (
                event("POST_EDITED", json!({"post": {"id": "reddit:t3_a"}})),
                "The post of a Scan was edited",
                Some(name),
            ),
        ] {
            let event: ServiceEvent = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&event).unwrap(), json);
            let (said, also) = event.summary();
            assert_eq!((said.as_str(), also.as_deref()), (sentence, text));
        }
    }
}
