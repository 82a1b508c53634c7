//! Backlogs after outages: for any share of failed requests and any speed of polls, each post is returned once,
//! and each poll that reads a page makes progress.
//!
//! A case follows from its seed ([`case::Case`]). `PROPTEST_CASES` is the number of seeds, and
//! `OUTAGES_FIRST_SEED` the first.

mod case;
mod failing;
mod play;

use std::{sync::Arc, time::Duration};

use platform_simulator::reddit;
use platforms::{
    Adapter, Fetch, Unlimited, discourse::Discourse, facebook::Facebook, hackernews::HackerNews,
    lemmy::Lemmy, linkedin::LinkedIn, lobsters::Lobsters, mastodon::Mastodon, reddit::Reddit, x::X,
};
use url::Url;

use crate::schedule::cases;

/// Backlog of a feed that is read like another one, which has longer backlogs.
const PART: u64 = 600;

/// One feed of one platform.
struct Kind {
    platform: &'static str,
    what: &'static str,
    community: Option<&'static str>,
    /// The part of an address that only pages of the list have.
    page: &'static str,
    /// True if pages are counted from the newest post.
    is_numbered: bool,
    /// Limits of the backlog: how far back the platform lists posts, and for how long.
    most_posts: u64,
    most_span: Duration,
    is_comment: bool,
    needs_server: bool,
    /// Seeds that once failed, which are always played.
    failed_seeds: &'static [u64],
    adapter: fn(Url, Arc<dyn Fetch>) -> Box<dyn Adapter>,
}

impl Default for Kind {
    fn default() -> Self {
        Self {
            platform: "",
            what: "newest",
            community: None,
            page: "",
            is_numbered: false,
            most_posts: 5_000,
            most_span: Duration::from_hours(24 * 365),
            is_comment: false,
            needs_server: false,
            failed_seeds: &[],
            adapter: |_, _| unreachable!("each kind has its own"),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "steers this test, not a setting of ours"
)]
fn first_seed() -> u64 {
    let first = std::env::var("OUTAGES_FIRST_SEED").ok();
    first.and_then(|seed| seed.parse().ok()).unwrap_or(0)
}

fn play(kind: &Kind) {
    let first = first_seed();
    let seeds = first..first + u64::from(cases(5).cases);
    let mut total = play::Total::default();
    for seed in kind.failed_seeds.iter().copied().chain(seeds.clone()) {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build().unwrap();
        total.add(&runtime.block_on(play::play(kind, seed)));
    }
    println!(
        "{} {}, seeds {seeds:?}: {total:?}",
        kind.platform, kind.what
    );
}

fn lemmy(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    Box::new(Lemmy::new(url, fetch))
}

fn lobsters(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    Box::new(Lobsters::new("lobsters".into(), url, fetch))
}

fn discourse(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    Box::new(Discourse::new("discourse".into(), url, None, fetch))
}

fn reddit(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    let (id, secret) = (reddit::CLIENT_ID.to_owned(), reddit::CLIENT_SECRET);
    let secret = secret.to_owned().into();
    Box::new(Reddit::new("reddit".into(), url, id, secret, fetch))
}

fn hacker_news(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    let search = format!("{url}/api/v1").parse().unwrap();
    Box::new(HackerNews::new("hackernews".into(), search, None, fetch))
}

fn hacker_news_with_items(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    let [search, items] = ["api/v1", "v0"].map(|path| format!("{url}/{path}").parse().unwrap());
    Box::new(HackerNews::new(
        "hackernews".into(),
        search,
        Some(items),
        fetch,
    ))
}

fn mastodon(url: Url, fetch: Arc<dyn Fetch>) -> Box<dyn Adapter> {
    Box::new(Mastodon::new(url, None, fetch))
}

#[test]
fn lemmy_posts_come_through_an_outage() {
    play(&Kind {
        platform: "lemmy",
        page: "/post/list",
        adapter: lemmy,
        ..Kind::default()
    });
}

#[test]
fn lemmy_communities_come_through_an_outage() {
    play(&Kind {
        platform: "lemmy",
        what: "c/crm",
        community: Some("crm"),
        page: "/post/list",
        most_posts: PART,
        adapter: lemmy,
        ..Kind::default()
    });
}

#[test]
fn lemmy_comments_come_through_an_outage() {
    play(&Kind {
        platform: "lemmy",
        what: "comments",
        is_comment: true,
        page: "/comment/list",
        is_numbered: true,
        adapter: lemmy,
        ..Kind::default()
    });
}

#[test]
fn lobsters_comes_through_an_outage() {
    play(&Kind {
        platform: "lobsters",
        page: "/newest",
        is_numbered: true,
        adapter: lobsters,
        ..Kind::default()
    });
}

#[test]
fn lobsters_tags_come_through_an_outage() {
    play(&Kind {
        platform: "lobsters",
        what: "t/crm",
        community: Some("crm"),
        page: "/t/crm",
        most_posts: PART,
        is_numbered: true,
        adapter: lobsters,
        ..Kind::default()
    });
}

#[test]
fn discourse_topics_come_through_an_outage() {
    play(&Kind {
        platform: "discourse",
        what: "latest",
        page: "/latest.json",
        is_numbered: true,
        adapter: discourse,
        ..Kind::default()
    });
}

#[test]
fn discourse_categories_come_through_an_outage() {
    play(&Kind {
        platform: "discourse",
        // The number is the one that the simulator derives from the name.
        what: "c/crm/1990355771",
        community: Some("crm"),
        page: "/latest.json",
        most_posts: PART,
        is_numbered: true,
        // A poll of waiting topics that could not be read asked for another at once, and one whose topic was gone
        // asked for none.
        failed_seeds: &[1_007, 2_016],
        adapter: discourse,
        ..Kind::default()
    });
}

#[test]
fn discourse_replies_come_through_an_outage() {
    play(&Kind {
        platform: "discourse",
        what: "posts",
        is_comment: true,
        page: "/posts.json",
        adapter: discourse,
        ..Kind::default()
    });
}

#[test]
fn reddit_posts_come_through_an_outage() {
    play(&Kind {
        platform: "reddit",
        what: "r/saas",
        community: Some("saas"),
        page: "/r/saas/new",
        // A listing shows at most 1,000 posts.
        most_posts: 850,
        adapter: reddit,
        ..Kind::default()
    });
}

#[test]
fn reddit_comments_of_a_group_come_through_an_outage() {
    play(&Kind {
        platform: "reddit",
        what: "r/crm+saas/comments",
        community: Some("saas"),
        is_comment: true,
        page: "/comments",
        most_posts: 850,
        adapter: reddit,
        ..Kind::default()
    });
}

#[test]
fn hacker_news_comes_through_an_outage() {
    play(&Kind {
        platform: "hackernews",
        page: "/search_by_date",
        adapter: hacker_news,
        ..Kind::default()
    });
}

#[test]
fn hacker_news_with_its_lists_comes_through_an_outage() {
    play(&Kind {
        platform: "hackernews",
        page: "/search_by_date",
        adapter: hacker_news_with_items,
        ..Kind::default()
    });
}

#[test]
fn hacker_news_comments_come_through_an_outage() {
    play(&Kind {
        platform: "hackernews",
        what: "comments",
        is_comment: true,
        page: "/search_by_date",
        adapter: hacker_news_with_items,
        ..Kind::default()
    });
}

#[test]
fn facebook_comes_through_an_outage() {
    play(&Kind {
        platform: "facebook",
        what: "page/1234",
        community: Some("1234"),
        page: "/feed",
        needs_server: true,
        adapter: |url, fetch| {
            let (token, version) = ("good".to_owned().into(), Some("v25.0".to_owned()));
            Box::new(Facebook::new("facebook".into(), url, token, version, fetch))
        },
        ..Kind::default()
    });
}

#[test]
fn linkedin_comes_through_an_outage() {
    play(&Kind {
        platform: "linkedin",
        what: "organization/1234",
        community: Some("1234"),
        page: "/rest/posts",
        is_numbered: true,
        needs_server: true,
        adapter: |url, fetch| {
            let token = "good".to_owned().into();
            Box::new(LinkedIn::new(url, token, "202610".into(), fetch))
        },
        ..Kind::default()
    });
}

#[test]
fn mastodon_tags_come_through_an_outage() {
    play(&Kind {
        platform: "mastodon",
        what: "tag/crm",
        page: "/timelines/",
        // The newest page was read for nothing if the first page after the start failed.
        failed_seeds: &[2_018],
        adapter: mastodon,
        ..Kind::default()
    });
}

#[test]
fn mastodon_comes_through_an_outage() {
    play(&Kind {
        platform: "mastodon",
        what: "public",
        page: "/timelines/",
        // The newest page was read for nothing if the first page after the start failed.
        failed_seeds: &[2_018],
        adapter: mastodon,
        ..Kind::default()
    });
}

#[test]
fn x_comes_through_an_outage() {
    play(&Kind {
        platform: "x",
        what: "search/#crm",
        page: "/search/recent",
        most_span: Duration::from_hours(24 * 6),
        adapter: |url, fetch| Box::new(X::new(url, "good".into(), fetch, Arc::new(Unlimited))),
        ..Kind::default()
    });
}
