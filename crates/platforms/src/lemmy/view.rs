//! One post or comment of a list, with its author and community.

use chrono::NaiveDateTime;
use domain::{Post, PostType, Subforum, Timestamp, User};
use serde::Deserialize;
use url::Url;

use crate::null;
use crate::{reading::Made, text};

#[derive(Deserialize)]
pub(super) struct View {
    post: Inner,
    /// Only in lists of comments.
    comment: Option<Comment>,
    creator: Actor,
    community: Actor,
    #[serde(default, deserialize_with = "null::or_default")]
    counts: Counts,
}

#[derive(Default, Deserialize)]
struct Counts {
    /// When this instance got to know it: lists are in this order.
    published: Option<String>,
}

#[derive(Deserialize)]
struct Inner {
    id: i64,
    #[serde(default, deserialize_with = "null::or_default")]
    name: String,
    body: Option<String>,
    /// Alternative text of the picture.
    alt_text: Option<String>,
    published: String,
    ap_id: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    deleted: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    removed: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    featured_community: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    featured_local: bool,
    /// The only kind of pin before 0.18.
    #[serde(default, deserialize_with = "null::or_default")]
    stickied: bool,
}

#[derive(Deserialize)]
struct Comment {
    id: i64,
    #[serde(default, deserialize_with = "null::or_default")]
    content: String,
    published: String,
    ap_id: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    deleted: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    removed: bool,
}

#[derive(Deserialize)]
struct Actor {
    id: i64,
    name: String,
    #[serde(default, deserialize_with = "null::or_default")]
    actor_id: String,
    #[serde(default, deserialize_with = "null::or_default")]
    deleted: bool,
    #[serde(default, deserialize_with = "null::or_default")]
    removed: bool,
}

impl View {
    /// `None` for what the list is not of.
    pub(super) fn read(
        value: &serde_json::Value,
        is_comment: bool,
    ) -> serde_json::Result<Option<Self>> {
        let view = Self::deserialize(value)?;
        Ok(Some(view).filter(|view| view.comment.is_some() == is_comment))
    }

    pub(super) fn native_id(&self) -> String {
        let comment = self.comment.as_ref();
        comment
            .map_or(self.post.id, |comment| comment.id)
            .to_string()
    }

    /// A pin on the post does not move its comments.
    pub(super) fn is_pinned(&self) -> bool {
        let post = &self.post;
        self.comment.is_none() && (post.featured_community || post.featured_local || post.stickied)
    }

    /// When the author published it. Another server may have dated it back.
    fn published(&self) -> Option<Timestamp> {
        let comment = self.comment.as_ref();
        parse_time(comment.map_or(&self.post.published, |comment| &comment.published))
    }

    /// Its time in the list.
    pub(super) fn time(&self) -> Option<Timestamp> {
        let listed = self.counts.published.as_deref().and_then(parse_time);
        self.published().max(listed)
    }

    /// Deleted by its author or removed by moderators, alone or with its post or community.
    pub(super) fn is_gone(&self) -> bool {
        let comment = self.comment.as_ref();
        comment.is_some_and(|comment| comment.deleted || comment.removed)
            || self.post.deleted
            || self.post.removed
            || self.creator.deleted
            || self.community.deleted
            || self.community.removed
    }

    /// The post's address, which is the same wherever it is federated to.
    pub(super) fn id(&self, base: &Url) -> String {
        match &self.comment {
            Some(comment) => {
                let ap_id = comment.ap_id.as_deref().unwrap_or_default();
                address(base, ap_id, &format!("comment/{}", comment.id))
            }
            None => {
                let ap_id = self.post.ap_id.as_deref().unwrap_or_default();
                address(base, ap_id, &format!("post/{}", self.post.id))
            }
        }
    }

    /// `None` if it is gone or has no text. `time` is that in the list.
    pub(super) fn post(&self, base: &Url, time: Timestamp) -> Made {
        let author = text::line(&self.creator.name);
        let body = match &self.comment {
            Some(comment) => Some(comment.content.as_str()),
            None => self.post.body.as_deref(),
        };
        let mut body = text::from_markdown(body.unwrap_or_default());
        let alternative = text::block(self.post.alt_text.as_deref().unwrap_or_default());
        if self.comment.is_none() && !body.contains(&alternative) {
            body = text::block(&format!("{body}\n\n{alternative}"));
        }
        let body = Some(body).filter(|body| !body.is_empty());
        let mut title = text::line(&self.post.name);
        if title.is_empty() || self.comment.is_some() {
            // Skip a comment without text.
            let Some(body) = body.as_deref() else {
                return Ok(None);
            };
            let own = text::title_of(body);
            title = if title.is_empty() { own } else { title };
        }
        if self.is_gone() {
            return Ok(None);
        }
        if author.is_empty() {
            return Err("no author");
        }
        let url = self.id(base);
        let community = text::line(&self.community.name);
        Ok(Some(Post {
            post_type: match self.comment {
                Some(_) => PostType::ForumComment,
                None => PostType::ForumLink,
            },
            time: self
                .published()
                .map_or(time, |published| published.min(time)),
            id: url.clone(),
            title: Some(title),
            text: body,
            url,
            subforum: Some(Subforum {
                id: self.community.id.to_string(),
                url: address(base, &self.community.actor_id, &format!("c/{community}")),
                name: community,
            }),
            user: User {
                id: self.creator.id.to_string(),
                url: address(base, &self.creator.actor_id, &format!("u/{author}")),
                name: author,
            },
        }))
    }
}

/// The given address, or else the address of `path` on this instance.
fn address(base: &Url, given: &str, path: &str) -> String {
    match Url::parse(given) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && given.len() <= 2_048 => {
            text::line(given)
        }
        _ => crate::address::below(base, path).to_string(),
    }
}

/// Parses a time; without a zone it means UTC.
fn parse_time(text: &str) -> Option<Timestamp> {
    text.parse().ok().or_else(|| {
        let naive: NaiveDateTime = text.parse().ok()?;
        Some(Timestamp::from(naive.and_utc()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{View, parse_time};
    use domain::Timestamp;
    use url::Url;

    fn view(post: Value) -> View {
        let mut view = json!({
            "post": {"id": 1, "name": "A", "published": "2026-03-01T00:00:00Z"},
            "creator": {"id": 1, "name": "ana"}, "community": {"id": 1, "name": "wood", "actor_id": null},
            "counts": {"published": "2026-11-21T00:00:00Z"},
        });
        for (name, value) in post.as_object().unwrap() {
            view["post"][name] = value.clone();
        }
        View::read(&view, false).unwrap().unwrap()
    }

    #[test]
    fn backdated_post_is_as_new_as_its_place_in_the_list() {
        let view = view(json!({"name": "A", "stickied": null, "ap_id": null}));
        assert_eq!(view.time(), parse_time("2026-11-21T00:00:00Z"));
        let base = Url::parse("https://lemmy.example/").unwrap();
        let post = view.post(&base, Timestamp::now()).unwrap().unwrap();
        assert_eq!(post.time.to_string(), "2026-03-01T00:00:00.000000Z");
    }

    #[test]
    fn alternative_text_is_part_of_the_text() {
        let base = Url::parse("https://lemmy.example/").unwrap();
        for (post, text) in [
            (json!({"alt_text": "A bowl"}), Some("A bowl")),
            (
                json!({"alt_text": "A bowl", "body": "Look"}),
                Some("Look\n\nA bowl"),
            ),
            (json!({"alt_text": null, "body": null}), None),
        ] {
            let found = view(post).post(&base, Timestamp::now()).unwrap().unwrap();
            assert_eq!(found.text.as_deref(), text);
        }
    }

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
