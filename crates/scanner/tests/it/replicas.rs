//! Several scanners over the same feeds.

use std::{collections::BTreeSet, time::Duration};

use domain::Timestamp;
use platforms::simulator::{Fault, FaultKind};
use test_support::{Lateness, eventually};

use crate::support::{HACKER_NEWS, LEMMY, SOON, World};

#[tokio::test]
async fn two_replicas_share_a_burst() {
    let world = World::new().await;
    let feeds = [HACKER_NEWS, LEMMY, "lemmy:c/rust", "blog:newest"];
    let manager = world.manager("kettle", &feeds).await;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    let mut expected = BTreeSet::new();
    for number in 0..40 {
        for platform in ["hackernews", "lemmy", "feed:blog"] {
            let title = format!("Kettle {number} of {platform}");
            world.publish(platform, &title);
            expected.insert(title);
        }
        if number % 8 == 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    world.until_scanned(manager, 120).await;
    for path in ["/hackernews", "/lemmy", "/feeds"] {
        world.until_asked(path).await;
    }
    for replica in replicas {
        replica.stop().await;
    }
    let scanned = world.scanned(manager).await;
    assert_eq!(scanned.len(), 120, "a Scan was made twice");
    assert_eq!(scanned.into_iter().collect::<BTreeSet<_>>(), expected);
    assert_eq!(world.database.count("posts").await, 120);
}

fn late(milliseconds: u64) -> Fault {
    Fault {
        platform: "lemmy".to_owned(),
        kind: FaultKind::Delay,
        times: 1,
        value: milliseconds,
        path: None,
    }
}

#[tokio::test]
async fn another_takes_over_from_one_that_died() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.platforms.fail(late(30_000));
    let first = world.ready_scanner().await;
    world.until_asked("/lemmy").await;
    let second = world.ready_scanner().await;
    world.publish("lemmy", "A kettle that listens");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(
        world.scanned(manager).await.is_empty(),
        "the lease is not kept"
    );

    let lateness = Lateness::watch(&world.database).await;
    first.kill();
    let died = Timestamp::now();
    world.until_scanned(manager, 1).await;
    let took = format!("extract(epoch FROM max(create_time) - '{died}'::timestamptz)");
    let texts = world.database.texts(&took, "scans").await;
    let took = Duration::from_secs_f64(texts[0].parse().unwrap());
    println!(
        "{took:.2?} until it was read, late by {:?}",
        lateness.worst()
    );
    // The look, its statement, the poll and the storing may each be late.
    let most = Duration::from_secs(5) + 4 * lateness.worst();
    assert!(took < most, "{took:?} of {most:?}");
    second.stop().await;
    assert_eq!(world.scanned(manager).await.len(), 1);
}

#[tokio::test]
async fn a_shutdown_ends_the_polls_that_are_open() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.platforms.fail(late(700));
    let replica = world.scanner();
    world.until_asked("/lemmy").await;
    world.publish("lemmy", "A kettle that listens");
    replica.stop().await;
    assert_eq!(world.scanned(manager).await, ["A kettle that listens"]);
    assert_eq!(
        world
            .database
            .count("feeds WHERE leased_by IS NOT NULL")
            .await,
        0
    );
    assert_eq!(world.database.count("replicas").await, 0);
}

#[tokio::test]
async fn a_poll_that_lost_its_lease_stores_nothing() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.platforms.fail(late(800));
    let replica = world.ready_scanner().await;
    world.until_asked("/lemmy").await;
    world.publish("lemmy", "A kettle that listens");
    let other = "00000000-0000-0000-0000-000000000001";
    world
        .database
        .run(&format!(
            "INSERT INTO replicas (id, service, heartbeat_time) VALUES ('{other}', 'scanner', now() + interval '1 hour')"
        ))
        .await;
    world
        .database
        .run(&format!("UPDATE feeds SET leased_by = '{other}'"))
        .await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert!(world.scanned(manager).await.is_empty());
    assert_eq!(
        world.feed(LEMMY, "leased_by").await,
        other,
        "not its to end"
    );
    world
        .database
        .run("UPDATE feeds SET leased_by = NULL")
        .await;
    eventually("it is read once it is free", SOON, async || {
        world.scanned(manager).await.len() == 1
    })
    .await;
    replica.stop().await;
}
