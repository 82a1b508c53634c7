//! Several scanners with the same feeds.

use std::{collections::BTreeSet, time::Duration};

use diesel_async::SimpleAsyncConnection as _;
use platforms::simulator::{Fault, FaultKind};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, World};

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
    Fault::new("lemmy", FaultKind::Delay, milliseconds)
}

/// Waits for the first request, which may already be there when a replica is ready.
async fn until_first_asked(world: &World) {
    eventually("the first request", async || {
        world.platforms.requests("/lemmy") > 0
    })
    .await;
}

#[tokio::test]
async fn feeds_of_a_dead_replica_are_taken_over() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.platforms.fail(late(600_000));
    let first = world.ready_scanner().await;
    until_first_asked(&world).await;
    let second = world.ready_scanner().await;
    world.publish("lemmy", "A kettle that listens");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(
        world.scanned(manager).await.is_empty(),
        "the lease is not kept"
    );

    first.kill();
    world.until_scanned(manager, 1).await;
    second.stop().await;
    assert_eq!(world.scanned(manager).await.len(), 1);
}

#[tokio::test]
async fn feed_that_ends_three_scanners_is_set_aside_and_the_others_go_on() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    world.platforms.fail(late(600_000).times(1_000));
    for number in 1..=3 {
        let replica = world.scanner();
        let leased = format!(
            "feeds WHERE name = '{LEMMY}' AND leased_by = '{}'",
            replica.backbone.replica
        );
        eventually("it is leased", async || {
            world.database.count(&leased).await == 1
        })
        .await;
        world.publish("hackernews", &format!("Kettle {number}"));
        world.until_scanned(manager, number).await;
        replica.kill();
    }
    let replica = world.scanner();
    let set_aside = format!(
        "feeds WHERE name = '{LEMMY}' AND trouble = 'FAILING' AND leased_by IS NULL \
         AND last_error = 'the service stopped 3 times in a row while it worked on this'"
    );
    eventually("it is set aside", async || {
        world.database.count(&set_aside).await == 1
    })
    .await;
    world.publish("hackernews", "Kettle 4");
    world.until_scanned(manager, 4).await;
    replica.kill();
}

#[tokio::test]
async fn backfill_that_ends_three_scanners_fails_and_the_others_go_on() {
    let world = World::new().await;
    world.manager("toaster", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "A kettle");
    eventually("it is kept", async || {
        world.database.count("recent_posts").await == 1
    })
    .await;
    replica.stop().await;
    let mut lock = world.database.connect().await;
    lock.batch_execute("BEGIN; LOCK TABLE scans IN SHARE MODE")
        .await
        .unwrap();
    let deadly = world.manager("kettle", &[LEMMY]).await;
    for _ in 0..3 {
        let replica = world.scanner();
        let leased = format!(
            "leases WHERE kind = 'backfill' AND leased_by = '{}'",
            replica.backbone.replica
        );
        eventually("it is leased", async || {
            world.database.count(&leased).await == 1
        })
        .await;
        replica.kill();
    }
    let replica = world.scanner();
    let failed = "backfills WHERE state = 'FAILED' \
         AND error = 'the service stopped 3 times in a row while it worked on this'";
    eventually("it is set aside", async || {
        world.database.count(failed).await == 1
    })
    .await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    let other = world.manager("kettle", &[LEMMY]).await;
    world.until_scanned(other, 1).await;
    assert!(world.scanned(deadly).await.is_empty());
    replica.kill();
}

#[tokio::test]
async fn shutdown_completes_open_polls() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.platforms.fail(late(3_000));
    world.publish("lemmy", "A kettle that listens");
    let replica = world.scanner();
    until_first_asked(&world).await;
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
    world.platforms.fail(late(3_000));
    let other = "00000000-0000-0000-0000-000000000001";
    // A time that is further ahead counts as wrong, and is corrected.
    world
        .database
        .run(&format!(
            "INSERT INTO replicas (id, service, heartbeat_time) VALUES ('{other}', 'scanner', now() + interval '50 seconds')"
        ))
        .await;
    let replica = world.ready_scanner().await;
    until_first_asked(&world).await;
    world
        .database
        .run(&format!("UPDATE feeds SET leased_by = '{other}'"))
        .await;
    world.publish("lemmy", "A kettle that listens");
    tokio::time::sleep(Duration::from_millis(3_500)).await;
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
    eventually("it is read once it is free", async || {
        world.scanned(manager).await.len() == 1
    })
    .await;
    replica.stop().await;
}
