//! Feeds of one account do not delay those of another.

use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{Duration, Instant},
};

use diesel_async::SimpleAsyncConnection as _;
use test_support::{Answer, TestServer, eventually};
use tokio::sync::watch;

use crate::support::{HACKER_NEWS, LEMMY, World, watching};

const FEED: &str =
    "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>a blog</title></channel></rss>";

fn rss() -> Answer {
    document(FEED)
}

fn document(body: &str) -> Answer {
    Answer::Full {
        status: 200,
        headers: vec![("content-type", "application/rss+xml".to_owned())],
        body: body.as_bytes().to_vec(),
    }
}

#[tokio::test]
async fn feeds_that_never_answer_do_not_delay_another_accounts_first_poll() {
    const HOSTILE: usize = 100;
    let world = World::of_blogs(Duration::from_millis(200)).await;
    let silent = TestServer::start(|_, _| Answer::after(Duration::from_secs(600), rss())).await;
    let quick = TestServer::start(|_, _| rss()).await;
    let feeds: Vec<String> = (0..HOSTILE)
        .map(|n| format!("blogs:{}", silent.url(&format!("/h{n}"))))
        .collect();
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    world.manager("kettle", &feeds).await;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    eventually("the silent feeds are polled", async || silent.count() >= 12).await;

    let mut conn = world.database.connect().await;
    let other = world.fixture.beside(&mut conn, "globex").await;
    let theirs = format!("blogs:{}", quick.url("/o"));
    let instructions = watching("kettle", &[&theirs]);
    other.applied_manager(&mut conn, &instructions, &[]).await;
    eventually("it is polled", async || {
        let read = format!("feeds WHERE name = '{theirs}' AND cursor IS NOT NULL");
        world.database.count(&read).await == 1
    })
    .await;
    // It came last, and some of those that were due before it have not even been polled.
    let waiting = "feeds WHERE last_poll_time IS NULL AND leased_by IS NULL";
    assert!(world.database.count(waiting).await > 0);
    for replica in replicas {
        replica.kill();
    }
}

#[tokio::test]
async fn polls_of_many_feeds_of_one_site_are_spread() {
    const FEEDS: usize = 40;
    let world = World::of_blogs(Duration::from_hours(1)).await;
    let site = TestServer::start(|_, _| rss()).await;
    let feeds: Vec<String> = (0..FEEDS)
        .map(|n| format!("blogs:{}", site.url(&format!("/f{n}"))))
        .collect();
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    world.manager("kettle", &feeds).await;
    let begin = Instant::now();
    let scanner = world.ready_scanner().await;
    eventually("all feeds are polled", async || site.count() == FEEDS).await;
    // Twenty at once, and then ten a second.
    assert!(begin.elapsed() > Duration::from_millis(1_900));
    scanner.kill();
}

/// Connections of the database that wait for a lock.
const WAITING: &str =
    "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Waits until `is_so`, and returns the most connections that waited for locks at a time.
async fn most_waiting(world: &World, what: &str, is_so: &str) -> i64 {
    let most = AtomicI64::new(0);
    eventually(what, async || {
        most.fetch_max(world.database.count(WAITING).await, Ordering::SeqCst);
        world.database.count(is_so).await > 0
    })
    .await;
    most.into_inner()
}

#[tokio::test]
async fn polls_of_one_account_that_wait_for_the_database_leave_connections_to_others() {
    const SHARE: u32 = 2;
    const FEEDS: usize = 6;
    let mut world = World::of_blogs(Duration::from_hours(1)).await;
    world.config.database.max_connections = 2 * SHARE;
    let (release, released) = watch::channel(false);
    let site = TestServer::start(move |_, _| Answer::once(&released, rss())).await;
    let feeds: Vec<String> = (0..FEEDS)
        .map(|n| format!("blogs:{}", site.url(&format!("/f{n}"))))
        .collect();
    let feeds: Vec<&str> = feeds.iter().map(String::as_str).collect();
    world.manager("kettle", &feeds).await;
    let scanner = world.ready_scanner().await;
    eventually("all feeds are polled", async || site.count() == FEEDS).await;
    let mut lock = world.database.connect().await;
    lock.batch_execute("BEGIN; SELECT FROM feeds WHERE name LIKE 'blogs:%' FOR UPDATE")
        .await
        .unwrap();
    release.send_replace(true);
    let all = format!("(SELECT count(*) AS n FROM {WAITING}) AS w WHERE n >= {SHARE}");
    let before = most_waiting(&world, "its share is used up", &all).await;

    let mut conn = world.database.connect().await;
    let other = world.fixture.beside(&mut conn, "globex").await;
    let theirs = format!("blogs:{}", site.url("/o"));
    let instructions = watching("kettle", &[&theirs]);
    other.applied_manager(&mut conn, &instructions, &[]).await;
    let read = format!("feeds WHERE name = '{theirs}' AND cursor IS NOT NULL");
    let after = most_waiting(&world, "the other feed is read", &read).await;
    assert_eq!(before.max(after), i64::from(SHARE));
    drop(lock);
    scanner.kill();
}

#[tokio::test]
async fn feed_whose_poll_is_stored_slowly_is_slow() {
    let world = World::of_blogs(Duration::from_hours(1)).await;
    let (release, released) = watch::channel(false);
    let entry = "<item><title>A kettle</title><guid>one</guid></item></channel>";
    let body = FEED.replace("</channel>", entry);
    let site = TestServer::start(move |_, _| Answer::once(&released, document(&body))).await;
    let feed = format!("blogs:{}", site.url("/f"));
    world.manager("kettle", &[&feed]).await;
    let scanner = world.ready_scanner().await;
    eventually("the feed is polled", async || site.count() == 1).await;
    let mut lock = world.database.connect().await;
    lock.batch_execute("BEGIN; LOCK TABLE recent_posts IN SHARE MODE")
        .await
        .unwrap();
    release.send_replace(true);
    let long = format!(
        "{WAITING} AND query LIKE '%INSERT INTO recent_posts%' \
         AND query_start < clock_timestamp() - interval '5.1 seconds'"
    );
    eventually("the poll waits for long", async || {
        world.database.count(&long).await == 1
    })
    .await;
    drop(lock);
    eventually("the feed is read", async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 1
    })
    .await;
    assert_eq!(world.database.count("feeds WHERE slow").await, 1);
    scanner.kill();
}

#[tokio::test]
async fn backfills_of_one_account_leave_connections_to_others() {
    let mut world = World::new().await;
    // One for each account.
    world.config.database.max_connections = 3;
    let feeds = [LEMMY, HACKER_NEWS];
    world.manager("toaster", &feeds).await;
    let scanner = world.ready_scanner().await;
    world.publish("lemmy", "A kettle");
    world.publish("hackernews", "A kettle");
    eventually("both are kept", async || {
        world.database.count("recent_posts").await == 2
    })
    .await;
    let mut lock = world.database.connect().await;
    lock.batch_execute("BEGIN; LOCK TABLE scans IN SHARE MODE")
        .await
        .unwrap();
    world.manager("kettle", &feeds).await;
    let first = most_waiting(&world, "a step waits", WAITING).await;

    // Polls without matches go on.
    let mut conn = world.database.connect().await;
    let other = world.fixture.beside(&mut conn, "globex").await;
    let instructions = watching("pan", &["lemmy:c/rust"]);
    other.applied_manager(&mut conn, &instructions, &[]).await;
    let read = "feeds WHERE name = 'lemmy:c/rust' AND cursor IS NOT NULL";
    let then = most_waiting(&world, "the other feed is read", read).await;
    assert_eq!(first.max(then), 1);
    drop(lock);
    world.until_backfilled().await;
    scanner.kill();
}
