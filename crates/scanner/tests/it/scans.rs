//! The path from a platform's response to Scans and their events.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use bus::Received;
use domain::Timestamp;
use events::{EventSet, Message, ScanCreated};
use platform_simulator::NewPost;
use test_support::{TIMEOUT, eventually};

use crate::support::{HACKER_NEWS, LEMMY, World, post};

#[tokio::test]
async fn matches_become_scans_with_one_event_each() {
    let world = World::new().await;
    let mut events = world
        .bus
        .work(bus::topology::SCAN_CREATED, ScanCreated::KEYS);
    let kettles = world.manager("kettle", &[HACKER_NEWS, LEMMY]).await;
    let others = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;

    world.publish("hackernews", "A kettle that listens");
    world.publish("hackernews", "A toaster");
    world.publish("lemmy", "Which kettle?");
    world.until_scanned(kettles, 2).await;
    world.until_scanned(others, 1).await;
    let found: BTreeSet<String> = world.scanned(kettles).await.into_iter().collect();
    assert_eq!(
        found,
        ["A kettle that listens", "Which kettle?"]
            .map(str::to_owned)
            .into()
    );
    assert_eq!(world.scanned(others).await, ["Which kettle?"]);

    let mut told = BTreeSet::new();
    while told.len() < 3 {
        let next = tokio::time::timeout(TIMEOUT, events.next()).await;
        if let Received::Delivery(delivery) = next.expect("each Scan has an event") {
            let message = Message::decode(&delivery.payload).unwrap();
            let event = ScanCreated::from_any(message.event).unwrap();
            told.insert(event.name.scan.to_uuid().to_string());
        }
    }
    let stored = world.database.texts("id", "scans").await;
    assert_eq!(told, stored.into_iter().collect());
    replica.stop().await;
}

#[tokio::test]
async fn scans_posts_and_cursor_are_stored_together_or_not_at_all() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed was read once", async || {
        !world.feed(LEMMY, "cursor").await.is_empty()
    })
    .await;

    // No Scan can be stored.
    world
        .database
        .run(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'the disk is full'; END $$",
        )
        .await;
    world
        .database
        .run("CREATE TRIGGER refuse BEFORE INSERT ON scans EXECUTE FUNCTION refuse()")
        .await;
    world.publish("lemmy", "A kettle that listens");
    eventually("the failure shows", async || {
        world
            .feed(LEMMY, "last_error")
            .await
            .contains("the disk is full")
    })
    .await;
    assert_eq!(world.database.count("scans").await, 0);
    assert_eq!(world.database.count("posts").await, 0);
    // The platform gets few requests while nothing can be stored.
    let (before, begin) = (world.platforms.requests("/lemmy"), Instant::now());
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let asked = world.platforms.requests("/lemmy") - before;
    let most = 2 + 2 * begin.elapsed().as_secs();
    assert!(asked <= most, "asked {asked} times, more than {most}");

    world.database.run("DROP TRIGGER refuse ON scans").await;
    world.until_scanned(manager, 1).await;
    assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
    replica.stop().await;
}

#[tokio::test]
async fn a_post_of_two_feeds_is_one_scan() {
    let world = World::new().await;
    let feeds = [LEMMY, "lemmy:c/rust"];
    let (first, second) = (
        world.manager("kettle", &feeds).await,
        world.manager("listens", &feeds).await,
    );
    let replica = world.ready_scanner().await;
    for number in 0..10 {
        world.publish("lemmy", &format!("A kettle that listens, {number}"));
    }
    world.until_scanned(first, 10).await;
    world.until_scanned(second, 10).await;
    // Both feeds have been read again, beyond these posts.
    for _ in 0..4 {
        world.until_asked("/lemmy").await;
    }
    replica.stop().await;
    assert_eq!(world.scanned(first).await.len(), 10);
    assert_eq!(world.scanned(second).await.len(), 10);
    assert_eq!(world.database.count("posts").await, 10);
}

#[tokio::test]
async fn new_feed_is_read_back_to_the_configured_start() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_secs(3_600);
    let ago = |title: &str, minutes: u64| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_secs(minutes * 60))),
        ..post("hackernews", title)
    };
    world.platforms.publish(vec![
        ago("An ancient kettle", 120),
        ago("A kettle of this hour", 30),
    ]);
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A kettle of now");
    world.until_scanned(manager, 2).await;
    replica.stop().await;
    assert_eq!(
        world.scanned(manager).await,
        ["A kettle of this hour", "A kettle of now"]
    );
}
