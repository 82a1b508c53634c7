//! Dispatchers that come, go and die.

use std::time::{Duration, Instant};

use test_support::{Answer, eventually};
use tokio::sync::watch;

use crate::support::{World, after_warming, always, changing, scripted};

#[tokio::test]
async fn scan_whose_event_is_lost_is_still_delivered() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    world.scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    for replica in replicas {
        replica.stop().await;
    }
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn a_scan_that_dispatchers_died_with_three_times_is_set_aside_and_no_other() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let deadly = world.scan(manager, "deadly").await;
    // Three dispatchers died with it, the last one a minute ago.
    let lease = format!(
        "WITH dead AS (INSERT INTO replicas (id, service, heartbeat_time) \
             VALUES (gen_random_uuid(), 'webhook-dispatcher', now() - interval '1 minute') RETURNING id) \
         INSERT INTO leases (kind, key, leased_by, crash_count) SELECT 'fan_out', '{}', id, 2 FROM dead",
        deadly.scan.to_uuid()
    );
    world.database.run(&lease).await;
    // More than a batch.
    world.scans(manager, 200).await;
    let replica = world.ready_dispatcher().await;
    let aside = "leases WHERE leased_by IS NULL AND crash_count = 4";
    eventually("it is set aside", async || {
        world.database.count(aside).await == 1
    })
    .await;
    // It must not be tried while a slow machine makes the other deliveries.
    world
        .database
        .run("UPDATE leases SET next_time = now() + interval '1 day' WHERE crash_count = 4")
        .await;
    world.until("SUCCEEDED", 200).await;
    eventually("the others are released", async || {
        world.database.count("leases").await == 1
    })
    .await;
    assert_eq!(world.database.count("scans WHERE NOT fanned_out").await, 1);

    world
        .database
        .run("UPDATE leases SET next_time = now()")
        .await;
    world.until("SUCCEEDED", 201).await;
    replica.stop().await;
}

#[tokio::test]
async fn refused_fan_out_delays_no_other_scan() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let refused = world.scan(manager, "refused").await;
    for statement in [
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$",
        &format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON deliveries FOR EACH ROW \
             WHEN (NEW.scan_id = '{}') EXECUTE FUNCTION refuse()",
            refused.scan.to_uuid()
        ),
    ] {
        world.database.run(statement).await;
    }
    // More than a batch for each.
    world.scans(manager, 300).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    let delivered = async |count| {
        eventually("they are delivered", async || {
            world.in_state("SUCCEEDED").await == count
        })
        .await;
    };
    delivered(300).await;
    assert_eq!(world.database.count("scans WHERE NOT fanned_out").await, 1);
    world
        .database
        .run("DROP TRIGGER refuse ON deliveries")
        .await;
    delivered(301).await;
    for replica in replicas {
        replica.stop().await;
    }
    assert_eq!(receiver.count(), 301);
}

#[tokio::test]
async fn open_requests_of_a_killed_dispatcher_are_repeated() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Hang]).await;
    let manager = world.manager_for(&receiver).await;
    let first = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    eventually("the request is open", async || receiver.count() == 1).await;
    let second = world.ready_dispatcher().await;
    world.beats(2).await;
    assert_eq!(receiver.count(), 1, "the lease is not kept");

    first.kill();
    world.until("SUCCEEDED", 1).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
    second.stop().await;
}

/// If this were left to the sweep, each round after the first would take five seconds, because it starts when the
/// previous sweep has ended.
#[tokio::test]
async fn freed_deliveries_are_taken_over_at_once() {
    // A busy machine may need several tries.
    const TRIES: usize = 10;
    const AT_ONCE: Duration = Duration::from_secs(3);
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    eventually("it may take over", async || {
        replica.backbone.may_take_over()
    })
    .await;
    let (mut fastest, mut rounds) = (Duration::MAX, 0);
    while fastest >= AT_ONCE && rounds < TRIES {
        let begin = Instant::now();
        // Like a delivery of a replica whose heartbeat has just become too old.
        let orphaned = "UPDATE deliveries SET state = 'IN_FLIGHT', leased_by = gen_random_uuid()";
        assert_eq!(world.database.run(orphaned).await, 1);
        world.until("SUCCEEDED", 1).await;
        if rounds > 0 {
            fastest = fastest.min(begin.elapsed());
        }
        rounds += 1;
    }
    assert!(fastest < AT_ONCE, "{fastest:?}");
    replica.stop().await;
    assert_eq!(receiver.count(), 1 + rounds);
}

#[tokio::test]
async fn a_shutdown_waits_for_open_requests_and_records_them() {
    let world = World::new().await;
    let receiver = after_warming(Answer::after(
        Duration::from_millis(500),
        Answer::Status(200),
    ))
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    world.scans_and_tell(manager, 4).await;
    eventually("the requests are open", async || {
        receiver.count() == warm + 4
    })
    .await;
    replica.stop().await;
    assert_eq!(world.in_state("SUCCEEDED").await, 8 + 4);
    assert_eq!(world.database.count("delivery_attempts").await, 8 + 4);
    assert_eq!(world.database.count("replicas").await, 0);
}

#[tokio::test]
async fn lost_database_connections_lose_no_delivery() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    for number in 0..20 {
        world
            .publish_scan(manager, &format!("kettle {number}"))
            .await;
        if number % 4 == 0 {
            world.database.disconnect_all().await;
        }
    }
    // A commit whose answer was lost leaves a lease that is only found after a while.
    eventually("all are delivered", async || {
        world.in_state("SUCCEEDED").await == 20
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn hung_endpoint_blocks_only_its_lane_on_each_replica() {
    const REPLICAS: usize = 3;
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 2;
    let (release, held) = watch::channel(false);
    let (receiver, answer) = changing(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let well = always(Answer::Status(200)).await;
    let well_manager = world.manager_for(&well).await;
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(world.ready_dispatcher().await);
    }
    // Enough that each replica has seen it succeed, so that its lanes have a high limit.
    for number in 0..60 {
        world.publish_scan(manager, &format!("warm {number}")).await;
    }
    world.until("SUCCEEDED", 60).await;
    *answer.lock().unwrap() = Answer::once(&held, Answer::Status(500));
    let before = receiver.count();
    for number in 0..60 {
        world.publish_scan(manager, &format!("hung {number}")).await;
    }
    eventually("more than one holds it", async || {
        receiver.count() - before > 2
    })
    .await;
    for number in 0..12 {
        world
            .publish_scan(well_manager, &format!("well {number}"))
            .await;
        eventually("it goes at once", async || well.count() == number + 1).await;
    }
    let open = receiver.count() - before;
    assert!(open <= 2 * REPLICAS, "{open} are still open");
    release.send(true).expect("the receiver waits");
    let open = "connection_lanes WHERE open_until > now()";
    eventually("its breaker opens", async || {
        world.database.count(open).await == 1
    })
    .await;
    let most = receiver.most_open();
    assert!((3..=2 * REPLICAS).contains(&most), "{most} at a time");
    for replica in replicas {
        replica.kill();
    }
}

#[tokio::test]
async fn joining_replica_takes_its_share() {
    let world = World::new().await;
    let slow = Answer::after(Duration::from_millis(200), Answer::Status(200));
    let receiver = always(slow).await;
    let manager = world.manager_for(&receiver).await;
    // For one replica alone it takes half a minute.
    world.scans(manager, 1_200).await;
    let first = world.ready_dispatcher().await;
    eventually("the backlog is worked off", async || {
        receiver.most_open() == 8
    })
    .await;
    let second = world.dispatcher();
    eventually("both have some in hand", async || receiver.most_open() > 8).await;
    first.kill();
    second.kill();
}
