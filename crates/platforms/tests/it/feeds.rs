//! Feeds on the simulator.

use std::{
    io::Write as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::Timestamp;
use flate2::{Compression, write::GzEncoder};
use outbound::large;
use platform_simulator::{Fault, FaultKind, NewPost};
use platforms::{
    Adapter, Cursor, Fetch, FetchError, FetchLimits, Fetched, PollError, PollLimits, Polled,
    Source, feed::FeedAdapter,
};
use serde_json::json;
use tokio::sync::Semaphore;
use url::Url;

use crate::platform::{Feed, always, answer, answering, minutes_ago, post, posts};

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
async fn document_that_is_compressed_without_saying_so_takes_a_place() {
    let document = r#"<rss version="2.0"><channel><title>Blog</title></channel></rss>"#;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(document.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    for (body, taken) in [(document.as_bytes().to_vec(), 0), (packed, 1)] {
        let places = Arc::new(Semaphore::new(1));
        let feeds = FeedAdapter::new("blog".into(), Source::Network, None, always(200, body));
        let work = async {
            let limits = PollLimits::default();
            let polled = feeds.poll("https://lab.example/feed", None, &limits).await;
            (polled.is_ok(), 1 - places.available_permits())
        };
        let take = Arc::clone(&places);
        let done = large::in_turn(move || Arc::clone(&take).acquire_owned(), work).await;
        assert_eq!(done, (true, taken));
    }
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

#[tokio::test]
async fn pinned_entries_do_not_hide_a_gap() {
    for pinned in [1, 8] {
        let gaps = gaps_of([1..30, 1..30, 20..50, 49..79, 80..110], pinned, None).await;
        assert_eq!(gaps, [false, false, false, false, true], "{pinned} pinned");
    }
}

#[tokio::test]
async fn edited_entry_does_not_hide_a_gap() {
    let gaps = gaps_of([1..30, 1..30, 20..50, 49..79, 80..110], 1, Some(77)).await;
    assert_eq!(gaps, [false, false, false, false, true]);
    let gaps = gaps_of([1..30, 1..30, 20..50, 49..79, 78..108], 1, Some(77)).await;
    assert_eq!(gaps, [false; 5]);
}

#[tokio::test]
async fn gap_ends_with_the_oldest_new_entry() {
    let now = Timestamp::now();
    let at = |number: u64| now.minus(Duration::from_secs(3_600 - number));
    let documents = [1..30, 80..110].map(|numbers| {
        let pinned = (1_000, now.minus(Duration::from_secs(9_000)));
        let others = numbers.map(|number| (number, at(number)));
        document(others.chain([pinned]))
    });
    let polls = polls_of(documents.into()).await;
    let end = polls[1].gap.as_ref().unwrap().to;
    assert!(end > Some(at(79)) && end <= Some(at(80)), "{end:?}");
}

/// Some generators date entries by the time of the build.
#[tokio::test]
async fn feed_that_gives_all_its_entries_new_dates_has_gaps_only_between_them() {
    let now = Timestamp::now();
    let documents = (1..6).map(|build| {
        let time = now.minus(Duration::from_secs(600 - 60 * build));
        // The last document has no entry of the others.
        let first = if build == 5 { 40 } else { build };
        document((first..first + 4).map(|number| (number, time)))
    });
    let polls = polls_of(documents.collect()).await;
    let gaps: Vec<_> = polls.iter().map(|polled| polled.gap.is_some()).collect();
    assert_eq!(gaps, [false, false, false, false, true]);
}

/// Polls a feed that shows these entries, after `pinned` that stay. The last document also has the `edited` one, with a
/// new date. Returns which polls report a gap.
async fn gaps_of(
    documents: [std::ops::Range<u64>; 5],
    pinned: u64,
    edited: Option<u64>,
) -> Vec<bool> {
    let now = Timestamp::now();
    let entry = |number: u64, age: u64| (number, now.minus(Duration::from_secs(age)));
    let documents = (1..).zip(documents).map(|(nth, numbers)| {
        let pinned = (1_000..1_000 + pinned).map(|number| entry(number, 10_000 - number));
        let others = numbers.map(|number| entry(number, 3_600 - number));
        let edited = edited.filter(|_| nth == 5);
        let edited = edited.map(|number| entry(number, 600));
        document(pinned.chain(others).chain(edited))
    });
    let polls = polls_of(documents.collect()).await;
    polls.iter().map(|polled| polled.gap.is_some()).collect()
}

/// An Atom feed of entries with these numbers and times.
fn document(entries: impl Iterator<Item = (u64, Timestamp)>) -> String {
    let entries = entries.map(|(number, time)| {
        format!(
            "<entry><id>{number}</id><title>post {number}</title><updated>{time}</updated></entry>"
        )
    });
    let entries: String = entries.collect();
    format!("<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>a</title>{entries}</feed>")
}

/// Polls a feed once for each document.
async fn polls_of(documents: Vec<String>) -> Vec<Polled> {
    let count = documents.len();
    let documents = Mutex::new(documents);
    let fetch = answering(move |url| answer(200, url, documents.lock().unwrap().remove(0)));
    let url = Some("https://blog.example/feed".parse().unwrap());
    let feed = FeedAdapter::new("blog".into(), Source::Forum, url, fetch);
    let limits = PollLimits::default();
    let (mut cursor, mut polls) = (None, Vec::new());
    for _ in 0..count {
        let polled = feed.poll("newest", cursor.as_ref(), &limits).await;
        let polled = polled.unwrap();
        cursor = Some(polled.cursor.clone());
        polls.push(polled);
    }
    polls
}

/// A server with this document whose `ETag` never changes.
struct Stale(Mutex<String>);

#[async_trait]
impl Fetch for Stale {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let is_conditional = headers.iter().any(|(name, _)| *name == "if-none-match");
        Ok(Fetched {
            status: if is_conditional { 304 } else { 200 },
            headers: vec![("etag".into(), "\"same\"".into())],
            body: self.0.lock().unwrap().clone().into_bytes(),
            final_url: url.clone(),
        })
    }
}

#[tokio::test]
async fn posts_of_a_server_that_always_answers_304_come_after_a_day() {
    let an_hour_ago = Timestamp::now().minus(Duration::from_hours(1));
    let show = |newest: u64| document((1..=newest).map(|number| (number, an_hour_ago)));
    let server = Arc::new(Stale(Mutex::new(show(1))));
    let url = "https://blog.example/feed".parse().unwrap();
    let fetch = Arc::clone(&server) as Arc<dyn Fetch>;
    let adapter = FeedAdapter::new("blog".into(), Source::Forum, Some(url), fetch);
    let limits = PollLimits::default();
    let first = adapter.poll("newest", None, &limits).await.unwrap();
    assert_eq!(first.posts.len(), 1);
    *server.0.lock().unwrap() = show(2);
    let second = adapter.poll("newest", Some(&first.cursor), &limits).await;
    let second = second.unwrap();
    assert!(second.not_modified && second.posts.is_empty());
    // As if the document had been read before that.
    let mut cursor = second.cursor.to_json();
    let read_time = Timestamp::now().minus(Duration::from_hours(25));
    cursor["feed"]["readTime"] = json!(read_time);
    let cursor = Cursor::from_json(&cursor).unwrap();
    let third = adapter.poll("newest", Some(&cursor), &limits).await;
    let posts = third.unwrap().posts;
    assert_eq!(posts.len(), 1);
    assert_eq!(posts[0].title.as_deref(), Some("post 2"));
}

/// Twenty entries, the newest of the given number, that may be cached for a day. There are two minutes between them, or
/// they have no dates. The number may be their `ETag`.
struct Cached {
    newest: AtomicU64,
    is_dated: bool,
    has_etag: bool,
}

#[async_trait]
impl Fetch for Cached {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let newest = self.newest.load(Ordering::Relaxed);
        let etag = newest.to_string();
        let is_known = headers.contains(&("if-none-match", etag.as_str()));
        let mut answer = vec![("cache-control".into(), "max-age=86400".into())];
        if self.has_etag {
            answer.push(("etag".into(), etag));
        }
        let now = Timestamp::now();
        let items = (newest - 19..=newest).map(|n| {
            let time = now.minus(Duration::from_mins(2 * (newest - n)));
            let date = self.is_dated.then(|| time.to_string());
            json!({"id": n.to_string(), "title": format!("Entry {n}"), "date_published": date})
        });
        let feed = json!({"version": "https://jsonfeed.org/version/1.1", "title": "a", "items": items.collect::<Vec<_>>()});
        Ok(Fetched {
            status: if is_known { 304 } else { 200 },
            headers: answer,
            body: feed.to_string().into_bytes(),
            final_url: url.clone(),
        })
    }
}

/// The hints after polls that find these newest entries, in minutes.
async fn hints(is_dated: bool, has_etag: bool, newest: [u64; 5]) -> Vec<Option<u64>> {
    let cached = Arc::new(Cached {
        newest: AtomicU64::new(0),
        is_dated,
        has_etag,
    });
    let url = "http://blog.example/feed".parse().unwrap();
    let fetch = Arc::clone(&cached) as Arc<dyn Fetch>;
    let adapter = FeedAdapter::new("blog".into(), Source::Forum, Some(url), fetch);
    let limits = PollLimits::default();
    let (mut cursor, mut hints) = (None, Vec::new());
    for newest in newest {
        cached.newest.store(newest, Ordering::Relaxed);
        let polled = adapter.poll("newest", cursor.as_ref(), &limits).await;
        let polled = polled.unwrap();
        hints.push(polled.next_hint.map(|hint| hint.as_secs().div_ceil(60)));
        cursor = Some(polled.cursor);
    }
    hints
}

#[tokio::test]
async fn busy_feed_is_polled_before_its_document_expires() {
    // Half of the entries came in 18 minutes, also after a poll that finds few new ones.
    let found = hints(true, false, [20, 20, 50, 52, 80]).await;
    assert!(
        found.iter().all(|hint| hint.unwrap_or_default() <= 19),
        "{found:?}"
    );
    assert!(found[0] >= Some(18) && found[1] == found[0], "{found:?}");
    // Without dates, the number of new ones counts. A day counts as an hour.
    let hour = Some(60);
    let found = hints(false, false, [20, 20, 25, 37, 38]).await;
    assert_eq!(found, [hour, hour, hour, None, hour]);
}

#[tokio::test]
async fn unchanged_busy_feed_is_polled_before_its_document_expires() {
    let found = hints(true, true, [20; 5]).await;
    assert!(
        found.iter().all(|hint| matches!(hint, Some(18..=19))),
        "{found:?}"
    );
}
