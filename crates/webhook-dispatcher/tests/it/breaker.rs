//! Circuit breakers, over replicas and restarts.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use test_support::{Answer, TestServer, eventually};

use crate::support::{SOON, World, always};

const OPEN: &str = "connection_lanes WHERE open_until > now()";

/// Its wait is over.
async fn half_open(world: &World) {
    world
        .database
        .run("UPDATE connection_lanes SET open_until = now(), next_due_time = now()")
        .await;
}

/// Has a failing Connection's breaker open, with deliveries waiting behind it.
async fn opened(world: &mut World, receiver: &TestServer) -> domain::ManagerName {
    world.config.dispatcher.retry_schedule = vec![Duration::from_millis(200); 50];
    let connection = world.connection(receiver).await;
    world.manager(&[connection]).await
}

async fn until_open(world: &World) {
    eventually("the breaker opens", SOON, async || {
        world.database.count(OPEN).await == 1
    })
    .await;
    eventually("nothing is in hand", SOON, async || {
        world.in_state("IN_FLIGHT").await == 0
    })
    .await;
}

#[tokio::test]
async fn one_probe_over_all_replicas() {
    let mut world = World::new().await;
    let receiver = always(Answer::after(
        Duration::from_millis(300),
        Answer::Status(500),
    ))
    .await;
    let manager = opened(&mut world, &receiver).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    world.scans_and_tell(manager, 8).await;
    until_open(&world).await;
    let asked = receiver.count();
    // Each replica may open another before the fifth failure is written.
    assert!(asked <= 5 + 2 * 3, "{asked} requests until it opened");
    for probes in 1..=3 {
        half_open(&world).await;
        eventually("a probe is made", SOON, async || {
            receiver.count() > asked + probes - 1
        })
        .await;
        until_open(&world).await;
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert_eq!(receiver.count(), asked + probes, "one probe each time");
    }
    let doubled = "connection_lanes WHERE open_until > now() + interval '200 seconds'";
    assert_eq!(world.database.count(doubled).await, 1, "the wait doubles");
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_probe_that_succeeds_lets_all_pass() {
    let mut world = World::new().await;
    let mood = Arc::new(Mutex::new(Answer::Status(503)));
    let answers = Arc::clone(&mood);
    let receiver = TestServer::start(move |_, _| answers.lock().unwrap().clone()).await;
    let manager = opened(&mut world, &receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 20).await;
    until_open(&world).await;
    let asked = receiver.count();
    *mood.lock().unwrap() = Answer::Status(200);
    half_open(&world).await;
    world.until("SUCCEEDED", 20).await;
    assert_eq!(receiver.count(), asked + 20);
    let clean =
        "connection_lanes WHERE open_until IS NULL AND failure_streak = 0 AND probed_by IS NULL";
    assert_eq!(world.database.count(clean).await, 1);
    replica.stop().await;
}

#[tokio::test]
async fn a_probe_whose_replica_dies_is_made_by_another() {
    let mut world = World::new().await;
    world.config.dispatcher.timeout = Duration::from_secs(60);
    let mood = Arc::new(Mutex::new(Answer::Status(503)));
    let answers = Arc::clone(&mood);
    let receiver = TestServer::start(move |_, _| answers.lock().unwrap().clone()).await;
    let manager = opened(&mut world, &receiver).await;
    let first = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 4).await;
    until_open(&world).await;
    *mood.lock().unwrap() = Answer::Hang;
    let asked = receiver.count();
    half_open(&world).await;
    eventually("the probe is under way", SOON, async || {
        receiver.count() == asked + 1
    })
    .await;
    first.kill();
    *mood.lock().unwrap() = Answer::Status(200);
    let second = world.ready_dispatcher().await;
    tokio::time::sleep(Duration::from_millis(5_500)).await;
    // The probe was to be waited for, a minute and more, had its replica not died.
    half_open(&world).await;
    world.until("SUCCEEDED", 4).await;
    second.stop().await;
}

#[tokio::test]
async fn what_a_person_asks_for_passes_an_open_breaker() {
    let mut world = World::new().await;
    let mood = Arc::new(Mutex::new(Answer::Status(503)));
    let answers = Arc::clone(&mood);
    let receiver = TestServer::start(move |_, _| answers.lock().unwrap().clone()).await;
    let manager = opened(&mut world, &receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 6).await;
    until_open(&world).await;
    *mood.lock().unwrap() = Answer::Status(200);
    let urgent = "UPDATE deliveries SET urgent = true, next_attempt_time = now() WHERE id IN \
                  (SELECT id FROM deliveries WHERE state = 'RETRYING' LIMIT 1)";
    assert_eq!(world.database.run(urgent).await, 1);
    // It succeeds, which closes the breaker for the others.
    world.until("SUCCEEDED", 6).await;
    assert_eq!(world.database.count("deliveries WHERE urgent").await, 0);
    replica.stop().await;
}

#[tokio::test]
async fn after_five_days_of_failures_a_connection_is_disabled() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let receiver = always(Answer::Status(503)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 25).await;
    for probe in 0..30 {
        until_open(&world).await;
        if probe == 10 {
            // So long, but too few.
            world
                .database
                .run("UPDATE connection_lanes SET failing_since = now() - interval '121 hours'")
                .await;
        }
        let disabled = "connections WHERE state = 'DISABLED'";
        if world.database.count(disabled).await == 1 {
            let failing = "deliveries WHERE state = 'RETRYING'";
            assert_eq!(world.database.count(failing).await, 20);
            let reasons = world.database.texts("state_reason", "connections").await;
            assert!(
                reasons[0].starts_with("no delivery has succeeded since "),
                "{reasons:?}"
            );
            assert_eq!(world.in_state("PENDING").await, 5);
            replica.stop().await;
            return;
        }
        let asked = receiver.count();
        half_open(&world).await;
        eventually("a probe is made", SOON, async || receiver.count() > asked).await;
    }
    panic!("it was never disabled");
}
