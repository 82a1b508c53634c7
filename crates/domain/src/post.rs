//! Posts of all platforms, in one common form.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Kind of post, determined by the family of its platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PostType {
    ForumLink,
    /// A reply to a forum's post; an extension, for Managers that ask for comments.
    ForumComment,
    MicroblogTweet,
    NetworkPost,
}

/// A post as in SPEC.md 2.6. Text is plain text: the adapter removes markup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Post {
    #[serde(rename = "type")]
    pub post_type: PostType,
    pub time: Timestamp,
    /// Unique among all posts that a receiver may get.
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

/// The part of a forum that contains the post.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subforum {
    pub id: String,
    pub name: String,
    pub url: String,
}

/// The author, or the feed or site itself if the platform names no author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    pub id: String,
    pub name: String,
    pub url: String,
}
