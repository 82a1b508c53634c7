//! Families of platforms.

use serde::{Deserialize, Serialize};

/// A family of platforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum SourceType {
    Forum,
    Microblog,
    Network,
}

impl SourceType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Forum => "FORUM",
            Self::Microblog => "MICROBLOG",
            Self::Network => "NETWORK",
        }
    }
}
