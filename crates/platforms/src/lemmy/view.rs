//! One post of a list, with its author and community.

use chrono::NaiveDateTime;
use domain::{Post, PostType, Subforum, Timestamp, User};
use serde::Deserialize;
use url::Url;

use crate::text;

#[derive(Deserialize)]
pub(super) struct View {
    post: Inner,
    creator: Actor,
    community: Actor,
}

#[derive(Deserialize)]
struct Inner {
    id: i64,
    #[serde(default)]
    name: String,
    body: Option<String>,
    published: String,
    ap_id: Option<String>,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    removed: bool,
    #[serde(default)]
    featured_community: bool,
    #[serde(default)]
    featured_local: bool,
    /// The one kind of pin before 0.18.
    #[serde(default)]
    stickied: bool,
}

#[derive(Deserialize)]
struct Actor {
    id: i64,
    name: String,
    #[serde(default)]
    actor_id: String,
    #[serde(default)]
    deleted: bool,
    #[serde(default)]
    removed: bool,
}

impl View {
    pub(super) fn read(value: &serde_json::Value) -> Option<Self> {
        Self::deserialize(value)
            .inspect_err(|error| tracing::debug!(%error, "skipped an unreadable post"))
            .ok()
    }

    pub(super) fn native_id(&self) -> String {
        self.post.id.to_string()
    }

    pub(super) fn is_pinned(&self) -> bool {
        self.post.featured_community || self.post.featured_local || self.post.stickied
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        parse_time(&self.post.published)
    }

    /// `None` when the post, its author or its community is deleted or removed.
    pub(super) fn post(&self, base: &Url, time: Timestamp) -> Option<Post> {
        let gone = self.post.deleted
            || self.post.removed
            || self.creator.deleted
            || self.community.deleted
            || self.community.removed;
        let author = text::line(&self.creator.name);
        let body = self.post.body.as_deref().unwrap_or_default();
        let body = Some(text::from_markdown(body)).filter(|body| !body.is_empty());
        let mut title = text::line(&self.post.name);
        if title.is_empty() {
            title = text::title_of(body.as_deref()?);
        }
        if gone || author.is_empty() {
            return None;
        }
        let here = |path: &str| crate::hackernews::below(base, path).to_string();
        let address = |given: &str, path: String| match Url::parse(given) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && given.len() <= 2_048 => {
                text::line(given)
            }
            _ => here(&path),
        };
        let ap_id = self.post.ap_id.as_deref().unwrap_or_default();
        let url = address(ap_id, format!("post/{}", self.post.id));
        let community = text::line(&self.community.name);
        Some(Post {
            post_type: PostType::ForumLink,
            time,
            id: url.clone(),
            title: Some(title),
            text: body,
            url,
            subforum: Some(Subforum {
                id: self.community.id.to_string(),
                url: address(&self.community.actor_id, format!("c/{community}")),
                name: community,
            }),
            user: User {
                id: self.creator.id.to_string(),
                url: address(&self.creator.actor_id, format!("u/{author}")),
                name: author,
            },
        })
    }
}

/// With a zone, or without one, which means UTC.
fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let naive: NaiveDateTime = text.parse().ok()?;
        Some(Timestamp::from(naive.and_utc()))
    })
}

#[cfg(test)]
mod tests {
    use super::parse_time;

    #[test]
    fn times_with_and_without_a_zone_are_read() {
        let expected = Some("2026-11-21T02:24:12.680057Z".parse().unwrap());
        for text in [
            "2026-11-21T02:24:12.680057",
            "2026-11-21T02:24:12.680057Z",
            "2026-11-21T03:24:12.680057+01:00",
        ] {
            assert_eq!(parse_time(text), expected, "{text}");
        }
        assert_eq!(parse_time("yesterday"), None);
    }
}
