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
