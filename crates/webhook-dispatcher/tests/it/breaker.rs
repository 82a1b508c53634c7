//! Circuit breakers with several replicas and restarts.

use std::time::Duration;

use test_support::{Answer, TestServer, eventually};

use crate::support::{World, always, changing};

const OPEN: &str = "connection_lanes WHERE open_until > now()";

/// Ends the breaker's wait.
async fn half_open(world: &World) {
    world
        .database
        .run("UPDATE connection_lanes SET open_until = now(), next_due_time = now()")
        .await;
}

/// Makes a Connection fail until its circuit breaker opens, with deliveries waiting behind it.
async fn opened(world: &mut World, receiver: &TestServer) -> domain::ManagerName {
    world.config.dispatcher.retry_schedule = vec![Duration::from_millis(200); 50];
    let connection = world.connection(receiver).await;
    world.manager(&[connection]).await
}

async fn until_open(world: &World) {
    eventually("the breaker opens", async || {
        world.database.count(OPEN).await == 1
    })
    .await;
    eventually("nothing is in hand", async || {
        world.in_state("IN_FLIGHT").await == 0
    })
    .await;
}

#[tokio::test]
async fn replicas_share_one_probe() {
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
    // Four failures are written before the fifth, and each delivery has at most one other request.
    assert!(asked <= 4 + 8, "{asked} requests until it opened");
    for _ in 0..3 {
        let before = receiver.count();
        half_open(&world).await;
        eventually("a probe is made", async || receiver.count() > before).await;
        until_open(&world).await;
        world.beats(1).await;
    }
    // Each replica alone would have made three. A busy machine can hold up the heartbeat of the one that probes, and
    // another then repeats its probe.
    let probes = receiver.count() - asked;
    assert!((3..6).contains(&probes), "{probes} probes in three rounds");
    let doubled = "connection_lanes WHERE open_until > now() + interval '200 seconds'";
    assert_eq!(world.database.count(doubled).await, 1, "the wait doubles");
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn successful_probe_closes_the_breaker() {
    let mut world = World::new().await;
    let (receiver, answer) = changing(Answer::Status(503)).await;
    let manager = opened(&mut world, &receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 20).await;
    until_open(&world).await;
    let asked = receiver.count();
    *answer.lock().unwrap() = Answer::Status(200);
    half_open(&world).await;
    world.until("SUCCEEDED", 20).await;
    assert_eq!(receiver.count(), asked + 20);
    let clean =
        "connection_lanes WHERE open_until IS NULL AND failure_streak = 0 AND probed_by IS NULL";
    assert_eq!(world.database.count(clean).await, 1);
    replica.stop().await;
}

#[tokio::test]
async fn probe_of_a_dead_replica_is_repeated_by_another() {
    let mut world = World::new().await;
    let (receiver, answer) = changing(Answer::Status(503)).await;
    let manager = opened(&mut world, &receiver).await;
    let first = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 4).await;
    until_open(&world).await;
    *answer.lock().unwrap() = Answer::Hang;
    let asked = receiver.count();
    half_open(&world).await;
    eventually("the probe is under way", async || {
        receiver.count() == asked + 1
    })
    .await;
    let dead = first.backbone.replica;
    first.kill();
    *answer.lock().unwrap() = Answer::Status(200);
    let second = world.ready_dispatcher().await;
    let alive = format!(
        "replicas WHERE id = '{dead}' AND heartbeat_time > clock_timestamp() - interval '4 seconds'"
    );
    eventually("the first counts as dead", async || {
        world.database.count(&alive).await == 0
    })
    .await;
    // If its replica had not died, the probe would be awaited for minutes.
    half_open(&world).await;
    world.until("SUCCEEDED", 4).await;
    second.stop().await;
}

#[tokio::test]
async fn connection_is_disabled_after_five_days_of_failures() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let receiver = always(Answer::Status(503)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    // The others come when it is open: if results are written slowly, more than five requests would fail before.
    world.scans_and_tell(manager, 5).await;
    until_open(&world).await;
    for number in 0..20 {
        let title = format!("waiting kettle {number}");
        world.publish_scan(manager, &title).await;
    }
    world.until("PENDING", 20).await;
    for probe in 0..30 {
        until_open(&world).await;
        if probe == 10 {
            // The failures last long enough, but there are too few.
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
        eventually("a probe is made", async || receiver.count() > asked).await;
    }
    panic!("it was never disabled");
}
