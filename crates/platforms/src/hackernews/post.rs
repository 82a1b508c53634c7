//! Common form of a Hacker News post, from either API.

use domain::{Post, PostType, Subforum, Timestamp, User};

use crate::{reading::Made, text};

const SITE: &str = "https://news.ycombinator.com";

pub(super) struct Parts<'a> {
    pub(super) platform: &'a str,
    pub(super) id: u64,
    pub(super) author: &'a str,
    pub(super) title: &'a str,
    /// HTML.
    pub(super) text: &'a str,
    /// For a comment, the title is its story's.
    pub(super) is_comment: bool,
    pub(super) is_job: bool,
    pub(super) is_ask: bool,
    pub(super) is_show: bool,
}

impl Parts<'_> {
    /// `None` if all its text is gone: a deleted post has no author either.
    pub(super) fn post(&self, time: Timestamp) -> Made {
        let author = text::line(self.author);
        let body = text::some_block(&text::from_html(self.text));
        let mut title = text::line(&text::decode_entities(self.title));
        if title.is_empty() || self.is_comment {
            // Skip a comment without text.
            let Some(body) = body.as_deref() else {
                let is_incomplete = self.text.is_empty() && !author.is_empty();
                return if is_incomplete {
                    Err("no text")
                } else {
                    Ok(None)
                };
            };
            let own = text::title_of(body);
            title = if title.is_empty() { own } else { title };
        }
        if author.is_empty() {
            return Err("no author");
        }
        Ok(Some(Post {
            post_type: if self.is_comment {
                PostType::ForumComment
            } else {
                PostType::ForumLink
            },
            time,
            id: format!("{}:{}", self.platform, self.id),
            url: format!("{SITE}/item?id={}", self.id),
            subforum: Some(self.subforum(&title)),
            title: Some(title),
            text: body,
            user: User {
                url: format!("{SITE}/user?id={author}"),
                id: author.clone(),
                name: author,
            },
        }))
    }

    fn subforum(&self, title: &str) -> Subforum {
        let begins = |prefix: &str| {
            title
                .get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let (id, name, path) = if self.is_job {
            ("job", "Jobs", "jobs")
        } else if self.is_show || begins("Show HN") {
            ("show", "Show HN", "show")
        } else if self.is_ask || begins("Ask HN") {
            ("ask", "Ask HN", "ask")
        } else {
            ("story", "Hacker News", "newest")
        };
        Subforum {
            id: id.to_owned(),
            name: name.to_owned(),
            url: format!("{SITE}/{path}"),
        }
    }
}
