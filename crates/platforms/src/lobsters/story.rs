//! One story of a list.

use chrono::DateTime;
use domain::{Post, PostType, Subforum, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use crate::null;
use crate::{address::below, reading::Made, text};

#[derive(Deserialize)]
pub(super) struct Story {
    pub(super) short_id: String,
    created_at: String,
    #[serde(default, deserialize_with = "null::or_default")]
    title: String,
    /// HTML; empty for a link without a text.
    #[serde(default)]
    description: Option<String>,
    /// The Markdown of `description`. Older versions do not have it.
    #[serde(default)]
    description_plain: Option<String>,
    #[serde(default, deserialize_with = "null::or_default")]
    submitter_user: Submitter,
}

/// Older versions have the whole user, with `username`.
#[derive(Deserialize, Default)]
#[serde(untagged)]
enum Submitter {
    Name(String),
    User {
        username: String,
    },
    #[default]
    Missing,
}

impl Story {
    /// # Errors
    /// The reason why the story cannot be read.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let story = Self::deserialize(value).map_err(|error| error.to_string())?;
        if !is_short_id(&story.short_id) {
            return Err("`short_id` is not letters and digits".to_owned());
        }
        Ok(story)
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        let time = DateTime::parse_from_rfc3339(&self.created_at).ok()?;
        Some(Timestamp::from(time.to_utc()))
    }

    pub(super) fn post(&self, platform: &str, base: &Url, time: Timestamp) -> Made {
        let author = text::line(match &self.submitter_user {
            Submitter::Name(name) | Submitter::User { username: name } => name,
            Submitter::Missing => return Err("no submitter"),
        });
        if author.is_empty() {
            return Err("no submitter");
        }
        let body = match self.description.as_deref() {
            Some(html) if !html.trim().is_empty() => text::from_html(html),
            _ => text::from_markdown(self.description_plain.as_deref().unwrap_or_default()),
        };
        let body = text::some_block(&body);
        let mut title = text::line(&self.title);
        if title.is_empty() {
            title = text::title_of(body.as_deref().ok_or("no title")?);
        }
        Ok(Some(Post {
            post_type: PostType::ForumLink,
            time,
            id: format!("{platform}:{}", self.short_id),
            title: Some(title),
            text: body,
            url: below(base, &format!("s/{}", self.short_id)).to_string(),
            // The site: a story has several tags, and belongs to none of them alone.
            subforum: Some(Subforum {
                id: platform.to_owned(),
                name: platform.to_owned(),
                url: base.to_string(),
            }),
            user: User {
                id: author.clone(),
                url: below(base, &format!("~{author}")).to_string(),
                name: author,
            },
        }))
    }
}

pub(super) fn is_short_id(id: &str) -> bool {
    (1..=32).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric())
}
