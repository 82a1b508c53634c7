//! Posts: what a platform published, in the one shape that every platform is brought into.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The kind of post, by the family of its platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PostType {
    ForumLink,
    /// An answer below a forum's post; an extension, for Managers that ask for comments.
    ForumComment,
    MicroblogTweet,
    NetworkPost,
}

/// A post as SPEC.md 2.6 has it. Text is plain text: markup is taken out at the adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Post {
    #[serde(rename = "type")]
    pub post_type: PostType,
    pub time: Timestamp,
    /// Unique over everything that a receiver may get.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    pub url: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subforum: Option<Subforum>,
    pub user: User,
}

/// Where in a forum the post stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subforum {
    pub id: String,
    pub name: String,
    pub url: String,
}

/// The author; the feed or site itself where the platform names none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub id: String,
    pub name: String,
    pub url: String,
}
