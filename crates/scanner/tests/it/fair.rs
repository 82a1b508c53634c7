//! Feeds of one account do not delay those of another.

use std::time::Duration;

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

#[tokio::test]
async fn feeds_that_never_answer_do_not_delay_another_accounts_first_poll() {
    const HOSTILE: usize = 100;
    let mut world = World::new().await;
    world.config.platforms = vec![PlatformConfig {
        name: "blogs".to_owned(),
        kind: Kind::Feed,
        source: SourceType::Forum,
        base_url: None,
        items_url: None,
        poll_interval: Some(Duration::from_millis(200)),
        access: Access::default(),
    }];
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
