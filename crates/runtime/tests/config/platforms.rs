//! The platforms of a configuration.

use std::time::Duration;

use domain::manager::SourceType;

use super::{each_is_refused, load, refused};

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
fn invalid_platforms_are_named() {
    each_is_refused(
        "
platforms = [{ kind = 'lemmy', base_url = 'https://a.b' }]
platforms[0].name: is required
platforms = [{ name = 'a' }]
platforms[0].kind: is required
platforms = [{ name = 'a', kind = 'usenet' }]
platforms[0].kind: expected one of `hackernews`, `lemmy`, `lobsters`, `discourse`, `reddit`, `bluesky`, `mastodon`, `x`, `linkedin`, `facebook`, `feed`, not `usenet` (file earshot.toml)
platforms = [{ name = 'A b', kind = 'hackernews' }]
platforms[0].name: expected 1 to 64 of small letters, digits, `.`, `_` and `-` (file earshot.toml)
platforms = [{ name = 'a', kind = 'lemmy' }]
platforms[0].base_url: is required for kind `lemmy`
platforms = [{ name = 'a', kind = 'feed' }]
platforms[0].source: is required for kind `feed`
platforms = [{ name = 'a', kind = 'hackernews', source = 'NETWORK' }]
platforms[0].source: kind `hackernews` is FORUM (file earshot.toml)
platforms = [{ name = 'a', kind = 'feed', source = 'FORUM', items_url = 'https://a.b' }]
platforms[0].items_url: not a setting of kind `feed` (file earshot.toml)
platforms = [{ name = 'a', kind = 'hackernews', poll_interval = 0 }]
platforms[0].poll_interval: must be at least 100ms (file earshot.toml)
platforms = [{ name = 'a', kind = 'x', token = 's3cret' }]
platforms[0].posts_per_day: is required for kind `x`
platforms = [{ name = 'a', kind = 'mastodon' }]
platforms[0].base_url: is required for kind `mastodon`
platforms = [{ name = 'a', kind = 'linkedin', token = 's3cret' }]
platforms[0].api_version: is required for kind `linkedin`
platforms = [{ name = 'a', kind = 'linkedin', token = 's3cret', api_version = '2026-10' }]
platforms[0].api_version: expected six digits such as `202610`, not `2026-10` (file earshot.toml)
platforms = [{ name = 'a', kind = 'facebook', token = 's3cret', api_version = '../v25.0' }]
platforms[0].api_version: expected a version such as `v25.0`, not `../v25.0` (file earshot.toml)
platforms = [{ name = 'a', kind = 'reddit', client_id = 'i', client_secret = 's' }]
platforms[0].user_agent: is required for kind `reddit`
platforms = [{ name = 'a', kind = 'reddit', client_id = 'i', client_secret = 's', user_agent = 'linux:a.b:1' }]
platforms[0].user_agent: expected `<platform>:<app id>:<version> (by /u/<name>)`, not `linux:a.b:1` (file earshot.toml)
platforms = [{ name = 'a', kind = 'hackernews', base_uri = 'x' }]
platforms[0].base_uri: unknown key; did you mean `platforms[0].base_url`? (file earshot.toml)
platforms = [{ name = 'a', kind = 'hackernews' }, { name = 'a', kind = 'hackernews' }]
platforms[1].name: another platform is named `a` (file earshot.toml)
",
    );
}

#[test]
fn platform_without_credentials_does_not_prevent_the_start() {
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
fn all_problems_of_a_platform_are_reported_together() {
    let said = refused("[[platforms]]\nkind = 'lemmy'\ntoken = 1\nx = 1", &[]);
    let keys: Vec<_> = said
        .lines()
        .filter_map(|line| line.split(':').next())
        .collect();
    let expected = ["name", "token", "base_url", "x"].map(|name| format!("platforms[0].{name}"));
    assert_eq!(keys, expected);
}

#[test]
fn gap_in_platform_numbers_is_refused() {
    let said = refused("", &[("EARSHOT_PLATFORMS__60000__NAME", "a")]);
    assert_eq!(said, "platforms[60000]: is set, but `platforms[0]` is not");
}
