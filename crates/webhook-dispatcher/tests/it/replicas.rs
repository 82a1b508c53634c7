//! Dispatchers that come, go and die.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use domain::Timestamp;
use test_support::{Answer, Lateness, TestServer, eventually};

use crate::support::{SOON, World, after_warming, always, scripted};

#[tokio::test]
async fn a_scan_whose_event_is_lost_is_delivered_all_the_same() {
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
async fn a_scan_whose_deliveries_the_database_refuses_holds_up_no_other() {
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
    // More than a batch of each.
    world.scans(manager, 300).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    let delivered = async |count| {
        eventually("they are delivered", Duration::from_secs(90), async || {
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
async fn what_a_killed_dispatcher_had_open_is_repeated_by_another() {
    let mut world = World::new().await;
    world.config.dispatcher.timeout = Duration::from_secs(20);
    let receiver = scripted(vec![Answer::Hang]).await;
    let manager = world.manager_for(&receiver).await;
    let first = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    eventually("the request is open", SOON, async || receiver.count() == 1).await;
    let second = world.ready_dispatcher().await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.count(), 1, "the lease is not kept");

    let lateness = Lateness::watch(&world.database).await;
    first.kill();
    let died = Timestamp::now();
    world.until("SUCCEEDED", 1).await;
    let took = until_attempted(&world, died).await;
    println!(
        "{took:.2?} until it was repeated, late by {:?}",
        lateness.worst()
    );
    // The look, its statement, the claim and the request may each be late.
    let most = Duration::from_secs(5) + 4 * lateness.worst();
    assert!(took < most, "{took:?} of {most:?}");
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
    second.stop().await;
}

/// Time from `begin` to the last attempt, by the log.
async fn until_attempted(world: &World, begin: Timestamp) -> Duration {
    let took = format!("extract(epoch FROM max(last_attempt_time) - '{begin}'::timestamptz)");
    let texts = world.database.texts(&took, "deliveries").await;
    Duration::from_secs_f64(texts[0].parse().unwrap())
}

#[tokio::test]
async fn what_is_free_is_taken_over_within_a_quarter_of_a_second() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    eventually("it may take over", SOON, async || {
        replica.backbone.may_take_over()
    })
    .await;
    let lateness = Lateness::watch(&world.database).await;
    for _ in 0..4 {
        // As of one whose heartbeat has just become too old.
        let begin = Timestamp::now();
        let orphaned = "UPDATE deliveries SET state = 'IN_FLIGHT', leased_by = gen_random_uuid()";
        assert_eq!(world.database.run(orphaned).await, 1);
        world.until("SUCCEEDED", 1).await;
        let took = until_attempted(&world, begin).await;
        println!(
            "{took:.2?} until it was sent, late by {:?}",
            lateness.worst()
        );
        // The look, three statements and a claim, in threads that wait for a core like this one.
        let most = Duration::from_millis(400) + 8 * lateness.worst();
        assert!(took < most, "{took:?} of {most:?}");
    }
    replica.stop().await;
    assert_eq!(receiver.count(), 5);
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
    eventually("the requests are open", SOON, async || {
        receiver.count() == warm + 4
    })
    .await;
    replica.stop().await;
    assert_eq!(world.in_state("SUCCEEDED").await, 8 + 4);
    assert_eq!(world.database.count("delivery_attempts").await, 8 + 4);
    assert_eq!(world.database.count("replicas").await, 0);
}

#[tokio::test]
async fn connections_lost_in_between_lose_no_delivery() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    for number in 0..20 {
        world
            .scan_and_tell(manager, &format!("kettle {number}"))
            .await;
        if number % 4 == 0 {
            world.database.disconnect_all().await;
        }
    }
    // A commit whose answer was lost leaves a lease that takes a while to be missed.
    eventually("all are delivered", 3 * SOON, async || {
        world.in_state("SUCCEEDED").await == 20
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_hung_endpoint_holds_a_lane_of_each_replica_and_no_more() {
    const REPLICAS: usize = 3;
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 2;
    world.config.dispatcher.timeout = Duration::from_secs(2);
    let mood = Arc::new(Mutex::new(Answer::Status(200)));
    let answers = Arc::clone(&mood);
    let receiver = TestServer::start(move |_, _| answers.lock().unwrap().clone()).await;
    let manager = world.manager_for(&receiver).await;
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        replicas.push(world.ready_dispatcher().await);
    }
    // Enough that each of them has seen it succeed, and its lanes are wide.
    for number in 0..60 {
        world
            .scan_and_tell(manager, &format!("warm {number}"))
            .await;
    }
    world.until("SUCCEEDED", 60).await;
    *mood.lock().unwrap() = Answer::Hang;
    let before = receiver.count();
    for number in 0..60 {
        world
            .scan_and_tell(manager, &format!("hung {number}"))
            .await;
    }
    eventually("more than one holds it", SOON, async || {
        receiver.count() - before > 2
    })
    .await;
    let open = "connection_lanes WHERE open_until > now()";
    eventually("its breaker opens", SOON, async || {
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
async fn one_that_joins_takes_part_within_five_seconds() {
    let world = World::new().await;
    let slow = Answer::after(Duration::from_millis(200), Answer::Status(200));
    let receiver = always(slow).await;
    let manager = world.manager_for(&receiver).await;
    // Ten seconds for one alone.
    world.scans(manager, 400).await;
    let first = world.ready_dispatcher().await;
    eventually("the backlog is worked off", SOON, async || {
        receiver.most_open() == 8
    })
    .await;
    let second = world.dispatcher();
    let took = eventually("both have some in hand", SOON, async || {
        receiver.most_open() > 8
    })
    .await;
    println!("{took:.1?} until it took part");
    assert!(took < Duration::from_secs(5), "{took:?}");
    first.kill();
    second.kill();
}
