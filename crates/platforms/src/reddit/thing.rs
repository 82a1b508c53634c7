//! A post or a comment in a listing.

use domain::{Post, PostType, Subforum, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;

use crate::text;

const SITE: &str = "https://www.reddit.com";
const DELETED: &str = "[deleted]";
const REMOVED: &str = "[removed]";

#[derive(Deserialize)]
pub(super) struct Thing {
    pub(super) name: String,
    author: Option<String>,
    author_fullname: Option<String>,
    subreddit: Option<String>,
    subreddit_id: Option<String>,
    created_utc: Option<f64>,
    title: Option<String>,
    /// Markdown.
    selftext: Option<String>,
    permalink: Option<String>,
    removed_by_category: Option<Value>,
    stickied: Option<bool>,
    promoted: Option<bool>,
    /// Markdown. Only comments have this field and the next two.
    body: Option<String>,
    link_title: Option<String>,
    link_id: Option<String>,
}

impl Thing {
    /// `None` for what the listing is not of.
    pub(super) fn read(child: &Value, is_comment: bool) -> serde_json::Result<Option<Self>> {
        let wanted = if is_comment { "t1" } else { "t3" };
        let kind = child["kind"].as_str();
        if kind.is_some_and(|kind| kind != wanted) {
            return Ok(None);
        }
        let thing = Self::any(child)?;
        Ok(Some(thing).filter(|thing| thing.is_comment() == is_comment))
    }

    pub(super) fn any(child: &Value) -> serde_json::Result<Self> {
        let thing = Self::deserialize(&child["data"])?;
        if is_fullname(&thing.name) {
            Ok(thing)
        } else {
            Err(serde::de::Error::custom("no such name"))
        }
    }

    fn is_comment(&self) -> bool {
        self.name.starts_with("t1_")
    }

    /// The id for [`Post::id`].
    pub(super) fn id(&self, platform: &str) -> String {
        format!("{platform}:{}", self.name)
    }

    pub(super) fn time(&self) -> Option<Timestamp> {
        let seconds = self.created_utc.filter(|s| (0.0..1e11).contains(s))?;
        let micros = std::time::Duration::from_secs_f64(seconds).as_micros();
        Timestamp::from_micros(i64::try_from(micros).ok()?)
    }

    /// Returns true if it is at the top regardless of its time.
    pub(super) fn is_pinned(&self) -> bool {
        self.stickied == Some(true) || self.promoted == Some(true)
    }

    /// Returns true if its author, a moderator or an administrator deleted it, or its author's account is
    /// deleted.
    pub(super) fn is_gone(&self) -> bool {
        let text = if self.is_comment() {
            &self.body
        } else {
            &self.selftext
        };
        let marked = |text: &str| matches!(text.trim(), DELETED | REMOVED);
        let author = self.author.as_deref();
        author.is_none_or(|author| author == DELETED)
            || text.as_deref().is_some_and(marked)
            || self.removed_by_category.is_some()
    }

    /// `None` if it is gone, has no text, or is an advertisement.
    pub(super) fn post(&self, platform: &str, time: Timestamp) -> Option<Post> {
        if self.is_gone() || self.promoted == Some(true) {
            return None;
        }
        let author = text::line(self.author.as_deref()?);
        let subreddit = text::line(self.subreddit.as_deref()?);
        if author.is_empty() || subreddit.is_empty() {
            return None;
        }
        let (title, markdown) = if self.is_comment() {
            (&self.link_title, &self.body)
        } else {
            (&self.title, &self.selftext)
        };
        let body = text::from_markdown(markdown.as_deref().unwrap_or_default());
        let body = Some(body).filter(|body| !body.is_empty());
        let mut title = Some(text::line(title.as_deref().unwrap_or_default()));
        title = title.filter(|title| !title.is_empty());
        let post_type = if self.is_comment() {
            body.as_ref()?;
            PostType::ForumComment
        } else {
            if title.is_none() {
                title = Some(text::title_of(body.as_deref()?));
            }
            PostType::ForumLink
        };
        let sub_id = self.subreddit_id.as_deref().filter(|id| is_fullname(id));
        let user_id = self.author_fullname.as_deref().filter(|id| is_fullname(id));
        Some(Post {
            post_type,
            time,
            id: self.id(platform),
            url: self.url(&subreddit),
            title,
            text: body,
            subforum: Some(Subforum {
                id: sub_id.unwrap_or(&subreddit).to_owned(),
                url: format!("{SITE}/r/{subreddit}/"),
                name: subreddit,
            }),
            user: User {
                id: user_id.unwrap_or(&author).to_owned(),
                url: format!("{SITE}/user/{author}"),
                name: author,
            },
        })
    }

    /// The page where people read it.
    fn url(&self, subreddit: &str) -> String {
        let permalink = self.permalink.as_deref().unwrap_or_default();
        let proper = permalink.starts_with('/') && !permalink.starts_with("//");
        if proper && permalink.len() <= 1_024 {
            return format!("{SITE}{}", text::line(permalink));
        }
        let (_, id) = self.name.split_once('_').unwrap_or_default();
        let link = self.link_id.as_deref().unwrap_or_default();
        match link.strip_prefix("t3_").filter(|_| is_fullname(link)) {
            Some(post) => format!("{SITE}/r/{subreddit}/comments/{post}/_/{id}/"),
            None => format!("{SITE}/r/{subreddit}/comments/{id}/"),
        }
    }
}

/// `t3_`, or the prefix of another kind, and a number in base 36.
pub(super) fn is_fullname(text: &str) -> bool {
    let word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    let parts = text.split_once('_');
    text.len() <= 32 && parts.is_some_and(|(kind, id)| word(kind) && word(id))
}
