//! Receivers that fail, and what becomes of their deliveries.

use std::time::{Duration, Instant};

use test_support::{Answer, eventually};

use crate::support::{SOON, World, after_warming, always, scripted};

#[tokio::test]
async fn a_delivery_is_tried_until_it_succeeds() {
    let world = World::new().await;
    let receiver = scripted(vec![
        Answer::Status(500),
        Answer::redirect("http://127.0.0.1:1/elsewhere"),
        Answer::Status(404),
    ])
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(
        world.attempts().await,
        ["1 500 -", "2 302 -", "3 404 -", "4 200 -"]
    );
    let requests = receiver.requests();
    assert!(
        requests
            .iter()
            .all(|request| request.body == requests[0].body)
    );
    replica.stop().await;
}

#[tokio::test]
async fn after_the_last_try_a_delivery_is_given_up() {
    let world = World::new().await;
    let receiver = always(Answer::Status(503)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("EXHAUSTED", 1).await;
    assert_eq!(receiver.count(), 4);
    let states = world.database.texts("state", "connections").await;
    assert_eq!(states, ["ACTIVE"]);
    replica.stop().await;
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_left_alone_until_it_is_enabled() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Status(410)]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "first kettle").await;
    world.until("EXHAUSTED", 1).await;
    let states = world
        .database
        .texts("state || ': ' || state_reason", "connections")
        .await;
    assert_eq!(states, ["DISABLED: the endpoint answered 410"]);

    world.scan_and_tell(manager, "second kettle").await;
    world.scan_and_tell(manager, "third kettle").await;
    world.until("PENDING", 2).await;
    // Longer than a look for what is due takes.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.count(), 1);

    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE', state_reason = NULL")
        .await;
    world.until("SUCCEEDED", 2).await;
    assert_eq!(receiver.count(), 3);
    replica.stop().await;
}

#[tokio::test]
async fn a_receiver_that_hangs_is_cut_off_and_tried_again() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Hang]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(world.attempts().await, ["1 - timeout", "2 200 -"]);
    let latencies = world
        .database
        .texts("latency_ms", "delivery_attempts ORDER BY number")
        .await;
    let latency: u64 = latencies[0].parse().unwrap();
    assert!((790..1_500).contains(&latency), "{latency}");
    replica.stop().await;
}

#[tokio::test]
async fn a_long_answer_changes_nothing() {
    let world = World::new().await;
    let receiver = always(Answer::Long(20 * 1024 * 1024)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.count(), 1);
    let kept = world
        .database
        .texts("length(response_body)", "delivery_attempts")
        .await;
    assert_eq!(kept, ["4096"]);
    replica.stop().await;
}

#[tokio::test]
async fn a_wish_to_be_left_alone_is_kept() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Full {
        status: 503,
        headers: vec![("retry-after", "2".to_owned())],
        body: b"later".to_vec(),
    }])
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let begin = Instant::now();
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert!(begin.elapsed() >= Duration::from_secs(2));
    assert_eq!(receiver.count(), 2);
    replica.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_to_a_forbidden_address() {
    let mut world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    // As if the address had been allowed when the Connection was made.
    world.config.outbound.allow_cidrs.clear();
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("EXHAUSTED", 1).await;
    assert_eq!(receiver.count(), 0);
    assert_eq!(world.attempts().await[0], "1 - forbidden_address");
    replica.stop().await;
}

#[tokio::test]
async fn results_are_held_while_the_database_is_away() {
    let world = World::new().await;
    let receiver = after_warming(Answer::after(
        Duration::from_millis(400),
        Answer::Status(200),
    ))
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    world.scans_and_tell(manager, 3).await;
    eventually("the requests are open", SOON, async || {
        receiver.count() == warm + 3
    })
    .await;
    world.database.go_away().await;
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    world.database.come_back().await;
    world.until("SUCCEEDED", 8 + 3).await;
    // No heartbeat was missed for so long that anybody took the deliveries for orphaned.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.count(), warm + 3);
    replica.stop().await;
}

#[tokio::test]
async fn a_log_that_refuses_attempts_repeats_no_request() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Status(500), Answer::Status(502)]).await;
    let manager = world.manager_for(&receiver).await;
    // As where there is no partition for them.
    world
        .database
        .run("ALTER TABLE delivery_attempts ADD CONSTRAINT full_log CHECK (false)")
        .await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.count(), 3);
    let counts = world.database.texts("attempt_count", "deliveries").await;
    assert_eq!(counts, ["3"]);
    assert_eq!(world.database.count("delivery_attempts").await, 0);
    replica.stop().await;
}

#[tokio::test]
async fn a_result_that_the_database_refuses_holds_up_no_other() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let poison = world.scan(manager, "poison").await;
    let rule = format!(
        "ALTER TABLE deliveries ADD CONSTRAINT poison CHECK (state <> 'SUCCEEDED' OR scan_id <> '{}')",
        poison.scan.to_uuid()
    );
    world.database.run(&rule).await;
    let mut scans = vec![poison];
    for number in 0..5 {
        scans.push(world.scan(manager, &format!("kettle {number}")).await);
    }
    let replica = world.ready_dispatcher().await;
    for scan in scans {
        world.tell(scan).await;
    }
    world.until("SUCCEEDED", 5).await;
    assert_eq!(receiver.count(), 6);
    replica.stop().await;
}
