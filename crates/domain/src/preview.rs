//! What a Manager would make of posts: a dry run.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Instructions, Issue, Issues, Match, Post, PostType, Subforum, Timestamp, User, feed::FeedRules,
    instructions, json::Object, manager::SourceType,
};

pub const MAX_POSTS: usize = 100;
const ID_CHARS: std::ops::RangeInclusive<usize> = 1..=2_048;

/// A valid request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    pub posts: Vec<Post>,
    /// In the place of those at work.
    pub instructions: Option<Instructions>,
}

/// What would become of one post.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreviewResult {
    /// Whether it would be a Scan.
    pub value: bool,
    #[serde(rename = "match")]
    pub matched: Match,
    pub reason: PreviewReason,
}

/// What decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum PreviewReason {
    Matched,
    BelowThreshold,
    Require,
    Exclude,
    Muted,
    Language,
    NotWatched,
}

impl Preview {
    /// For a Manager of `source`, where there is one.
    ///
    /// # Errors
    /// Every field that fails.
    pub fn parse(
        body: &Value,
        source: Option<SourceType>,
        feeds: &dyn FeedRules,
    ) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let preview = Object::root(body, &issues).map(|fields| {
            let posts = posts(&fields);
            let draft = fields
                .object("instructions", fields.take("instructions"))
                .and_then(|object| instructions::parse(object, source, feeds));
            fields.finish();
            Self {
                posts,
                instructions: draft,
            }
        });
        issues.into_inner().or(preview.unwrap_or_default())
    }
}

fn posts(fields: &Object<'_>) -> Vec<Post> {
    let items = fields.array("posts", fields.require("posts"));
    let items = items.unwrap_or_default();
    if items.is_empty() && fields.take("posts").is_some_and(Value::is_array) {
        fields.note("posts", Issue::TooShort);
    }
    if items.len() > MAX_POSTS {
        fields.note("posts", Issue::TooMany);
    }
    let posts = items.iter().take(MAX_POSTS).enumerate();
    posts
        .filter_map(|(at, item)| {
            let path = fields.path(&format!("posts[{at}]"));
            Object::at(item, path, fields.issues()).and_then(post)
        })
        .collect()
}

/// A post in the form in which Scans have it.
fn post(fields: Object<'_>) -> Option<Post> {
    let post_type = fields.word::<PostType>("type", fields.require("type"));
    let time = fields
        .text("time", fields.require("time"))
        .and_then(|text| {
            let time: Option<Timestamp> = text.parse().ok();
            if time.is_none() {
                fields.note("time", Issue::InvalidFormat);
            }
            time
        });
    let id = fields.trimmed("id", fields.require("id"), ID_CHARS);
    let title = fields.text("title", fields.take("title"));
    let text = fields.text("text", fields.take("text"));
    let url = fields.text("url", fields.require("url"));
    let subforum = fields
        .object("subforum", fields.take("subforum"))
        .and_then(|fields| place(fields).map(|(id, name, url)| Subforum { id, name, url }));
    let user = fields
        .object("user", fields.require("user"))
        .and_then(|fields| place(fields).map(|(id, name, url)| User { id, name, url }));
    fields.finish();
    Some(Post {
        post_type: post_type?,
        time: time?,
        id: id?,
        title: title.map(str::to_owned),
        text: text.map(str::to_owned),
        url: url?.to_owned(),
        subforum,
        user: user?,
    })
}

fn place(fields: Object<'_>) -> Option<(String, String, String)> {
    let [id, name, url] = ["id", "name", "url"].map(|field| {
        let text = fields.text(field, fields.require(field));
        text.map(str::to_owned)
    });
    fields.finish();
    Some((id?, name?, url?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Preview;
    use crate::{Issue, feed::OneForum, manager::SourceType};

    fn parse(body: &Value) -> Result<Preview, Vec<(String, Issue)>> {
        Preview::parse(body, Some(SourceType::Forum), &OneForum).map_err(|issues| {
            let all = issues.as_slice().iter();
            all.map(|one| (one.field.clone(), one.issue)).collect()
        })
    }

    fn post() -> Value {
        json!({
            "type": "FORUM_LINK", "time": "2026-11-21T01:00:00.000000Z", "id": "hackernews:1", "title": "A kettle",
            "url": "https://a.example/1", "subforum": {"id": "ask", "name": "Ask", "url": "https://a.example/"},
            "user": {"id": "pat", "name": "pat", "url": "https://a.example/pat"}
        })
    }

    #[test]
    fn posts_are_read_as_scans_have_them() {
        let body = json!({"posts": [post()], "instructions": {"include": [{"text": "kettle", "weight": 1}]}});
        let preview = parse(&body).unwrap();
        assert_eq!(serde_json::to_value(&preview.posts[0]).unwrap(), post());
        assert!(preview.instructions.is_some());
    }

    #[test]
    fn every_failing_field_is_named() {
        let mut odd = post();
        odd["type"] = json!("LETTER");
        odd["time"] = json!("now");
        odd["id"] = json!(" ");
        odd["text"] = json!(5);
        odd["user"] = json!({"id": "x", "age": 5});
        odd["colour"] = json!("red");
        let body = json!({
            "posts": [post(), odd, 5], "recent": 10,
            "instructions": {"include": [{"text": "", "weight": 1}]}
        });
        let expected = [
            ("posts[1].type", Issue::InvalidEnum),
            ("posts[1].time", Issue::InvalidFormat),
            ("posts[1].id", Issue::TooShort),
            ("posts[1].text", Issue::InvalidType),
            ("posts[1].user.name", Issue::Required),
            ("posts[1].user.url", Issue::Required),
            ("posts[1].user.age", Issue::UnknownField),
            ("posts[1].colour", Issue::UnknownField),
            ("posts[2]", Issue::InvalidType),
            ("instructions.include[0].text", Issue::TooShort),
            ("recent", Issue::UnknownField),
        ];
        assert_eq!(
            parse(&body).unwrap_err(),
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
    }

    #[test]
    fn there_are_1_to_100_posts() {
        for (posts, issue) in [
            (json!([]), Issue::TooShort),
            (json!({}), Issue::InvalidType),
            (json!(null), Issue::Required),
            (json!(vec![post(); 101]), Issue::TooMany),
        ] {
            let failed = parse(&json!({ "posts": posts })).unwrap_err();
            assert_eq!(failed, [("posts".to_owned(), issue)]);
        }
        assert_eq!(
            parse(&json!({"posts": vec![post(); 100]}))
                .unwrap()
                .posts
                .len(),
            100
        );
    }
}
