//! Platforms from settings.

use std::sync::Arc;

use platforms::{Direct, Fetch, Platforms, Settings, SettingsError, Source};
use url::Url;

fn build(settings: &[Settings]) -> Result<Platforms, SettingsError> {
    let guarded: Arc<dyn Fetch> = Arc::new(Direct::new(None).unwrap());
    Platforms::from_settings(settings, &guarded)
}

fn settings(name: &str, kind: &str) -> Settings {
    Settings {
        name: name.into(),
        kind: kind.into(),
        base_url: Some("https://a.example/".parse().unwrap()),
        ..Settings::default()
    }
}

#[test]
fn platforms_are_found_by_their_feeds() {
    let platforms = build(&[
        settings("hackernews", "hackernews"),
        settings("programming.dev", "lemmy"),
        Settings {
            base_url: None,
            source: Some(Source::Network),
            ..settings("blogs", "feed")
        },
    ])
    .unwrap();
    let of = |feed: &str| {
        let platform = platforms.of_feed(&feed.parse().unwrap());
        platform.map(|platform| platform.name.clone())
    };
    assert_eq!(of("hackernews:ask").as_deref(), Some("hackernews"));
    assert_eq!(of("hackernews:best"), None);
    assert_eq!(
        of("programming.dev:c/rust@lemmy.example").as_deref(),
        Some("programming.dev")
    );
    assert_eq!(of("blogs:https://a.example/feed").as_deref(), Some("blogs"));
    assert_eq!(of("blogs:https://user@a.example/feed"), None);
    assert_eq!(of("blogs:ftp://a.example/feed"), None);
    assert_eq!(of("blogs:newest"), None);
    assert_eq!(of("other:newest"), None);
    let newest = platforms.newest_feed("programming.dev").unwrap();
    assert_eq!(newest.as_str(), "programming.dev:newest");
    assert_eq!(platforms.newest_feed("blogs"), None);
}

#[test]
fn wrong_settings_name_the_platform_and_the_problem() {
    let without_url = Settings {
        base_url: None,
        ..settings("lem", "lemmy")
    };
    for (wrong, message) in [
        (
            vec![settings("A B", "lemmy")],
            "platform name `A B` must be",
        ),
        (
            vec![settings("x", "myspace")],
            "platform `x`: unknown kind `myspace`",
        ),
        (
            vec![settings("x", "feed")],
            "platform `x`: source is needed",
        ),
        (vec![without_url], "platform `lem`: base_url is needed"),
        (
            vec![settings("x", "lemmy"); 2],
            "platform `x` is configured twice",
        ),
    ] {
        let error = build(&wrong).err().unwrap().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn comments_are_feeds_that_their_platform_takes() {
    for (kind, what, comments) in [
        ("hackernews", "newest", Some("comments")),
        ("hackernews", "ask", Some("comments")),
        ("hackernews", "comments", None),
        ("lemmy", "newest", Some("comments")),
        ("lemmy", "c/rust@lemmy.ml", Some("c/rust@lemmy.ml/comments")),
        ("lemmy", "c/rust/comments", None),
        ("lobsters", "newest", None),
        ("discourse", "latest", Some("posts")),
        ("discourse", "c/support/6", None),
        ("discourse", "posts", None),
        ("reddit", "r/a1+b2", Some("r/a1+b2/comments")),
        ("bluesky", "jetstream", None),
        ("mastodon", "tag/rust", None),
        ("linkedin", "organization/1", None),
        ("feed", "https://a.example/", None),
    ] {
        let kind = platforms::registry::kind(kind).unwrap();
        let found = (kind.comments_of)(what);
        assert_eq!(found.as_deref(), comments, "{kind:?} {what}");
        if let Some(found) = found {
            assert!(
                (kind.accepts)(None, &found) && (kind.holds_comments)(&found),
                "{kind:?} {found}"
            );
            assert!(!(kind.holds_comments)(what), "{kind:?} {what}");
        }
    }
}

fn page_of(kind: &str, base_url: Option<&Url>, what: &str) -> Url {
    let kind = platforms::registry::kind(kind).unwrap();
    (kind.page_of)(base_url, what).unwrap()
}

#[test]
fn page_address_of_a_feed_reveals_nothing_of_the_operator() {
    let base = Some(
        "https://user:s3cret@a.example/sub?key=s3cret"
            .parse()
            .unwrap(),
    );
    for (kind, what, page) in [
        ("hackernews", "ask", "https://news.ycombinator.com/ask"),
        (
            "hackernews",
            "comments",
            "https://news.ycombinator.com/newcomments",
        ),
        ("lemmy", "newest", "https://a.example/sub/"),
        ("lobsters", "t/c++", "https://a.example/sub/t/c++"),
        ("lemmy", "c/rust/comments", "https://a.example/sub/c/rust"),
        (
            "discourse",
            "c/support/6",
            "https://a.example/sub/c/support/6",
        ),
        ("reddit", "r/a1+b2", "https://www.reddit.com/r/a1+b2/new/"),
        ("bluesky", "jetstream", "https://bsky.app/"),
        ("mastodon", "tag/rust", "https://a.example/sub/tags/rust"),
        (
            "x",
            "search/\"a b\" lang:en",
            "https://x.com/search?q=%22a+b%22+lang%3Aen&f=live",
        ),
        (
            "linkedin",
            "organization/1",
            "https://www.linkedin.com/company/1/posts/",
        ),
        ("facebook", "page/acme", "https://www.facebook.com/acme"),
        ("feed", "newest", "https://a.example/sub"),
    ] {
        let found = page_of(kind, base.as_ref(), what);
        assert_eq!(found.as_str(), page, "{kind} {what}");
    }
    let own = page_of("feed", None, "https://a.example/feed.xml");
    assert_eq!(own.as_str(), "https://a.example/feed.xml");
}

#[test]
fn pages_of_every_platform_are_recognised_by_their_address() {
    let hn = "https://hn.algolia.com/api/v1";
    let forum = "https://forum.example";
    let social = "https://social.example";
    for (kind, base, url, what) in [
        (
            "hackernews",
            hn,
            "https://news.ycombinator.com/item?id=8863",
            Some("newest"),
        ),
        (
            "hackernews",
            hn,
            "https://news.ycombinator.com/newcomments",
            Some("comments"),
        ),
        (
            "hackernews",
            hn,
            "https://ycombinator.com/item?id=8863",
            None,
        ),
        (
            "lemmy",
            forum,
            "https://forum.example/post/7",
            Some("newest"),
        ),
        (
            "lemmy",
            forum,
            "https://forum.example/c/rust%40lemmy.ml?page=2",
            Some("c/rust@lemmy.ml"),
        ),
        ("lemmy", forum, "https://forum.example/c/a%2Fb", None),
        ("lemmy", forum, "https://forum.example/modlog", None),
        (
            "lobsters",
            forum,
            "https://forum.example/s/q2wv3x/kettles",
            Some("newest"),
        ),
        (
            "lobsters",
            forum,
            "https://forum.example/t/c%2B%2B",
            Some("t/c++"),
        ),
        ("lobsters", forum, "https://forum.example/t/a,b", None),
        ("lobsters", forum, "https://forum.example/~ana", None),
        ("lobsters", forum, "https://lobste.rs/", None),
        (
            "discourse",
            forum,
            "https://forum.example/t/which-kettle/123/4",
            Some("latest"),
        ),
        (
            "discourse",
            forum,
            "https://forum.example/c/support/6",
            Some("c/support/6"),
        ),
        (
            "discourse",
            forum,
            "https://forum.example/c/a/b/12",
            Some("c/b/12"),
        ),
        ("discourse", forum, "https://forum.example/u/ana", None),
        ("discourse", forum, "https://other.example/t/x/1", None),
        (
            "reddit",
            "https://oauth.reddit.com",
            "https://old.reddit.com/r/rust/comments/1a/b/",
            Some("r/rust"),
        ),
        (
            "reddit",
            "https://oauth.reddit.com",
            "https://www.reddit.com/user/ana",
            None,
        ),
        (
            "bluesky",
            "wss://jetstream.example",
            "https://bsky.app/profile/ana.example",
            Some("jetstream"),
        ),
        (
            "bluesky",
            "wss://jetstream.example",
            "https://bsky.app/profile/did:plc:a/post/3k",
            Some("jetstream"),
        ),
        (
            "bluesky",
            "wss://jetstream.example",
            "https://bsky.app.example/profile/a",
            None,
        ),
        (
            "mastodon",
            social,
            "https://social.example/tags/Kaffee%C3%A9",
            Some("tag/Kaffeeé"),
        ),
        (
            "mastodon",
            social,
            "https://social.example/@ana/115",
            Some("public"),
        ),
        (
            "mastodon",
            social,
            "https://social.example/@ana@other.example",
            Some("public"),
        ),
        ("mastodon", social, "https://social.example/about", None),
        ("mastodon", social, "https://other.example/@ana", None),
        (
            "x",
            "https://api.x.com",
            "https://x.com/ana",
            Some("search/from:ana"),
        ),
        (
            "x",
            "https://api.x.com",
            "https://twitter.com/ana/status/1",
            Some("search/from:ana"),
        ),
        (
            "x",
            "https://api.x.com",
            "https://x.com/search?q=%22acme%20kettle%22&f=live",
            Some("search/\"acme kettle\""),
        ),
        (
            "x",
            "https://api.x.com",
            "https://x.com/hashtag/kettle",
            Some("search/#kettle"),
        ),
        ("x", "https://api.x.com", "https://x.com/home", None),
        ("x", "https://api.x.com", "https://x.com/search?q=%20", None),
        ("x", "https://api.x.com", "https://netflix.com/ana", None),
        (
            "linkedin",
            "https://api.linkedin.com",
            "https://www.linkedin.com/company/2414183/posts/",
            Some("organization/2414183"),
        ),
        (
            "linkedin",
            "https://api.linkedin.com",
            "https://www.linkedin.com/company/acme/",
            None,
        ),
        (
            "linkedin",
            "https://api.linkedin.com",
            "https://www.linkedin.com/in/ana/",
            None,
        ),
        (
            "facebook",
            "https://graph.facebook.com",
            "https://www.facebook.com/acme.kettles/posts/1",
            Some("page/acme.kettles"),
        ),
        (
            "facebook",
            "https://graph.facebook.com",
            "https://www.facebook.com/profile.php?id=61550",
            Some("page/61550"),
        ),
        (
            "facebook",
            "https://graph.facebook.com",
            "https://www.facebook.com/people/Acme/61550/",
            Some("page/61550"),
        ),
        (
            "facebook",
            "https://graph.facebook.com",
            "https://www.facebook.com/groups/1",
            None,
        ),
        (
            "facebook",
            "https://graph.facebook.com",
            "https://www.facebook.com/",
            None,
        ),
    ] {
        let kind = platforms::registry::kind(kind).unwrap();
        let base = Url::parse(base).ok();
        let found = (kind.feed_of)(base.as_ref(), &Url::parse(url).unwrap());
        let found = found.filter(|found| (kind.accepts)(base.as_ref(), found));
        assert_eq!(found.as_deref(), what, "{url}");
    }
}
