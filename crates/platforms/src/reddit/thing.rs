//! A post or a comment in a listing.

use domain::{Post, PostType, Subforum, Timestamp, User};
use serde::Deserialize;
use serde_json::Value;

use crate::{reading::Made, text};

const SITE: &str = "https://www.reddit.com";
const DELETED: &str = "[deleted]";
/// Notices that replace a text or a title that is gone, in lower case.
const NOTICES: [&str; 7] = [
    DELETED,
    "[removed]",
    "[removed by reddit]",
    "[ removed by reddit ]",
    "[removed by moderator]",
    "[ removed by moderator ]",
    "[deleted by user]",
];

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
    /// The post that a cross-post shows; its first element is the original.
    crosspost_parent_list: Option<Vec<Value>>,
    gallery_data: Option<Value>,
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
        let thing = Self::parse(child)?;
        Ok(Some(thing).filter(|thing| thing.is_comment() == is_comment))
    }

    /// Parses a post or a comment.
    pub(super) fn parse(child: &Value) -> serde_json::Result<Self> {
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
    /// deleted. An answer without an author says nothing about that.
    pub(super) fn is_gone(&self) -> bool {
        let text = if self.is_comment() {
            &self.body
        } else {
            &self.selftext
        };
        let marked = |text: &str| NOTICES.contains(&text.trim().to_ascii_lowercase().as_str());
        let title = self.title.as_deref().filter(|_| !self.is_comment());
        self.author.as_deref() == Some(DELETED)
            || text.as_deref().is_some_and(marked)
            || title.is_some_and(marked)
            || self.removed_by_category.is_some()
    }

    /// `None` if it is gone, has no text, or is an advertisement.
    pub(super) fn post(&self, platform: &str, time: Timestamp) -> Made {
        if self.is_gone() || self.promoted == Some(true) {
            return Ok(None);
        }
        let author = text::line(self.author.as_deref().unwrap_or_default());
        let subreddit = text::line(self.subreddit.as_deref().unwrap_or_default());
        if author.is_empty() {
            return Err("no author");
        }
        if subreddit.is_empty() {
            return Err("no subreddit");
        }
        let (title, markdown) = if self.is_comment() {
            (&self.link_title, &self.body)
        } else {
            (&self.title, &self.selftext)
        };
        let mut body = text::from_markdown(markdown.as_deref().unwrap_or_default());
        if body.is_empty() && !self.is_comment() {
            body = self.shown_below();
        }
        let body = Some(body).filter(|body| !body.is_empty());
        let mut title = Some(text::line(title.as_deref().unwrap_or_default()));
        title = title.filter(|title| !title.is_empty());
        let post_type = if self.is_comment() {
            if body.is_none() {
                let text = self.body.as_deref();
                return text.map(|_| None).ok_or("no text");
            }
            PostType::ForumComment
        } else {
            if title.is_none() {
                let text = body.as_deref().ok_or("no title")?;
                title = Some(text::title_of(text));
            }
            PostType::ForumLink
        };
        let sub_id = self.subreddit_id.as_deref().filter(|id| is_fullname(id));
        let user_id = self.author_fullname.as_deref().filter(|id| is_fullname(id));
        Ok(Some(Post {
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
        }))
    }

    /// The text that readers see below a title if the post has none: the original's, or the captions of pictures.
    fn shown_below(&self) -> String {
        let original = self
            .crosspost_parent_list
            .as_ref()
            .and_then(|list| list.first());
        let text = original.and_then(|original| original["selftext"].as_str());
        let text =
            text.filter(|text| !NOTICES.contains(&text.trim().to_ascii_lowercase().as_str()));
        let gallery = self.gallery_data.as_ref();
        let gallery = gallery.or(original.map(|original| &original["gallery_data"]));
        let items = gallery.and_then(|data| data["items"].as_array());
        let captions = items
            .into_iter()
            .flatten()
            .filter_map(|item| item["caption"].as_str());
        let parts = text
            .map(text::from_markdown)
            .into_iter()
            .chain(captions.map(text::block));
        text::block(&parts.collect::<Vec<_>>().join("\n"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn post(data: Value) -> Option<Post> {
        let mut child = json!({"kind": "t3", "data": {"name": "t3_x1", "author": "ana", "subreddit": "wood", "title": "Help"}});
        for (name, value) in data.as_object().unwrap() {
            child["data"][name] = value.clone();
        }
        let thing = Thing::read(&child, false).unwrap().unwrap();
        thing.post("reddit", Timestamp::now()).unwrap()
    }

    #[test]
    fn cross_post_shows_the_text_of_the_original() {
        for (data, text) in [
            (
                json!({"selftext": "", "crosspost_parent_list": [{"selftext": "The *veneer* lifts", "author": "bo"}]}),
                Some("The veneer lifts"),
            ),
            (
                json!({"selftext": "Mine", "crosspost_parent_list": [{"selftext": "Theirs"}]}),
                Some("Mine"),
            ),
            (
                json!({"selftext": null, "crosspost_parent_list": [{"selftext": "[removed]"}]}),
                None,
            ),
            (json!({"crosspost_parent_list": []}), None),
            (
                json!({"selftext": "", "gallery_data": {"items": [{"caption": "Before"}, {"caption": null}, {"caption": "After"}]}}),
                Some("Before\nAfter"),
            ),
        ] {
            let found = post(data.clone()).unwrap();
            assert_eq!(found.text.as_deref(), text, "{data}");
            assert_eq!(found.user.name, "ana");
        }
    }

    #[test]
    fn only_a_deleted_author_is_a_sign_of_a_deleted_post() {
        for (author, is_gone) in [
            (json!("ana"), false),
            (json!("[deleted]"), true),
            (json!(null), false),
        ] {
            let data =
                json!({"name": "t3_x1", "author": author, "subreddit": "wood", "title": "Help"});
            let thing = Thing::parse(&json!({"kind": "t3", "data": data})).unwrap();
            assert_eq!(thing.is_gone(), is_gone, "{author}");
        }
    }

    #[test]
    fn notices_of_removal_are_no_posts() {
        for data in [
            json!({"selftext": "[removed]"}),
            json!({"selftext": "[deleted]"}),
            json!({"selftext": "[ Removed by Reddit ]"}),
            json!({"title": "[deleted by user]", "selftext": ""}),
            json!({"title": "[ Removed by moderator ]"}),
        ] {
            assert_eq!(post(data.clone()), None, "{data}");
        }
    }
}
