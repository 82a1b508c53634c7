//! Platforms from settings.

use std::sync::Arc;

use platforms::{Direct, Fetch, Platforms, Settings, SettingsError, Source};

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
fn the_form_of_a_feed_is_known_without_an_adapter() {
    for kind in platforms::registry::KINDS {
        for base_url in [settings("p", kind).base_url, None] {
            let platform = build(&[Settings {
                base_url: base_url.clone(),
                source: (kind == "feed").then_some(Source::Forum),
                ..settings("p", kind)
            }]);
            let Ok(platforms) = platform else { continue };
            for what in [
                "newest",
                "ask",
                "oldest",
                "c/rust",
                "c/",
                "https://a.example/feed.xml",
                "ftp://a.example/",
            ] {
                let accepted = platforms.get("p").unwrap().adapter.accepts(what);
                let told = platforms::registry::accepts(kind, base_url.as_ref(), what);
                assert_eq!(told, accepted, "{kind} {base_url:?} {what}");
            }
        }
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
    use platforms::registry::{accepts, comments_of, holds_comments};
    for (kind, what, comments) in [
        ("hackernews", "newest", Some("comments")),
        ("hackernews", "ask", Some("comments")),
        ("hackernews", "comments", None),
        ("lemmy", "newest", Some("comments")),
        ("lemmy", "c/rust@lemmy.ml", Some("c/rust@lemmy.ml/comments")),
        ("lemmy", "c/rust/comments", None),
        ("discourse", "latest", Some("posts")),
        ("discourse", "c/support/6", None),
        ("discourse", "posts", None),
        ("reddit", "r/a1+b2", Some("r/a1+b2/comments")),
        ("bluesky", "jetstream", None),
        ("mastodon", "tag/rust", None),
        ("linkedin", "organization/1", None),
        ("feed", "https://a.example/", None),
    ] {
        let found = comments_of(kind, what);
        assert_eq!(found.as_deref(), comments, "{kind} {what}");
        if let Some(found) = found {
            assert!(
                accepts(kind, None, &found) && holds_comments(kind, &found),
                "{kind} {found}"
            );
            assert!(!holds_comments(kind, what), "{kind} {what}");
        }
    }
}

#[test]
fn every_feed_has_a_page_that_shows_nothing_of_the_operator_s() {
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
        let found = platforms::registry::page_of(kind, base.as_ref(), what).unwrap();
        assert_eq!(found.as_str(), page, "{kind} {what}");
    }
    let own = platforms::registry::page_of("feed", None, "https://a.example/feed.xml").unwrap();
    assert_eq!(own.as_str(), "https://a.example/feed.xml");
}
