//! A dry run of a Manager on posts.

use std::cell::RefCell;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Instructions, Issue, Issues, Match, Post, PostType, Subforum, Timestamp, User,
    feed::FeedRules,
    instructions,
    json::Object,
    manager::{SourceType, parse_source},
    replay::parse_time,
    screen::{self, Screen},
};

pub const MAX_RECENT: u32 = 100;
pub const MAX_URLS: usize = 10;
const URL_CHARS: std::ops::RangeInclusive<usize> = 1..=2_048;

pub const MAX_POSTS: usize = 100;
const ID_CHARS: std::ops::RangeInclusive<usize> = 1..=2_048;

/// A valid request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preview {
    pub subject: Subject,
    /// Used instead of the active ones.
    pub instructions: Option<Instructions>,
}

/// A valid request to try a Manager that does not exist. Its preview has instructions.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewDraft {
    pub source: SourceType,
    pub screen: Screen,
    pub preview: Preview,
}

/// Selection of posts.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    Given(Vec<Post>),
    /// The newest posts from the Manager's feeds.
    Recent(Recent),
    /// Posts that were read, by their addresses.
    Urls(Vec<String>),
}

impl Default for Subject {
    fn default() -> Self {
        Self::Given(Vec::new())
    }
}

/// A number of recent posts, and bounds on their times. The end is excluded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recent {
    pub count: u32,
    pub start_time: Option<Timestamp>,
    pub end_time: Option<Timestamp>,
}

/// Result for one post.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PreviewResult {
    /// The address in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Set if the request did not contain the post.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post: Option<Post>,
    /// True if it would become a Scan.
    pub value: bool,
    #[serde(rename = "match")]
    pub matched: Match,
    pub reason: PreviewReason,
}

/// Deciding reason.
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
    /// No such post was read recently.
    NeverSeen,
}

impl Preview {
    /// Parses a preview for a Manager of `source`.
    ///
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value, source: SourceType, feeds: &dyn FeedRules) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let preview = Object::root(body, &issues).map(|fields| {
            let preview = preview(&fields, Some(source), feeds);
            fields.finish();
            preview
        });
        issues.into_inner().or(preview.unwrap_or_default())
    }
}

impl PreviewDraft {
    /// # Errors
    /// Every field that fails.
    pub fn parse(body: &Value, feeds: &dyn FeedRules) -> Result<Self, Issues> {
        let issues = RefCell::default();
        let draft = Object::root(body, &issues).and_then(|fields| {
            let source = parse_source(&fields);
            let (mutes, languages) = (screen::mutes(&fields), screen::languages(&fields));
            let kinds = screen::kinds(&fields);
            fields.require("instructions");
            let preview = preview(&fields, source, feeds);
            fields.finish();
            Some(Self {
                source: source?,
                screen: Screen {
                    mutes: mutes?,
                    languages: languages?,
                    kinds: kinds?,
                    ..Screen::default()
                },
                preview,
            })
        });
        // `None` only after an issue was reported.
        issues.into_inner().or(())?;
        draft.ok_or_else(|| Issues::one("body", Issue::InvalidFormat))
    }
}

/// Parses the fields that both requests have.
fn preview(fields: &Object<'_>, source: Option<SourceType>, feeds: &dyn FeedRules) -> Preview {
    let subject = subject(fields);
    let instructions = fields
        .object("instructions", fields.take("instructions"))
        .and_then(|object| instructions::parse(object, source, feeds));
    Preview {
        subject,
        instructions,
    }
}

/// Exactly one of the three.
fn subject(fields: &Object<'_>) -> Subject {
    let [posts_given, recent_given, urls_given] =
        ["posts", "recent", "urls"].map(|field| fields.take(field).is_some());
    for (field, given) in [
        ("recent", recent_given && posts_given),
        ("urls", urls_given && (posts_given || recent_given)),
    ] {
        if given {
            fields.report(field, Issue::Conflict);
        }
    }
    for field in ["startTime", "endTime"] {
        if fields.take(field).is_some() && !recent_given {
            fields.report(field, Issue::Conflict);
        }
    }
    if posts_given || !(recent_given || urls_given) {
        return Subject::Given(posts(fields));
    }
    if let Some(value) = fields.take("recent") {
        return Subject::Recent(recent(fields, value));
    }
    Subject::Urls(urls(fields))
}

fn recent(fields: &Object<'_>, count: &Value) -> Recent {
    let count = fields.whole_number("recent", count, 1..=MAX_RECENT);
    let start_time = parse_time(fields, "startTime", fields.take("startTime"));
    let end_time = parse_time(fields, "endTime", fields.take("endTime"));
    if start_time.is_some_and(|start| end_time.is_some_and(|end| end < start)) {
        fields.report("endTime", Issue::OutOfRange);
    }
    Recent {
        count: count.unwrap_or_default(),
        start_time,
        end_time,
    }
}

fn urls(fields: &Object<'_>) -> Vec<String> {
    let items = fields
        .array("urls", fields.take("urls"))
        .unwrap_or_default();
    if items.is_empty() && fields.take("urls").is_some_and(Value::is_array) {
        fields.report("urls", Issue::TooShort);
    }
    if items.len() > MAX_URLS {
        fields.report("urls", Issue::TooMany);
    }
    let urls = items.iter().take(MAX_URLS).enumerate();
    urls.filter_map(|(at, item)| {
        let url = item.as_str().map(str::trim).ok_or(Issue::InvalidType);
        let url = url.and_then(|url| match url.chars().count() {
            count if count < *URL_CHARS.start() => Err(Issue::TooShort),
            count if count > *URL_CHARS.end() => Err(Issue::TooLong),
            _ => Ok(url.to_owned()),
        });
        url.map_err(|issue| fields.report(&format!("urls[{at}]"), issue))
            .ok()
    })
    .collect()
}

fn posts(fields: &Object<'_>) -> Vec<Post> {
    let items = fields.array("posts", fields.require("posts"));
    let items = items.unwrap_or_default();
    if items.is_empty() && fields.take("posts").is_some_and(Value::is_array) {
        fields.report("posts", Issue::TooShort);
    }
    if items.len() > MAX_POSTS {
        fields.report("posts", Issue::TooMany);
    }
    let posts = items.iter().take(MAX_POSTS).enumerate();
    posts
        .filter_map(|(at, item)| {
            let path = fields.path(&format!("posts[{at}]"));
            Object::at(item, path, fields.issues()).and_then(post)
        })
        .collect()
}

/// A post in the same form as in Scans.
fn post(fields: Object<'_>) -> Option<Post> {
    let post_type = fields.word::<PostType>("type", fields.require("type"));
    let time = fields
        .text("time", fields.require("time"))
        .and_then(|text| {
            let time: Option<Timestamp> = text.parse().ok();
            if time.is_none() {
                fields.report("time", Issue::InvalidFormat);
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

    use super::{Preview, PreviewDraft, Recent, Subject};
    use crate::{Issue, Issues, feed::OneForum, manager::SourceType};

    fn named(issues: &Issues) -> Vec<(String, Issue)> {
        let all = issues.as_slice().iter();
        all.map(|one| (one.field.clone(), one.issue)).collect()
    }

    fn parse(body: &Value) -> Result<Preview, Vec<(String, Issue)>> {
        Preview::parse(body, SourceType::Forum, &OneForum).map_err(|issues| named(&issues))
    }

    fn post() -> Value {
        json!({
            "type": "FORUM_LINK", "time": "2026-11-21T01:00:00.000000Z", "id": "hackernews:1", "title": "A kettle",
            "url": "https://a.example/1", "subforum": {"id": "ask", "name": "Ask", "url": "https://a.example/"},
            "user": {"id": "pat", "name": "pat", "url": "https://a.example/pat"}
        })
    }

    #[test]
    fn preview_posts_have_the_form_of_scans() {
        let body = json!({"posts": [post()], "instructions": {"include": [{"text": "kettle", "weight": 1}]}});
        let preview = parse(&body).unwrap();
        let Subject::Given(posts) = preview.subject else {
            panic!("{:?}", preview.subject)
        };
        assert_eq!(serde_json::to_value(&posts[0]).unwrap(), post());
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
            "posts": [post(), odd, 5], "newest": 10,
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
            ("newest", Issue::UnknownField),
        ];
        assert_eq!(
            parse(&body).unwrap_err(),
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
    }

    #[test]
    fn draft_has_the_fields_of_a_manager() {
        let body = json!({
            "source": {"type": "FORUM"}, "mutes": [{"type": "TERM", "value": "jobs"}], "languages": ["de"],
            "kinds": ["COMMENT"], "instructions": {"exclude": ["x"]}, "recent": 5
        });
        let draft = PreviewDraft::parse(&body, &OneForum).unwrap();
        assert_eq!(draft.source, SourceType::Forum);
        assert_eq!(draft.screen.mutes.len(), 1);
        assert_eq!(
            serde_json::to_value(&draft.screen.kinds).unwrap(),
            body["kinds"]
        );
        assert!(draft.preview.instructions.is_some());

        let body = json!({"mutes": 5, "recent": 0, "enable": true});
        let failed = named(&PreviewDraft::parse(&body, &OneForum).unwrap_err());
        let expected = [
            ("source", Issue::Required),
            ("mutes", Issue::InvalidType),
            ("instructions", Issue::Required),
            ("recent", Issue::OutOfRange),
            ("enable", Issue::UnknownField),
        ];
        assert_eq!(
            failed,
            expected.map(|(field, issue)| (field.to_owned(), issue))
        );
    }

    #[test]
    fn preview_takes_1_to_100_posts() {
        for (posts, issue) in [
            (json!([]), Issue::TooShort),
            (json!({}), Issue::InvalidType),
            (json!(null), Issue::Required),
            (json!(vec![post(); 101]), Issue::TooMany),
        ] {
            let failed = parse(&json!({ "posts": posts })).unwrap_err();
            assert_eq!(failed, [("posts".to_owned(), issue)]);
        }
        let most = parse(&json!({"posts": vec![post(); 100]})).unwrap().subject;
        assert!(matches!(most, Subject::Given(posts) if posts.len() == 100));
    }

    #[test]
    fn preview_posts_have_exactly_one_origin() {
        let urls = |count: usize| vec!["https://a.example/1"; count];
        let newest = Recent {
            count: 100,
            ..Recent::default()
        };
        assert_eq!(
            parse(&json!({"recent": 100})).unwrap().subject,
            Subject::Recent(newest)
        );
        let (start, end) = ("2026-11-20T00:00:00Z", "2026-11-21T00:00:00Z");
        let bounded = json!({"recent": 100, "startTime": start, "endTime": end});
        let expected = Recent {
            start_time: start.parse().ok(),
            end_time: end.parse().ok(),
            ..newest
        };
        assert_eq!(parse(&bounded).unwrap().subject, Subject::Recent(expected));
        let by_url = parse(&json!({"urls": urls(10)})).unwrap().subject;
        assert!(matches!(by_url, Subject::Urls(urls) if urls.len() == 10));
        for (body, field, issue) in [
            (json!({}), "posts", Issue::Required),
            (
                json!({"recent": 1, "posts": [post()]}),
                "recent",
                Issue::Conflict,
            ),
            (
                json!({"recent": 1, "urls": urls(1)}),
                "urls",
                Issue::Conflict,
            ),
            (
                json!({"urls": urls(1), "posts": [post()]}),
                "urls",
                Issue::Conflict,
            ),
            (json!({"recent": 0}), "recent", Issue::OutOfRange),
            (json!({"recent": 101}), "recent", Issue::OutOfRange),
            (json!({"recent": "all"}), "recent", Issue::InvalidType),
            (
                json!({"recent": 1, "startTime": end, "endTime": start}),
                "endTime",
                Issue::OutOfRange,
            ),
            (
                json!({"recent": 1, "startTime": "monday"}),
                "startTime",
                Issue::InvalidFormat,
            ),
            (
                json!({"urls": urls(1), "endTime": end}),
                "endTime",
                Issue::Conflict,
            ),
            (json!({"urls": []}), "urls", Issue::TooShort),
            (json!({"urls": urls(11)}), "urls", Issue::TooMany),
            (json!({"urls": "x"}), "urls", Issue::InvalidType),
            (json!({"urls": [" "]}), "urls[0]", Issue::TooShort),
            (json!({"urls": [5]}), "urls[0]", Issue::InvalidType),
            (
                json!({"urls": ["x".repeat(2_049)]}),
                "urls[0]",
                Issue::TooLong,
            ),
        ] {
            assert_eq!(
                parse(&body).unwrap_err(),
                [(field.to_owned(), issue)],
                "{body}"
            );
        }
    }
}
