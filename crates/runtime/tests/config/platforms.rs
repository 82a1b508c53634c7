//! The platforms of a configuration.

use std::time::Duration;

use domain::manager::SourceType;

use super::{load, refused};

#[test]
fn platforms_are_read_with_the_source_of_their_kind() {
    let config = load(
        "[[platforms]]\nname = 'hn'\nkind = 'hackernews'\nitems_url = 'http://127.0.0.1:1/v0'\n\
         [[platforms]]\nname = 'programming.dev'\nkind = 'lemmy'\nbase_url = 'https://programming.dev'\n\
         poll_interval = '30s'\n\
         [[platforms]]\nname = 'blogs'\nkind = 'feed'\nsource = 'NETWORK'",
        &[],
    )
    .unwrap();
    let [hn, lemmy, blogs] = &config.platforms[..] else {
        panic!("{:?}", config.platforms);
    };
    assert_eq!(hn.source, SourceType::Forum);
    assert_eq!(
        hn.base_url.as_ref().unwrap().as_str(),
        "https://hn.algolia.com/api/v1"
    );
    assert_eq!(lemmy.poll_interval, Some(Duration::from_secs(30)));
    assert_eq!(
        (blogs.source, &blogs.base_url),
        (SourceType::Network, &None)
    );
}

#[test]
fn wrong_platforms_are_named() {
    let cases = [
        (
            "kind = 'lemmy'\nbase_url = 'https://a.b'",
            "platforms[0].name: is required",
        ),
        ("name = 'a'", "platforms[0].kind: is required"),
        (
            "name = 'a'\nkind = 'usenet'",
            "platforms[0].kind: unknown kind `usenet`; expected one of `hackernews`, `lemmy`, `discourse`, `reddit`, `bluesky`, `mastodon`, `x`, `linkedin`, `facebook`, `feed` (file earshot.toml)",
        ),
        (
            "name = 'A b'\nkind = 'hackernews'",
            "platforms[0].name: expected 1 to 64 of small letters, digits, `.`, `_` and `-` (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'lemmy'",
            "platforms[0].base_url: is required for kind `lemmy`",
        ),
        (
            "name = 'a'\nkind = 'feed'",
            "platforms[0].source: is required for kind `feed`",
        ),
        (
            "name = 'a'\nkind = 'hackernews'\nsource = 'NETWORK'",
            "platforms[0].source: kind `hackernews` is FORUM (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'feed'\nsource = 'FORUM'\nitems_url = 'https://a.b'",
            "platforms[0].items_url: not a setting of kind `feed` (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'hackernews'\npoll_interval = 0",
            "platforms[0].poll_interval: must be at least 100ms (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'x'\ntoken = 's3cret'",
            "platforms[0].posts_per_day: is required for kind `x`",
        ),
        (
            "name = 'a'\nkind = 'mastodon'",
            "platforms[0].base_url: is required for kind `mastodon`",
        ),
        (
            "name = 'a'\nkind = 'linkedin'\ntoken = 's3cret'",
            "platforms[0].api_version: is required for kind `linkedin`",
        ),
        (
            "name = 'a'\nkind = 'linkedin'\ntoken = 's3cret'\napi_version = '2026-10'",
            "platforms[0].api_version: expected six digits such as `202610`, not `2026-10` (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'facebook'\ntoken = 's3cret'\napi_version = '../v25.0'",
            "platforms[0].api_version: expected a version such as `v25.0`, not `../v25.0` (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'reddit'\nclient_id = 'i'\nclient_secret = 's'",
            "platforms[0].user_agent: is required for kind `reddit`",
        ),
        (
            "name = 'a'\nkind = 'reddit'\nclient_id = 'i'\nclient_secret = 's'\nuser_agent = 'linux:a.b:1'",
            "platforms[0].user_agent: expected `<platform>:<app id>:<version> (by /u/<name>)`, not `linux:a.b:1` (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'hackernews'\nbase_uri = 'x'",
            "platforms[0].base_uri: unknown key; did you mean `platforms[0].base_url`? (file earshot.toml)",
        ),
        (
            "name = 'a'\nkind = 'hackernews'\n[[platforms]]\nname = 'a'\nkind = 'hackernews'",
            "platforms[1].name: another platform is named `a` (file earshot.toml)",
        ),
    ];
    for (toml, expected) in cases {
        assert_eq!(refused(&format!("[[platforms]]\n{toml}"), &[]), expected);
    }
}

#[test]
fn who_has_no_credentials_starts_without_them() {
    let mut toml = String::new();
    for platform in [
        "kind = 'x'\nposts_per_day = 100",
        "kind = 'facebook'",
        "kind = 'linkedin'\napi_version = '202610'",
        "kind = 'reddit'\nuser_agent = 'linux:a.b:1 (by /u/c)'",
        "kind = 'discourse'\nbase_url = 'https://a.b'\nclient_id = 'c'",
    ] {
        let number = toml.matches("[[").count();
        toml += &format!("[[platforms]]\nname = 'p{number}'\n{platform}\n");
    }
    assert_eq!(load(&toml, &[]).unwrap().platforms.len(), 5);
}

#[test]
fn a_gap_between_platforms_is_refused() {
    let said = refused("", &[("EARSHOT_PLATFORMS__60000__NAME", "a")]);
    assert_eq!(said, "platforms[60000]: is set, but `platforms[0]` is not");
}
