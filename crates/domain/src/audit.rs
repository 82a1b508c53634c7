//! Audit events: who changed what, when, and from where.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Id, Timestamp};

/// An operation on a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Action {
    Create,
    Update,
    Delete,
    Apply,
    Backfill,
    Enable,
    Test,
    Replay,
    Cancel,
    Retry,
    /// A response contained the addresses or header values of Connections.
    ReadSecrets,
    Revoke,
}

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
            Self::Apply => "APPLY",
            Self::Backfill => "BACKFILL",
            Self::Enable => "ENABLE",
            Self::Test => "TEST",
            Self::Replay => "REPLAY",
            Self::Cancel => "CANCEL",
            Self::Retry => "RETRY",
            Self::ReadSecrets => "READ_SECRETS",
            Self::Revoke => "REVOKE",
        }
    }
}

/// One change, or one reading of secrets. It has the names of fields, never their values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub action: Action,
    /// `None` for keys and quotas, which belong to the whole account.
    pub namespace: Option<Id>,
    pub resource: String,
    /// Fields that an update named.
    pub fields: Vec<String>,
}

impl Entry {
    /// An entry for a resource in a Namespace.
    pub fn of(action: Action, namespace: Id, resource: impl fmt::Display) -> Self {
        Self {
            action,
            namespace: Some(namespace),
            resource: resource.to_string(),
            fields: Vec::new(),
        }
    }

    /// An entry for what belongs to the whole account.
    pub fn of_account(action: Action, resource: impl fmt::Display) -> Self {
        Self {
            action,
            namespace: None,
            resource: resource.to_string(),
            fields: Vec::new(),
        }
    }

    /// An update of these fields; `None` if `fields` is empty.
    pub fn update(namespace: Id, resource: impl fmt::Display, fields: Vec<String>) -> Option<Self> {
        let entry = Self {
            fields,
            ..Self::of(Action::Update, namespace, resource)
        };
        (!entry.fields.is_empty()).then_some(entry)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ActorType {
    ApiKey,
    /// A person who used `earshot` with access to the database.
    Operator,
}

impl ActorType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "API_KEY",
            Self::Operator => "OPERATOR",
        }
    }
}

/// The caller of a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Actor {
    pub r#type: ActorType,
    /// Id of the API key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Id>,
}

/// `namespaces/{namespace}/auditEvents/{event}`, with `-` for what belongs to no single Namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditEventName {
    pub namespace: Option<Id>,
    pub event: Id,
}

impl fmt::Display for AuditEventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace {
            Some(namespace) => write!(f, "namespaces/{namespace}/auditEvents/{}", self.event),
            None => write!(f, "namespaces/-/auditEvents/{}", self.event),
        }
    }
}

impl Serialize for AuditEventName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditEvent {
    pub name: AuditEventName,
    pub create_time: Timestamp,
    pub action: Action,
    /// Name of the resource, which may be deleted by now.
    pub resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    pub actor: Actor,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{Action, ActorType};
    use crate::{field::Kind, list::AUDIT_EVENT_FIELDS};

    #[test]
    fn action_names_are_the_same_in_filters_and_json() {
        let words = |name: &str| {
            let mut fields = AUDIT_EVENT_FIELDS.iter();
            match fields.find(|field| field.name == name).unwrap().kind {
                Kind::Word(words) => words,
                other => panic!("{other:?}"),
            }
        };
        for word in words("action") {
            let action: Action = serde_json::from_value((*word).into()).unwrap();
            assert_eq!(action.as_str(), *word);
        }
        for word in words("actor.type") {
            let actor: ActorType = serde_json::from_value((*word).into()).unwrap();
            assert_eq!(actor.as_str(), *word);
        }
    }
}
