//! Feeds on the simulator.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use domain::Timestamp;
use platforms::{
    Adapter, Fetch, FetchError, FetchLimits, Fetched, PollError, PollLimits, Source,
    feed::Feeds,
    simulator::{Fault, FaultKind, NewPost},
};
use serde_json::json;
use url::Url;

use crate::platform::{Feed, minutes_ago, post, posts};

const BLOG: &str = "feed:blog";

#[tokio::test]
async fn an_unchanged_feed_costs_a_304() {
    let mut feed = Feed::new("blog:newest");
    feed.publish(posts(BLOG, 10));
    assert_eq!(feed.poll().await.posts.len(), 10);
    let again = feed.poll().await;
    assert!(again.not_modified && again.posts.is_empty());
    feed.publish([post(BLOG, "new")]);
    let polled = feed.poll().await;
    assert!(!polled.not_modified);
    assert_eq!(polled.posts.len(), 1);
}

#[tokio::test]
async fn large_feed_is_returned_completely_over_several_polls() {
    let mut feed = Feed::new("blog:newest");
    feed.limits.max_posts = 10;
    feed.publish(posts(BLOG, 25));
    for (count, more) in [(10, true), (10, true), (5, false)] {
        let polled = feed.poll().await;
        assert_eq!((polled.posts.len(), polled.more), (count, more));
    }
    assert!(feed.poll().await.not_modified);
}

#[tokio::test]
async fn all_formats_give_the_same_posts() {
    for format in ["rss", "atom", "json"] {
        let mut feed = Feed::new(&format!("blogs:{{base}}/feeds/blog.{format}"));
        let ids = feed.publish([NewPost {
            text: Some("<p>Hello <b>there</b> &amp; you</p>".into()),
            ..post(BLOG, "A <thing> & more")
        }]);
        let posts = feed.poll().await.posts;
        let url = format!("{}/feeds/blog/{}", feed.simulator.base_url(), ids[0]);
        assert_eq!(posts[0].id, url, "{format}");
        assert_eq!(posts[0].url, url, "{format}");
        assert_eq!(
            posts[0].title.as_deref(),
            Some("A <thing> & more"),
            "{format}"
        );
        assert_eq!(
            posts[0].text.as_deref(),
            Some("Hello there & you"),
            "{format}"
        );
        assert_eq!(posts[0].user.name, "ana", "{format}");
        let subforum = posts[0].subforum.as_ref().unwrap();
        assert_eq!(subforum.name, "blog", "{format}");
        let address = format!("{}/feeds/blog.{format}", feed.simulator.base_url());
        assert_eq!(subforum.id, address, "{format}");
    }
}

#[tokio::test]
async fn old_entries_of_a_new_feed_are_not_new() {
    let mut feed = Feed::new("blog:newest");
    feed.publish([
        NewPost {
            time: minutes_ago(60 * 24 * 3),
            ..post(BLOG, "old")
        },
        post(BLOG, "recent"),
    ]);
    assert_eq!(feed.titles().await, ["recent"]);
    feed.publish([NewPost {
        time: minutes_ago(120),
        ..post(BLOG, "written earlier")
    }]);
    assert_eq!(feed.titles().await, ["written earlier"]);
}

#[tokio::test]
async fn a_feed_that_changes_all_ids_is_not_delivered_again() {
    let mut feed = Feed::new("blog:newest");
    let old = || {
        (3..9).map(|days| NewPost {
            time: minutes_ago(60 * 24 * days),
            ..post(BLOG, format!("{days} days old"))
        })
    };
    feed.limits.since = minutes_ago(60 * 24 * 10);
    let ids = feed.publish(old());
    assert_eq!(feed.poll().await.posts.len(), 6);
    for id in ids {
        assert!(feed.simulator.delete(id));
    }
    feed.publish(old());
    feed.publish([post(BLOG, "new")]);
    assert_eq!(feed.titles().await, ["new"]);
}

#[tokio::test]
async fn completely_changed_feed_is_a_gap() {
    let mut feed = Feed::new("blog:newest");
    feed.publish(posts(BLOG, 40));
    assert_eq!(feed.poll().await.gap, None);
    feed.publish((0..60).map(|n| post(BLOG, format!("burst {n}"))));
    let polled = feed.poll().await;
    assert_eq!(polled.posts.len(), 50);
    assert!(polled.gap.is_some());
}

#[tokio::test]
async fn network_posts_have_text() {
    let mut feed = Feed::new("blog:newest");
    feed.publish([post(BLOG, "Only a title")]);
    let post = feed.poll().await.posts.remove(0);
    assert_eq!(post.post_type, domain::PostType::NetworkPost);
    assert_eq!(post.text.as_deref(), Some("Only a title"));
    assert_eq!(post.subforum, None);
}

#[tokio::test]
async fn faults_are_errors_and_nothing_is_lost() {
    let mut feed = Feed::new("blog:newest");
    feed.poll().await;
    for (kind, value) in [
        (FaultKind::Garbage, 0),
        (FaultKind::Reset, 0),
        (FaultKind::Status, 404),
        (FaultKind::Huge, 6 * 1024 * 1024),
    ] {
        let name = format!("{kind:?} {value}");
        feed.publish([post(BLOG, name.clone())]);
        feed.simulator.fail(Fault::new(BLOG, kind, value));
        let error = feed.try_poll().await.unwrap_err();
        if kind == FaultKind::Status {
            assert!(matches!(error, PollError::NotFound(_)));
        }
        assert_eq!(feed.titles().await, [name]);
    }
}

/// A feed that returns the documents one after the other.
struct Documents(std::sync::Mutex<Vec<String>>);

#[async_trait::async_trait]
impl platforms::Fetch for Documents {
    async fn get(
        &self,
        url: &url::Url,
        _: &[(&str, &str)],
        _: &platforms::FetchLimits,
    ) -> Result<platforms::Fetched, platforms::FetchError> {
        Ok(platforms::Fetched {
            status: 200,
            headers: Vec::new(),
            body: self.0.lock().unwrap().remove(0).into_bytes(),
            final_url: url.clone(),
        })
    }
}

#[tokio::test]
async fn pinned_entries_do_not_hide_a_gap() {
    for pinned in [1, 8] {
        let gaps = gaps_of([1..30, 1..30, 20..50, 49..79, 80..110], pinned).await;
        assert_eq!(gaps, [false, false, false, false, true], "{pinned} pinned");
    }
}

/// Polls a feed that shows these entries, after `pinned` that stay. Returns which polls report a gap.
async fn gaps_of(documents: [std::ops::Range<u64>; 5], pinned: u64) -> Vec<bool> {
    let now = domain::Timestamp::now();
    let document = |numbers: std::ops::Range<u64>| {
        let entries = (1_000..1_000 + pinned).chain(numbers).map(|number| {
            let age = if number < 1_000 { 3_600 - number } else { 10_000 - number };
            let time = now.minus(std::time::Duration::from_secs(age));
            format!(
                "<entry><id>{number}</id><title>post {number}</title><updated>{time}</updated></entry>"
            )
        });
        let entries: String = entries.collect();
        format!("<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>a</title>{entries}</feed>")
    };
    let documents = documents.map(document).to_vec();
    let fetch = std::sync::Arc::new(Documents(std::sync::Mutex::new(documents)));
    let url = Some("https://blog.example/feed".parse().unwrap());
    let feed = platforms::feed::Feeds::new("blog".into(), platforms::Source::Forum, url, fetch);
    let limits = platforms::PollLimits::default();
    let (mut cursor, mut gaps) = (None, Vec::new());
    for _ in 0..5 {
        let poll = platforms::Adapter::poll(&feed, "newest", cursor.as_ref(), &limits);
        let polled = poll.await.unwrap();
        gaps.push(polled.gap.is_some());
        cursor = Some(polled.cursor);
    }
    gaps
}

/// Twenty entries, from the given number on, that may be cached for an hour.
struct Cached(AtomicUsize);

#[async_trait]
impl Fetch for Cached {
    async fn get(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let first = self.0.load(Ordering::Relaxed);
        let now = Timestamp::now();
        let items = (first..first + 20).map(|n| {
            json!({"id": n.to_string(), "title": format!("Entry {n}"), "date_published": now.to_string()})
        });
        let feed = json!({"version": "https://jsonfeed.org/version/1.1", "title": "a", "items": items.collect::<Vec<_>>()});
        Ok(Fetched {
            status: 200,
            headers: vec![("cache-control".into(), "max-age=86400".into())],
            body: feed.to_string().into_bytes(),
            final_url: url.clone(),
        })
    }
}

#[tokio::test]
async fn busy_feed_is_polled_before_its_document_expires() {
    let cached = Arc::new(Cached(AtomicUsize::new(0)));
    let url = "http://blog.example/feed".parse().unwrap();
    let fetch = Arc::clone(&cached) as Arc<dyn Fetch>;
    let adapter = Feeds::new("blog".into(), Source::Forum, Some(url), fetch);
    let limits = PollLimits::default();
    let mut cursor = None;
    // A day counts as an hour.
    let hour = Some(std::time::Duration::from_hours(1));
    for (first, hint) in [(0, hour), (0, hour), (5, hour), (17, None), (18, hour)] {
        cached.0.store(first, Ordering::Relaxed);
        let polled = adapter.poll("newest", cursor.as_ref(), &limits).await;
        let polled = polled.unwrap();
        assert_eq!(polled.next_hint, hint, "from {first} on");
        cursor = Some(polled.cursor);
    }
}
