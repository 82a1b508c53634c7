//! Connections: where events are delivered.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ConnectionName, ServiceEventType, Timestamp};

mod digest;
mod health;
mod recipients;
mod request;
mod secret;

pub use digest::{Digest, Period};
pub use health::{Breaker, ConnectionWithHealth, Health, MAX_COUNTED};
pub use recipients::{MAX_RECIPIENTS, MailAddress, Recipient, RecipientState, Recipients};
pub use request::{ConnectionChange, CreateConnection, PATHS};
pub use secret::{ParseSecretError, SigningSecret};

pub const MAX_SIGNING_SECRETS: usize = 2;
/// Bounds of `maxPerSecond`.
pub const PER_SECOND: std::ops::RangeInclusive<u32> = 1..=10_000;

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
    /// The Connection sends nothing; deliveries wait.
    Disabled,
}

impl ConnectionState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "ACTIVE",
            Self::Disabled => "DISABLED",
        }
    }
}

/// Format of the request body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Format {
    /// Earshot's own: type, name and post.
    #[default]
    Earshot,
    Slack,
    Discord,
    Teams,
    /// E-mail to the recipients in the `mailto:` URL.
    Email,
}

impl Format {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Earshot => "EARSHOT",
            Self::Slack => "SLACK",
            Self::Discord => "DISCORD",
            Self::Teams => "TEAMS",
            Self::Email => "EMAIL",
        }
    }
}

/// Custom headers by name. Values are secrets: `Debug` does not print them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Headers(pub BTreeMap<String, String>);

impl Headers {
    /// Placeholder for headers that the service cannot decrypt any more; not even their names are known.
    pub fn unreadable() -> Self {
        Self([("***".to_owned(), "***".to_owned())].into())
    }

    /// The headers as a key without write permission sees them.
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
    pub format: Format,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_per_second: Option<u32>,
    /// Service events that it receives, each type once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<ServiceEventType>,
    /// For e-mail: Scans are gathered. `None` if each is sent at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    pub state: ConnectionState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
}

impl Connection {
    /// The Connection as a key without write permission sees it: only the URL's scheme and host, the domains of
    /// recipients, and the headers' names.
    #[must_use]
    pub fn masked(mut self) -> Self {
        self.headers = self.headers.masked();
        if let Ok(recipients) = self.url.parse::<Recipients>() {
            self.url = recipients.masked();
            return self;
        }
        let host = self.url.find("://").map_or(0, |at| at + "://".len());
        let end = self.url[host..].find(['/', '?', '#']);
        self.url
            .truncate(end.map_or(self.url.len(), |end| host + end));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Connection, ConnectionState, ConnectionType, Format, Headers, Method};
    use crate::{ConnectionName, Id, Timestamp};

    pub(super) fn sample() -> Connection {
        let headers =
            [("x-a", "1"), ("x-b", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        Connection {
            name: ConnectionName {
                namespace: Id::NIL,
                connection: Id::NIL,
            },
            create_time: Timestamp::UNIX_EPOCH,
            update_time: Timestamp::UNIX_EPOCH,
            nickname: "ours".to_owned(),
            connection_type: ConnectionType::HttpConnection,
            url: "https://example.com/".to_owned(),
            method: Method::Post,
            headers: Headers(headers.into()),
            format: Format::Earshot,
            max_per_second: Some(5),
            events: Vec::new(),
            digest: None,
            state: ConnectionState::Active,
            state_reason: None,
        }
    }

    #[test]
    fn masked_urls_end_with_their_host() {
        for (url, shown) in [
            (
                "https://hooks.slack.com/services/T0/B0/x",
                "https://hooks.slack.com",
            ),
            ("https://a.example:8443?key=x", "https://a.example:8443"),
            ("http://a.example#x", "http://a.example"),
            ("https://a.example", "https://a.example"),
            (
                "mailto:ada@a.example,b@b.example",
                "mailto:***@a.example,***@b.example",
            ),
            ("", ""),
        ] {
            let mut connection = sample();
            connection.url = url.to_owned();
            assert_eq!(connection.masked().url, shown);
        }
    }

    #[test]
    fn header_values_are_not_in_debug_output() {
        let headers = Headers([("x-secret".to_owned(), "hush".to_owned())].into());
        let shown = format!("{headers:?}");
        assert!(shown.contains("x-secret") && !shown.contains("hush"));
    }
}
