//! Discourse's response bodies. A missing or null field reads as empty.

use crate::null;
use chrono::DateTime;
use domain::Timestamp;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct TopicsPage {
    pub(super) topic_list: TopicList,
}

#[derive(Deserialize)]
pub(super) struct TopicList {
    #[serde(default, deserialize_with = "null::or_default")]
    pub(super) topics: Vec<serde_json::Value>,
    pub(super) more_topics_url: Option<String>,
}

/// A topic in a list.
#[derive(Deserialize)]
pub(super) struct Listed {
    pub(super) id: u64,
    created_at: Option<String>,
    #[serde(default)]
    pinned: Option<bool>,
    #[serde(default)]
    pinned_globally: Option<bool>,
    visible: Option<bool>,
    archetype: Option<String>,
}

/// A topic with its text.
#[derive(Deserialize)]
pub(super) struct Topic {
    pub(super) id: u64,
    pub(super) title: Option<String>,
    pub(super) slug: Option<String>,
    created_at: Option<String>,
    pub(super) category_id: Option<i64>,
    visible: Option<bool>,
    deleted_at: Option<serde_json::Value>,
    archetype: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    post_stream: Stream,
}

#[derive(Default, Deserialize)]
struct Stream {
    #[serde(default, deserialize_with = "null::or_default")]
    posts: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct PostsPage {
    pub(super) latest_posts: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
pub(super) struct Post {
    pub(super) id: u64,
    pub(super) username: Option<String>,
    pub(super) user_id: Option<i64>,
    created_at: Option<String>,
    /// HTML.
    pub(super) cooked: Option<String>,
    pub(super) post_number: Option<u64>,
    /// 1 is a normal post; the others are notes on what happened to a topic.
    post_type: Option<u8>,
    pub(super) topic_id: Option<u64>,
    pub(super) topic_slug: Option<String>,
    pub(super) topic_title: Option<String>,
    pub(super) category_id: Option<i64>,
    hidden: Option<bool>,
    deleted_at: Option<serde_json::Value>,
    user_deleted: Option<bool>,
}

impl Listed {
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.created_at.as_deref().and_then(parse_time)
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.pinned == Some(true) || self.pinned_globally == Some(true)
    }

    /// Returns true if it is a topic and everyone may read it.
    pub(super) fn is_public(&self) -> bool {
        self.visible != Some(false) && is_regular(self.archetype.as_deref())
    }
}

impl Topic {
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.created_at.as_deref().and_then(parse_time)
    }

    pub(super) fn is_gone(&self) -> bool {
        let first = self.first_post();
        self.deleted_at.is_some()
            || self.visible == Some(false)
            || !is_regular(self.archetype.as_deref())
            || first.is_some_and(|post| post.is_gone())
    }

    /// The topic's first post; `None` if the response starts at a later post.
    pub(super) fn first_post(&self) -> Option<Post> {
        let posts = self.post_stream.posts.iter();
        let mut posts = posts.filter_map(|post| Post::deserialize(post).ok());
        posts.find(|post| post.post_number.is_none_or(|number| number == 1))
    }
}

impl Post {
    pub(super) fn time(&self) -> Option<Timestamp> {
        self.created_at.as_deref().and_then(parse_time)
    }

    pub(super) fn is_gone(&self) -> bool {
        self.is_deleted() || self.hidden == Some(true)
    }

    pub(super) fn is_deleted(&self) -> bool {
        self.deleted_at.is_some() || self.user_deleted == Some(true)
    }

    /// Returns true for a reply: neither the topic itself nor a note on it.
    pub(super) fn is_reply(&self) -> bool {
        self.post_number.is_some_and(|number| number > 1)
            && matches!(self.post_type, None | Some(1))
    }
}

fn is_regular(archetype: Option<&str>) -> bool {
    matches!(archetype, None | Some("regular"))
}

/// Parses a time with `Z` or an offset.
fn parse_time(text: &str) -> Option<Timestamp> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    Some(Timestamp::from(time.to_utc()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_post_is_gone_and_not_deleted() {
        for (field, is_deleted) in [
            (r#""hidden": true"#, false),
            (r#""user_deleted": true"#, true),
            (r#""deleted_at": "2026-11-27T10:00:00Z""#, true),
        ] {
            let post: Post = serde_json::from_str(&format!(r#"{{"id": 1, {field}}}"#)).unwrap();
            assert_eq!((post.is_gone(), post.is_deleted()), (true, is_deleted));
        }
    }

    #[test]
    fn times_of_old_sites_have_an_offset() {
        let expected = Some("2013-02-04T20:26:25.977Z".parse().unwrap());
        assert_eq!(parse_time("2013-02-04T15:26:25.977-05:00"), expected);
        assert_eq!(parse_time("2013-02-04T20:26:25.977Z"), expected);
        assert_eq!(parse_time("soon"), None);
    }
}
