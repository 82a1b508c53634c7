//! The operator's settings for one platform.

use std::time::Duration;

use domain::PostType;
use runtime::config::Access;
use secrecy::ExposeSecret;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use url::Url;

use crate::FetchError;

/// One `[[platforms]]` entry of the configuration.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The first part of its feeds' names.
    pub name: String,
    /// Name of the adapter.
    pub kind: String,
    /// Determined by the kind, except for `feed`, which must set it.
    pub source: Option<Source>,
    pub base_url: Option<Url>,
    /// Hacker News: where single items are read. Bluesky: where authors' handles are looked up.
    pub items_url: Option<Url>,
    /// Used exactly if set; otherwise the interval adapts to each feed.
    pub poll_interval: Option<Duration>,
    /// Credentials and budgets.
    pub access: Access,
}

impl Settings {
    /// Opaque identifier of the credential for the platform, which does not reveal it. Entries with the same
    /// host and credential share a request budget.
    pub fn credential(&self) -> String {
        let access = &self.access;
        let token = access.token.as_ref().map(|token| token.expose_secret());
        let who = access.client_id.as_deref().or(token).unwrap_or_default();
        match self.base_url.as_ref().and_then(Url::host_str) {
            Some(host) => {
                let who = hex::encode(&Sha256::digest(who.as_bytes())[..8]);
                format!("{}:{host}:{who}", self.kind)
            }
            None => format!("{}:{}", self.kind, self.name),
        }
    }
}

/// The family of a platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Source {
    Forum,
    Microblog,
    Network,
}

impl Source {
    /// The type of this family's posts.
    pub fn post_type(self) -> PostType {
        match self {
            Self::Forum => PostType::ForumLink,
            Self::Microblog => PostType::MicroblogTweet,
            Self::Network => PostType::NetworkPost,
        }
    }
}

/// A platform's entry that is invalid.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("platform name `{0}` must be 1 to 64 of a-z, 0-9, `.`, `_`, `-`")]
    Name(String),
    #[error("platform `{0}` is configured twice")]
    Duplicate(String),
    #[error("platform `{name}`: unknown kind `{kind}`; known are {known}")]
    Kind {
        name: String,
        kind: String,
        known: String,
    },
    #[error("platform `{name}`: {problem}")]
    Value { name: String, problem: &'static str },
    #[error("platform `{name}`: no HTTP client")]
    Client {
        name: String,
        #[source]
        source: FetchError,
    },
}
