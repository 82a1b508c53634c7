//! Managers: agents that watch one family of platforms for a customer.

use serde::{Deserialize, Serialize};

use crate::{
    ConnectionName, Focus, Instructions, ManagerName, Timestamp, instructions::Sells, patch::Paths,
    screen::Screen,
};

mod change;
mod create;
mod fields;
pub mod health;
mod rules;

pub use crate::source::SourceType;
pub use change::{Editable, ManagerChange};
pub use create::{CreateManager, Origin};
pub use fields::NamedConnection;
pub use rules::Rules;

pub(crate) use fields::source as parse_source;

/// The paths that a PATCH may name.
pub const PATHS: Paths = Paths {
    settable: &[
        "nickname",
        "type",
        "enable",
        "source",
        "source.type",
        "input",
        "input.type",
        "input.urls",
        "input.focus",
        "input.focus.type",
        "input.focus.names",
        "input.sensitivity",
        "input.sells",
        "input.sells.summary",
        "input.sells.offers",
        "instructions",
        "instructions.feeds",
        "instructions.require",
        "instructions.include",
        "instructions.names",
        "instructions.exclude",
        "instructions.focus",
        "instructions.threshold",
        "instructions.sells",
        "instructions.sells.summary",
        "instructions.sells.offers",
        "instructions.brief",
        "notices",
        "mutes",
        "languages",
        "maxScansPerDay",
        "kinds",
        "duplicates",
    ],
    output_only: &[
        "name",
        "createTime",
        "updateTime",
        "mode",
        "state",
        "applyTime",
        "applyError",
        "health",
    ],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ManagerType {
    FeedManager,
}

/// Source of the instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Mode {
    /// Compiled from `input`.
    Automatic,
    /// Given by the client.
    Manual,
}

/// Progress of the current `input` or `instructions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ManagerState {
    /// Waiting for the compiler; older instructions, if any, stay active.
    PendingApply,
    /// Active.
    Applied,
    /// Could not be compiled; `applyError` has the reason. Older instructions, if any, stay active.
    ApplyFailed,
}

impl ManagerState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PendingApply => "PENDING_APPLY",
            Self::Applied => "APPLIED",
            Self::ApplyFailed => "APPLY_FAILED",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    #[serde(rename = "type")]
    pub source_type: SourceType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum InputType {
    Structured,
}

/// Input for compiling an AUTOMATIC Manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    #[serde(rename = "type")]
    pub input_type: InputType,
    pub urls: Vec<String>,
    pub focus: InputFocus,
    /// Absent in rows from older releases.
    #[serde(default)]
    pub sensitivity: Sensitivity,
    /// Replaces what a compile takes from the pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sells: Option<Sells>,
}

/// The user's choice between fewer wrong posts and fewer missed posts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Sensitivity {
    /// Fewer posts, and more of them are worth reading.
    Precise,
    #[default]
    Balanced,
    /// More posts, and fewer relevant ones are missed.
    Broad,
}

impl Sensitivity {
    /// All settings, strictest first.
    pub const ALL: [Self; 3] = [Self::Precise, Self::Balanced, Self::Broad];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Precise => "PRECISE",
            Self::Balanced => "BALANCED",
            Self::Broad => "BROAD",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputFocus {
    #[serde(rename = "type")]
    pub focus_type: Focus,
    /// Names to watch; without them the compiler takes names from the pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NoticeType {
    HttpRequest,
}

/// A Connection that the Manager's Scans are delivered to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    #[serde(rename = "type")]
    pub notice_type: NoticeType,
    pub connection: ConnectionName,
    /// Condition in the grammar of lists that a Scan must meet to be delivered; absent for all Scans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

impl From<ConnectionName> for Notice {
    fn from(connection: ConnectionName) -> Self {
        Self {
            notice_type: NoticeType::HttpRequest,
            connection,
            filter: None,
        }
    }
}

/// Reason why a Manager could not be compiled, as words that clients branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyErrorCode {
    NoReachableUrl,
    NoUsableContent,
    ForbiddenAddress,
    InvalidInstructions,
    QuotaExceeded,
}

impl ApplyErrorCode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoReachableUrl => "no_reachable_url",
            Self::NoUsableContent => "no_usable_content",
            Self::ForbiddenAddress => "forbidden_address",
            Self::InvalidInstructions => "invalid_instructions",
            Self::QuotaExceeded => "quota_exceeded",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplyError {
    pub code: ApplyErrorCode,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    pub name: ManagerName,
    pub create_time: Timestamp,
    pub update_time: Timestamp,
    pub nickname: String,
    #[serde(rename = "type")]
    pub manager_type: ManagerType,
    pub enable: bool,
    pub mode: Mode,
    pub state: ManagerState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_time: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apply_error: Option<ApplyError>,
    pub source: Source,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    /// The active ones; for a MANUAL Manager in PENDING_APPLY, the submitted ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    pub notices: Vec<Notice>,
    #[serde(flatten)]
    pub screen: Screen,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<health::Health>,
}
