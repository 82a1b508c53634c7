//! Feeds of one account do not delay those of another.

use std::time::{Duration, Instant};

use domain::manager::SourceType;
use runtime::config::{Access, Kind, PlatformConfig};
use test_support::{Answer, TestServer, eventually};

use crate::support::{World, watching};

const FEED: &str =
    "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>a blog</title></channel></rss>";

fn rss() -> Answer {
    Answer::Full {
        status: 200,
        headers: vec![("content-type", "application/rss+xml".to_owned())],
        body: FEED.as_bytes().to_vec(),
    }
}

fn blogs(poll_interval: Duration) -> PlatformConfig {
    PlatformConfig {
        name: "blogs".to_owned(),
        kind: Kind::Feed,
        source: SourceType::Forum,
        base_url: None,
        items_url: None,
        poll_interval: Some(poll_interval),
        access: Access::default(),
    }
}

#[tokio::test]
async fn feeds_that_never_answer_do_not_delay_another_accounts_first_poll() {
    const HOSTILE: usize = 100;
    let mut world = World::new().await;
    world.config.platforms = vec![blogs(Duration::from_millis(200))];
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
    let mut world = World::new().await;
    world.config.platforms = vec![blogs(Duration::from_hours(1))];
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
