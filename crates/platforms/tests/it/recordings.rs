//! The adapters read recorded responses.

use std::{path::Path, sync::Arc};

use domain::{Post, PostType};
use platforms::{
    Adapter, AddressKey, Fetch, PollError, PollLimits, Source, feed::FeedAdapter,
    hackernews::HackerNews, lemmy::Lemmy,
};
use url::Url;

use crate::platform::{answer, answering};

/// Responses by part of the address; 404 for the rest.
fn recorded(responses: &[(&str, u16, &[u8])]) -> Arc<dyn Fetch> {
    let owned = |one: &(&str, u16, &[u8])| (one.0.to_owned(), one.1, one.2.to_vec());
    let responses: Vec<_> = responses.iter().map(owned).collect();
    answering(move |url| {
        let found = responses.iter().find(|one| url.as_str().contains(&one.0));
        let (status, body) = found.map_or((404, Vec::new()), |one| (one.1, one.2.clone()));
        answer(status, url, body)
    })
}

fn fixture(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    std::fs::read(root.join(path)).unwrap()
}

fn url(text: &str) -> Url {
    text.parse().unwrap()
}

async fn poll(adapter: impl Adapter, what: &str) -> Result<Vec<Post>, PollError> {
    let polled = adapter.poll(what, None, &PollLimits::default()).await?;
    for post in &polled.posts {
        check(post);
    }
    Ok(polled.posts)
}

/// Checks the guarantees for every receiver.
fn check(post: &Post) {
    let json = serde_json::to_string(post).unwrap();
    assert!(!json.contains("\\u00"), "a control character in {json}");
    assert!(!post.id.is_empty() && post.id.contains(':'), "{json}");
    assert!(!post.user.id.is_empty() && !post.user.name.is_empty());
    for address in [&post.url, &post.user.url] {
        let scheme = Url::parse(address).unwrap().scheme().to_owned();
        assert!(matches!(scheme.as_str(), "http" | "https"), "{json}");
    }
    assert!(post.text.as_deref() != Some(""), "{json}");
    match post.post_type {
        PostType::ForumLink => assert!(
            post.title.as_ref().is_some_and(|title| !title.is_empty()) && post.subforum.is_some(),
            "{json}"
        ),
        PostType::ForumComment => assert!(post.text.is_some(), "{json}"),
        PostType::MicroblogTweet => assert!(post.text.is_some() && post.title.is_none()),
        PostType::NetworkPost => assert!(post.text.is_some()),
    }
}

async fn hackernews(search: &[u8], item: Option<(u64, &[u8])>) -> Result<Vec<Post>, PollError> {
    let (id, body) = item.unwrap_or_default();
    let (list, path) = (format!("[{id}]"), format!("item/{id}.json"));
    let fetch = recorded(&[
        ("search_by_date", 200, search),
        ("newstories", 200, list.as_bytes()),
        (path.as_str(), 200, body),
    ]);
    let items = item.map(|_| url("https://items.example/v0"));
    let search = url("https://search.example/api/v1");
    let adapter = HackerNews::new("hackernews".into(), search, items, fetch);
    poll(adapter, "newest").await
}

async fn lemmy(status: u16, body: Vec<u8>) -> Result<Vec<Post>, PollError> {
    let end = fixture("lemmy/post_list_past_end.json");
    let fetch = recorded(&[
        ("page=1", status, body.as_slice()),
        ("page", 200, end.as_slice()),
    ]);
    poll(Lemmy::new(url("https://lemmy.example"), fetch), "newest").await
}

async fn feed(source: Source, body: Vec<u8>) -> Result<Vec<Post>, PollError> {
    feed_at("https://example.org/feed", source, body).await
}

async fn feed_at(what: &str, source: Source, body: Vec<u8>) -> Result<Vec<Post>, PollError> {
    let fetch = recorded(&[("feed", 200, body.as_slice())]);
    let feeds = FeedAdapter::new("blogs".into(), source, None, fetch);
    poll(feeds.with_address_key(AddressKey::new([7; 32])), what).await
}

#[tokio::test]
async fn algolia_s_hits_become_posts() {
    let posts = hackernews(&fixture("hackernews/algolia_ask.json"), None)
        .await
        .unwrap();
    assert_eq!(posts[0].id, "hackernews:7915384");
    assert_eq!(posts[0].subforum.as_ref().unwrap().id, "ask");
    assert!(
        posts[0]
            .text
            .as_ref()
            .unwrap()
            .contains("I'm a college student")
    );
    let polls = hackernews(&fixture("hackernews/algolia_poll.json"), None)
        .await
        .unwrap();
    assert_eq!((polls.len(), &polls[0].text), (1, &None));
}

#[tokio::test]
async fn firebase_s_items_become_posts() {
    let nothing = br#"{"hits": [], "hitsPerPage": 1000}"#;
    for (id, subforum) in [(8863, "story"), (121_003, "ask"), (192_327, "job")] {
        let body = fixture(&format!("hackernews/firebase_item_{id}.json"));
        let posts = hackernews(nothing, Some((id, &body))).await.unwrap();
        assert_eq!(posts[0].id, format!("hackernews:{id}"));
        assert_eq!(posts[0].subforum.as_ref().unwrap().id, subforum);
    }
    let comment = fixture("hackernews/firebase_item_2921983.json");
    for body in [
        &comment[..],
        b"null",
        br#"{"id": 2921983, "deleted": true, "type": "story"}"#,
    ] {
        let posts = hackernews(nothing, Some((2_921_983, body))).await.unwrap();
        assert!(posts.is_empty());
    }
}

#[tokio::test]
async fn lemmy_s_pages_become_posts() {
    let posts = lemmy(200, fixture("lemmy/post_list_page1.json"))
        .await
        .unwrap();
    let titles: Vec<_> = posts.iter().filter_map(|post| post.title.clone()).collect();
    assert!(titles.contains(&"to be edited".to_owned()), "{titles:?}");
    let edited = posts
        .iter()
        .find(|post| post.title.as_deref() == Some("to be edited"));
    let edited = edited.unwrap();
    assert_eq!(edited.time.to_string(), "2026-11-21T02:24:12.680057Z");
    assert_eq!(edited.id, "http://localhost:55536/post/6");
    assert_eq!(edited.text.as_deref(), Some("first text"));
    assert_eq!(edited.subforum.as_ref().unwrap().name, "crm_talk");

    let newer = lemmy(200, fixture("lemmy/example_0_19_post_list.json")).await;
    let newer = newer.unwrap();
    assert!(
        newer
            .iter()
            .any(|post| post.id == "https://lemmy.example/post/981")
    );
}

#[tokio::test]
async fn refusals_of_lemmy_are_distinguished() {
    let too_big = lemmy(400, fixture("lemmy/post_list_limit_too_big_400.json")).await;
    assert!(matches!(
        too_big,
        Err(PollError::Status { status: 400, .. })
    ));
    let missing = lemmy(400, fixture("lemmy/community_missing.json")).await;
    assert!(matches!(missing, Err(PollError::NotFound(_))));
    let throttled = lemmy(400, br#"{"error":"rate_limit_error"}"#.to_vec()).await;
    assert!(matches!(throttled, Err(PollError::Throttled { .. })));
}

#[tokio::test]
async fn every_format_of_feed_is_read_without_loss() {
    for (file, entries) in [
        ("atom_spec_1.xml", 1),
        ("rss_2.0_spec_1.xml", 2),
        ("rss_1.0_spec_1.xml", 2),
        ("rss_0.91_missing_id.xml", 1),
        ("jsonfeed_spec_1.json", 1),
        ("hostile_double-encoded-html.xml", 1),
    ] {
        let body = fixture(&format!("feeds/{file}"));
        let posts = feed(Source::Forum, body).await.unwrap();
        assert_eq!(posts.len(), entries, "{file}");
    }
}

#[tokio::test]
async fn feeds_keep_their_links_letters_and_ids() {
    let relative = feed(Source::Network, fixture("feeds/atom_relative.xml")).await;
    let relative = relative.unwrap();
    assert_eq!(
        relative[0].url,
        "https://example.org/blog/2003/12/13/atom03"
    );
    assert_eq!(
        relative[0].id,
        "blogs:bdb314cfe1ce49703cf68d995d4520f6#urn:uuid:1225c695-cfb8-4ebb-aaaa-80da344efa6a"
    );
    assert_eq!(relative[0].user.name, "Jane Doe");

    let latin = feed(Source::Network, fixture("feeds/rss_0.91_missing_id.xml")).await;
    let latin = latin.unwrap();
    assert!(latin[0].title.as_ref().unwrap().contains("Público"));
    assert!(
        latin[0]
            .text
            .as_ref()
            .unwrap()
            .starts_with("Publicado el 14-05-2021")
    );
}

#[tokio::test]
async fn a_customer_s_feed_cannot_take_the_id_of_another_site_s_post() {
    let genuine = lemmy(200, fixture("lemmy/example_0_19_post_list.json")).await;
    let genuine = genuine.unwrap().remove(0).id;
    let body = format!(
        "<rss version=\"2.0\"><channel><title>a</title><item><guid>{genuine}</guid>\
         <title>forged</title></item></channel></rss>"
    );
    let body = body.into_bytes();
    let posts = feed_at("https://evil.example/feed", Source::Forum, body.clone()).await;
    let id = posts.unwrap().remove(0).id;
    let (scope, native) = id.split_once('#').unwrap();
    assert_eq!(native, genuine);
    assert!(
        scope.starts_with("blogs:") && !scope.contains("evil"),
        "{scope}"
    );
    // Another feed's ids differ, and the same feed's ids do not change.
    let other = feed_at("https://evil.example/feed?2", Source::Forum, body.clone()).await;
    assert_ne!(other.unwrap()[0].id, id);
    let again = feed_at("https://evil.example/feed", Source::Forum, body).await;
    assert_eq!(again.unwrap()[0].id, id);
}

#[tokio::test]
async fn posts_never_hold_the_token_of_the_address_of_their_feed() {
    const ADDRESS: &str = "https://blog.example/feed?user=ana&token=canary-token";
    let entries = [
        "<guid>1</guid>",
        "<guid>https://blog.example/feed?user=ana&amp;token=canary-token#1</guid>",
        "<guid>https://blog.example/1?token=canary-token</guid>",
        "<guid>https://other.example/canary-token</guid>",
        "",
    ];
    for channel in [
        "",
        "<link>https://blog.example/feed?user=ana&amp;token=canary-token</link>",
        "<link>?user=ana&amp;token=canary-token</link>",
        "<link></link>",
    ] {
        for entry in entries {
            for source in [Source::Forum, Source::Microblog, Source::Network] {
                let body = format!(
                    "<rss version=\"2.0\"><channel><title>a</title>{channel}\
                     <item>{entry}<title>b</title></item></channel></rss>"
                );
                let post = feed_at(ADDRESS, source, body.into())
                    .await
                    .unwrap()
                    .remove(0);
                let shown = Post {
                    // The address of an entry is part of the feed's content.
                    url: String::new(),
                    ..post.clone()
                };
                let shown = serde_json::to_string(&shown).unwrap();
                assert!(!shown.contains("canary"), "{channel} {entry}: {shown}");
                assert!(
                    !post.url.starts_with(ADDRESS),
                    "{channel} {entry}: {}",
                    post.url
                );
            }
        }
    }
}

#[tokio::test]
async fn a_lemmy_feed_loses_its_frame() {
    let posts = feed(Source::Forum, fixture("lemmy/feed_community.xml"))
        .await
        .unwrap();
    for post in &posts {
        assert!(!post.text.as_deref().unwrap_or("").contains("submitted by"));
        assert_eq!(post.user.name, "admin");
        assert_eq!(post.user.url, "http://localhost:55536/u/admin");
    }
}
