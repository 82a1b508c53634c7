//! Several scanners with the same feeds.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection as _;
use platform_simulator::{Fault, FaultKind};
use test_support::{Replica, eventually};

use crate::{
    backfill::{DAY, aged, ask},
    erasure::until_walked,
    support::{HACKER_NEWS, LEMMY, World, metric},
};

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

/// The reason that owners read.
const REASON: &str = "the service stopped 3 times in a row while it worked on this";

/// Kills three scanners, each while it has leased one of these rows, and starts a fourth.
async fn after_three_deaths(world: &World, rows: &str) -> Replica {
    for _ in 0..3 {
        let replica = world.scanner();
        let leased = format!("{rows} AND leased_by = '{}'", replica.backbone.replica);
        eventually("it is leased", async || {
            world.database.count(&leased).await == 1
        })
        .await;
        replica.kill();
    }
    world.scanner()
}

/// Waits until one of these rows shows that its item is set aside, which its metric counts.
async fn until_set_aside(world: &World, kind: &str, rows: &str) {
    eventually("it is set aside", async || {
        world.database.count(rows).await == 1
    })
    .await;
    let counted = format!("earshot_work_items_total{{kind=\"{kind}\",outcome=\"set_aside\"}} 1");
    eventually("it is counted", async || metric(&counted)).await;
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
    let replica = after_three_deaths(&world, "leases WHERE kind = 'backfill'").await;
    let failed = format!("backfills WHERE state = 'FAILED' AND error = '{REASON}'");
    until_set_aside(&world, "backfill", &failed).await;
    lock.batch_execute("ROLLBACK").await.unwrap();
    let other = world.manager("kettle", &[LEMMY]).await;
    world.until_scanned(other, 1).await;
    assert!(world.scanned(deadly).await.is_empty());
    replica.kill();
}

/// Otherwise a post that ends each process would do so three times for each Manager.
#[tokio::test]
async fn each_further_manager_of_a_deadly_backfill_costs_one_scanner() {
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
    for _ in 0..2 {
        world.manager("kettle", &[LEMMY]).await;
    }
    let lease = "leases WHERE kind = 'backfill'";
    let replica = after_three_deaths(&world, lease).await;
    let failed = "backfills WHERE state = 'FAILED'";
    until_set_aside(&world, "backfill", failed).await;
    let again = format!("{lease} AND leased_by = '{}'", replica.backbone.replica);
    eventually("the other one is tried", async || {
        world.database.count(&again).await == 1
    })
    .await;
    replica.kill();
    let replica = world.scanner();
    eventually("it is set aside too", async || {
        world.database.count(failed).await == 2
    })
    .await;
    eventually("nothing is left of the lease", async || {
        world.database.count(lease).await == 0
    })
    .await;
    replica.kill();
    lock.batch_execute("ROLLBACK").await.unwrap();
}

/// A world where only rechecks and look-backs send requests after the first poll.
async fn rarely_polled() -> World {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_secs(3_600);
    for platform in &mut world.config.platforms {
        platform.poll_interval = Some(Duration::from_secs(3_600));
        platform.access.erase_deleted = Some(["lemmy", "hackernews"].contains(&&*platform.name));
    }
    world
}

#[tokio::test]
async fn look_back_that_ends_three_scanners_fails_and_the_others_go_on() {
    let world = rarely_polled().await;
    for platform in ["lemmy", "hackernews"] {
        let old = aged(platform, "An old kettle", 2 * DAY);
        world.platforms.publish(vec![old]);
    }
    let deadly = world.manager("kettle", &[LEMMY]).await;
    let other = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    for feed in [LEMMY, HACKER_NEWS] {
        eventually("the feed was read", async || {
            !world.feed(feed, "cursor").await.is_empty()
        })
        .await;
    }
    world.until_backfilled().await;
    replica.stop().await;

    world.platforms.fail(late(600_000).times(1_000));
    ask(&world, deadly, 30, true).await;
    let leased = format!("look_backs WHERE feed = '{LEMMY}'");
    let replica = after_three_deaths(&world, &leased).await;
    let failed = format!("backfills WHERE state = 'FAILED' AND error = '{REASON}'");
    until_set_aside(&world, "look_back", &failed).await;
    ask(&world, other, 30, true).await;
    world.until(other, "An old kettle").await;
    assert!(world.scanned(deadly).await.is_empty());
    replica.stop().await;
}

#[tokio::test]
async fn recheck_that_ends_three_scanners_is_set_aside_and_the_others_go_on() {
    let world = rarely_polled().await;
    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    for platform in ["lemmy", "hackernews"] {
        world.publish(platform, "A kettle");
    }
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 2).await;
    for platform in ["lemmy", "hackernews"] {
        until_walked(&world, platform).await;
    }
    replica.stop().await;

    world.platforms.fail(late(600_000).times(1_000));
    let due = async |platform: &str| {
        let due = format!(
            "UPDATE rechecks SET next_time = now(), begin_time = now() WHERE platform = '{platform}'"
        );
        world.database.run(&due).await
    };
    due("lemmy").await;
    let replica = after_three_deaths(&world, "rechecks WHERE platform = 'lemmy'").await;
    // The walk is past the post.
    let aside = "rechecks WHERE platform = 'lemmy' AND leased_by IS NULL AND crash_count = 4 \
                 AND next_time > now() + interval '30 seconds' AND stage = 'RECENT'";
    until_set_aside(&world, "recheck", aside).await;
    due("hackernews").await;
    until_walked(&world, "hackernews").await;
    replica.stop().await;
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
