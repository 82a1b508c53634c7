//! Posts that are deleted at their source before they are delivered.

use std::time::Duration;

use store::erasure::{self, missing};
use test_support::{Answer, eventually};

use crate::support::{World, always, changing, scripted};

pub(crate) async fn erase(world: &World, title: &str) {
    let mut conn = world.database.connect().await;
    let ids = [format!("hackernews:{title}")];
    assert_eq!(erasure::erase(&mut conn, &ids).await.unwrap(), 1);
}

/// Makes the retries due.
pub(crate) async fn retry_now(world: &World) {
    for due in [
        "UPDATE deliveries SET next_attempt_time = now() WHERE state = 'RETRYING'",
        "UPDATE connection_lanes SET next_due_time = now()",
    ] {
        world.database.run(due).await;
    }
}

async fn until_cancelled(world: &World, count: i64) {
    let cancelled =
        "deliveries WHERE state = 'CANCELLED' AND last_error = 'post_deleted' AND NOT urgent";
    eventually("it is cancelled", async || {
        world.database.count(cancelled).await == count
    })
    .await;
}

#[tokio::test]
async fn retry_of_an_erased_post_is_cancelled() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600); 3];
    let receiver = always(Answer::Status(500)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("RETRYING", 1).await;
    erase(&world, "kettle").await;
    retry_now(&world).await;
    until_cancelled(&world, 1).await;
    assert_eq!(receiver.count(), 1);
    assert_eq!(world.attempts().await, ["1 500 -"], "no attempt is made up");
    replica.stop().await;
}

/// The whole platform answers 404 at the first look.
#[tokio::test]
async fn deliveries_of_a_post_that_is_missing_once_wait_for_the_second_look() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600); 3];
    // Both deliveries fail before and after the first look.
    let receiver = scripted(vec![Answer::Status(500); 4]).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    for title in ["kettle", "toaster"] {
        world.publish_scan(manager, title).await;
    }
    world.until("RETRYING", 2).await;
    let [kettle, toaster] = ["kettle", "toaster"].map(|title| format!("hackernews:{title}"));
    let mut conn = world.database.connect().await;
    let gone = [kettle.clone(), toaster.clone()];
    let decided = missing::record(&mut conn, "hackernews", &[], &gone).await;
    assert!(decided.unwrap().is_empty());
    retry_now(&world).await;
    eventually("both are tried again", async || {
        receiver.count() == 4 && world.in_state("RETRYING").await == 2
    })
    .await;

    let hour = "UPDATE missing_posts SET first_time = first_time - interval '1 hour'";
    world.database.run(hour).await;
    let (found, gone) = ([toaster], [kettle]);
    let decided = missing::record(&mut conn, "hackernews", &found, &gone).await;
    let decided = decided.unwrap();
    assert_eq!(decided, gone);
    assert_eq!(erasure::erase(&mut conn, &decided).await.unwrap(), 1);
    retry_now(&world).await;
    until_cancelled(&world, 1).await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.count(), 5);
    replica.stop().await;
}

#[tokio::test]
async fn erased_deliveries_of_a_paused_connection_are_cancelled_when_enabled() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    let replica = world.ready_dispatcher().await;
    for title in ["kettle", "toaster", "grinder"] {
        world.publish_scan(manager, title).await;
    }
    world.until("PENDING", 3).await;
    erase(&world, "kettle").await;
    erase(&world, "grinder").await;
    // The same for deliveries that a person requests.
    let asked = "UPDATE deliveries AS d SET urgent = true FROM scans AS s, posts AS p \
                 WHERE s.id = d.scan_id AND p.id = s.post_id AND p.post_id = 'hackernews:grinder'";
    assert_eq!(world.database.run(asked).await, 1);
    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE'")
        .await;
    until_cancelled(&world, 2).await;
    world.until("SUCCEEDED", 1).await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 1);
    assert!(String::from_utf8_lossy(&requests[0].body).contains("toaster"));
    replica.stop().await;
}

#[tokio::test]
async fn erased_deliveries_behind_a_rate_limit_or_breaker_are_cancelled() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_millis(100); 50];
    let (receiver, answer) = changing(Answer::Status(503)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    for title in ["kettle", "toaster"] {
        world.publish_scan(manager, title).await;
    }
    let open = "connection_lanes WHERE open_until > now()";
    eventually("its breaker opens", async || {
        world.database.count(open).await == 1 && world.in_state("IN_FLIGHT").await == 0
    })
    .await;
    let asked = receiver.count();
    *answer.lock().unwrap() = Answer::Status(200);
    // The longest due delivery, which the probe would have used.
    let first = world
        .database
        .texts(
            "p.title",
            "deliveries AS d JOIN scans AS s ON s.id = d.scan_id JOIN posts AS p ON p.id = s.post_id \
             ORDER BY d.next_attempt_time",
        )
        .await;
    erase(&world, &first[0]).await;
    world
        .database
        .run("UPDATE connections SET max_per_second = 100")
        .await;
    world
        .database
        .run("UPDATE connection_lanes SET open_until = now(), next_due_time = now()")
        .await;
    until_cancelled(&world, 1).await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.count(), asked + 1);
    replica.stop().await;
}

#[tokio::test]
async fn post_erased_before_its_event_is_not_delivered() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let scan = world.scan(manager, "kettle").await;
    erase(&world, "kettle").await;
    let replica = world.ready_dispatcher().await;
    world.publish_created(scan).await;
    until_cancelled(&world, 1).await;
    assert_eq!(world.in_state("CANCELLED").await, 1);
    replica.stop().await;
    assert_eq!(receiver.count(), 0);
}
