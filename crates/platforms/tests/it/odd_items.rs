//! One item of an answer cannot be read: the others are given, and it is reported once.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use async_trait::async_trait;
use domain::Timestamp;
use platform_simulator::{InMemory, NewPost, reddit};
use platforms::{
    Adapter, Cursor, Fetch, FetchError, FetchLimits, Fetched, PollLimits, Unlimited,
    discourse::Discourse, facebook::Facebook, feed::FeedAdapter, hackernews::HackerNews,
    lemmy::Lemmy, linkedin::LinkedIn, lobsters::Lobsters, mastodon::Mastodon, reddit::Reddit, x::X,
};
use url::Url;

use crate::platform::always;

/// Wrong types for each platform, a number that no program can hold, and a lone surrogate.
const ODD: &str = r#"{"id": 77, "created_at": 5, "odd": -1e999, "data": {"name": "t3_odd", "title": 7, "a": "\ud83d"}}"#;

/// The answers of the simulated platforms, with [`ODD`] in front of each list that has an item.
struct WithOdd(Arc<InMemory>);

fn with_odd(body: &str) -> String {
    if body.starts_with("[{") {
        return format!("[{ODD},{}", &body[1..]);
    }
    if body.starts_with('[') && body.len() > 2 {
        return format!(r#"[null, "x", {}"#, &body[1..]);
    }
    let lists = [
        "posts",
        "comments",
        "hits",
        "children",
        "topics",
        "latest_posts",
        "data",
    ];
    let starts = lists.map(|name| format!(r#""{name}":[{{"#));
    let start = starts
        .iter()
        .filter_map(|start| Some(body.find(start)? + start.len() - 1));
    match start.min() {
        Some(at) => format!("{}{ODD},{}", &body[..at], &body[at..]),
        None => body.to_owned(),
    }
}

#[async_trait]
impl Fetch for WithOdd {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let mut answer = self.0.get(url, headers, limits).await?;
        // Single items and topics are as they are.
        let single = ["/item/", "/t/", "categories", "instance"];
        if !single.iter().any(|part| url.path().contains(part)) {
            let body = String::from_utf8(answer.body).unwrap();
            answer.body = with_odd(&body).into_bytes();
        }
        Ok(answer)
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.0.post_form(url, headers, form, limits).await
    }
}

/// The fields with the names of authors.
const NAMES: &[&str] = &["author", "by", "submitter_user", "username", "acct"];

/// The answers of the simulated platforms, with some fields renamed while it is true.
struct Renamed {
    world: Arc<InMemory>,
    is_renamed: Arc<AtomicBool>,
    fields: &'static [&'static str],
}

#[async_trait]
impl Fetch for Renamed {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let mut answer = self.world.get(url, headers, limits).await?;
        if self.is_renamed.load(Ordering::Relaxed) {
            let mut body = String::from_utf8(answer.body).unwrap();
            for name in self.fields {
                body = body.replace(&format!(r#""{name}":"#), r#""renamed":"#);
            }
            // Lemmy's authors and communities have the same fields.
            body = body.replace(r#""name":"ana""#, r#""name":"""#);
            answer.body = body.into_bytes();
        }
        Ok(answer)
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.world.post_form(url, headers, form, limits).await
    }
}

fn url(path: &str) -> Url {
    format!("http://simulated.example/{path}").parse().unwrap()
}

/// Polls twice. The posts that were given, and what could not be read in each poll.
async fn twice(adapter: &dyn Adapter, what: &str) -> (usize, [usize; 2]) {
    let limits = PollLimits {
        since: Some(Timestamp::now().minus(std::time::Duration::from_hours(24))),
        ..PollLimits::default()
    };
    let first = adapter.poll(what, None, &limits).await.unwrap();
    let cursor = Cursor::from_json(&first.cursor.to_json());
    let second = adapter.poll(what, cursor.as_ref(), &limits).await.unwrap();
    for odd in first.skipped.iter().chain(&second.skipped) {
        assert!(odd.id.is_some() && !odd.reason.is_empty(), "{odd:?}");
    }
    (
        first.posts.len() + second.posts.len(),
        [first.skipped.len(), second.skipped.len()],
    )
}

#[tokio::test]
async fn an_odd_item_of_a_simulated_platform_is_set_aside_once() {
    let world = InMemory::new();
    let fetch = || Arc::new(WithOdd(Arc::clone(&world))) as Arc<dyn Fetch>;
    let search = url("hackernews/api/v1");
    let lists = Some(url("hackernews/v0"));
    let reddit = Reddit::new(
        "reddit".into(),
        url("reddit"),
        reddit::CLIENT_ID.to_owned(),
        reddit::CLIENT_SECRET.to_owned().into(),
        fetch(),
    );
    let discourse = Discourse::new("discourse".into(), url("discourse"), None, fetch());
    let x = X::new(
        url("x"),
        "good".to_owned().into(),
        fetch(),
        Arc::new(Unlimited),
    );
    let all: [(&str, &str, Box<dyn Adapter>); 7] = [
        (
            "hackernews",
            "newest",
            Box::new(HackerNews::new("hackernews".into(), search, lists, fetch())),
        ),
        (
            "lemmy",
            "newest",
            Box::new(Lemmy::new(url("lemmy"), fetch())),
        ),
        (
            "lobsters",
            "newest",
            Box::new(Lobsters::new("lobsters".into(), url("lobsters"), fetch())),
        ),
        ("discourse", "latest", Box::new(discourse)),
        ("reddit", "r/rust", Box::new(reddit)),
        (
            "mastodon",
            "tag/rust",
            Box::new(Mastodon::new(url("mastodon"), None, fetch())),
        ),
        ("x", "search/kettle", Box::new(x)),
    ];
    for (platform, what, adapter) in all {
        world.publish(vec![NewPost {
            platform: platform.into(),
            community: (platform == "reddit").then(|| "rust".into()),
            title: "A kettle #rust".into(),
            text: Some("A kettle #rust".into()),
            author: "ana".into(),
            ..NewPost::default()
        }]);
        assert_eq!(twice(&*adapter, what).await, (1, [1, 0]), "{platform}");
    }
}

#[tokio::test]
async fn items_without_an_author_are_set_aside_once_and_new_when_they_have_one() {
    let world = InMemory::new();
    let nameless = Arc::new(AtomicBool::new(true));
    let fetch = || -> Arc<dyn Fetch> {
        Arc::new(Renamed {
            world: Arc::clone(&world),
            is_renamed: Arc::clone(&nameless),
            fields: NAMES,
        })
    };
    let search = url("hackernews/api/v1");
    let lists = Some(url("hackernews/v0"));
    let reddit = Reddit::new(
        "reddit".into(),
        url("reddit"),
        reddit::CLIENT_ID.to_owned(),
        reddit::CLIENT_SECRET.to_owned().into(),
        fetch(),
    );
    let hackernews = HackerNews::new("hackernews".into(), search, lists, fetch());
    let lobsters = Lobsters::new("lobsters".into(), url("lobsters"), fetch());
    let discourse = Discourse::new("discourse".into(), url("discourse"), None, fetch());
    let mastodon = Mastodon::new(url("mastodon"), None, fetch());
    let lemmy = Lemmy::new(url("lemmy"), fetch());
    let all: [(&str, &str, Box<dyn Adapter>); 6] = [
        ("hackernews", "newest", Box::new(hackernews)),
        ("lemmy", "newest", Box::new(lemmy)),
        ("lobsters", "newest", Box::new(lobsters)),
        ("discourse", "latest", Box::new(discourse)),
        ("reddit", "r/rust", Box::new(reddit)),
        ("mastodon", "tag/rust", Box::new(mastodon)),
    ];
    let since = Timestamp::now().minus(std::time::Duration::from_hours(24));
    let limits = PollLimits {
        since: Some(since),
        ..PollLimits::default()
    };
    for (platform, what, adapter) in all {
        world.publish(vec![NewPost {
            platform: platform.into(),
            community: (platform == "reddit").then(|| "rust".into()),
            title: "A kettle #rust".into(),
            text: Some("A kettle #rust".into()),
            author: "ana".into(),
            ..NewPost::default()
        }]);
        nameless.store(true, Ordering::Relaxed);
        let mut cursor = None;
        for poll in 0..3 {
            let polled = adapter.poll(what, cursor.as_ref(), &limits).await.unwrap();
            assert!(polled.posts.is_empty(), "{platform}");
            assert!(polled.deleted.is_empty(), "{platform}");
            let reasons = polled.skipped.iter().map(|one| one.reason.as_str());
            let reasons: Vec<_> = reasons.collect();
            let expected: &[&str] = match (poll, platform) {
                (0, "lobsters") => &["no submitter"],
                (0, _) => &["no author"],
                _ => &[],
            };
            assert_eq!(reasons, expected, "{platform}");
            cursor = Cursor::from_json(&polled.cursor.to_json());
        }
        nameless.store(false, Ordering::Relaxed);
        // Topics are read one by one, and this one again by a search for late posts.
        if platform == "discourse" {
            cursor = cursor.map(|cursor| cursor.reading_back_to(since));
        }
        let polled = adapter.poll(what, cursor.as_ref(), &limits).await.unwrap();
        assert_eq!(polled.posts.len(), 1, "{platform}");
    }
}

#[tokio::test]
async fn items_without_a_text_are_set_aside_once_and_new_when_they_have_one() {
    let world = InMemory::new();
    let is_renamed = Arc::new(AtomicBool::new(true));
    let fetch = Arc::new(Renamed {
        world: Arc::clone(&world),
        is_renamed: Arc::clone(&is_renamed),
        fields: &["comment_text", "content"],
    });
    let story = NewPost {
        platform: "hackernews".into(),
        title: "A story".into(),
        ..NewPost::default()
    };
    let story = world.publish(vec![story])[0].id;
    let search = url("hackernews/api/v1");
    let hackernews = HackerNews::new("hackernews".into(), search, None, Arc::clone(&fetch) as _);
    let mastodon = Mastodon::new(url("mastodon"), None, fetch);
    let all: [(&str, &str, Box<dyn Adapter>); 2] = [
        ("hackernews", "comments", Box::new(hackernews)),
        ("mastodon", "tag/rust", Box::new(mastodon)),
    ];
    let since = Timestamp::now().minus(std::time::Duration::from_hours(24));
    let limits = PollLimits {
        since: Some(since),
        ..PollLimits::default()
    };
    for (platform, what, adapter) in all {
        world.publish(vec![NewPost {
            platform: platform.into(),
            parent: (platform == "hackernews").then_some(story),
            title: "A kettle #rust".into(),
            text: Some("A kettle #rust".into()),
            author: "ana".into(),
            ..NewPost::default()
        }]);
        is_renamed.store(true, Ordering::Relaxed);
        let mut cursor = None;
        for set_aside in [1, 0, 0] {
            let polled = adapter.poll(what, cursor.as_ref(), &limits).await.unwrap();
            assert!(polled.posts.is_empty(), "{platform}");
            assert_eq!(polled.skipped.len(), set_aside, "{platform}");
            cursor = Cursor::from_json(&polled.cursor.to_json());
        }
        is_renamed.store(false, Ordering::Relaxed);
        let polled = adapter.poll(what, cursor.as_ref(), &limits).await.unwrap();
        assert_eq!(polled.posts.len(), 1, "{platform}");
    }
}

#[tokio::test]
async fn an_odd_item_of_a_recorded_answer_is_set_aside_once() {
    let now = Timestamp::now().micros() / 1_000;
    let linkedin = format!(
        r#"{{"paging": {{}}, "elements": [{ODD}, {{"id": "urn:li:share:1", "commentary": "a", "createdAt": {now}}}]}}"#
    );
    let linkedin = LinkedIn::new(
        url(""),
        "good".into(),
        "202610".into(),
        always(200, linkedin),
    );
    assert_eq!(twice(&linkedin, "organization/12").await, (1, [1, 0]));

    let facebook = format!(r#"{{"data": [{ODD}, {{"id": "1_2", "message": "a"}}]}}"#);
    let facebook = Facebook::new(
        "f".into(),
        url(""),
        "good".into(),
        None,
        always(200, facebook),
    );
    assert_eq!(twice(&facebook, "page/1").await, (1, [1, 0]));

    let time = Timestamp::now();
    let feed = format!(
        r#"{{"version": "https://jsonfeed.org/version/1.1", "title": "a", "items": [{ODD},
            {{"id": "1", "title": "a", "content_text": "b", "date_published": "{time}"}}]}}"#
    );
    let feed = FeedAdapter::new(
        "blog".into(),
        platforms::Source::Forum,
        Some(url("")),
        always(200, feed),
    );
    assert_eq!(twice(&feed, "newest").await, (1, [1, 0]));
}
