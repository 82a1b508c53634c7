//! Chat services that refuse the message of their format.

use std::time::Duration;

use serde_json::Value;
use store::deliveries;
use test_support::{Answer, Request, TestServer, eventually};

use crate::support::World;

/// Answers `status` with a reason, unless the body is the smallest of its format.
fn refuse_all_but_plain(status: u16, request: &Request) -> Answer {
    if is_plain(request) {
        return Answer::Status(200);
    }
    Answer::Full {
        status,
        headers: Vec::new(),
        body: b"invalid_blocks".to_vec(),
    }
}

fn is_plain(request: &Request) -> bool {
    let message: Value = serde_json::from_slice(&request.body).unwrap();
    let card = &message["attachments"][0]["content"];
    let is_full = message.get("blocks").is_some()
        || message.get("embeds").is_some()
        || message.get("post").is_some()
        || card.get("actions").is_some();
    !is_full
}

async fn world_with(format: &str, receiver: &TestServer) -> (World, domain::ManagerName) {
    let world = World::new().await;
    let manager = world.manager_for(receiver).await;
    let set = format!("UPDATE connections SET format = '{format}'");
    world.database.run(&set).await;
    (world, manager)
}

#[tokio::test]
async fn refused_message_is_followed_by_plain_text_with_the_address() {
    for (format, status) in [("SLACK", 400), ("DISCORD", 413), ("TEAMS", 422)] {
        let receiver =
            TestServer::start(move |_, request| refuse_all_but_plain(status, request)).await;
        let (world, manager) = world_with(format, &receiver).await;
        let replica = world.ready_dispatcher().await;
        world.publish_scan(manager, "kettle").await;
        eventually("the first attempt is recorded", async || {
            world.database.count("delivery_attempts").await > 0
        })
        .await;
        // Whichever replica makes the second one: it finds the reason in the database.
        replica.stop().await;
        let replica = world.ready_dispatcher().await;
        world.until("SUCCEEDED", 1).await;
        replica.stop().await;

        let attempts = [format!("1 {status} -"), "2 200 -".to_owned()];
        assert_eq!(world.attempts().await, attempts, "{format}");
        let first = "delivery_attempts WHERE number = 1";
        let reasons = world.database.texts("response_body", first).await;
        assert_eq!(reasons, ["invalid_blocks"]);
        let body = String::from_utf8(receiver.requests()[1].body.clone()).unwrap();
        assert!(
            body.contains("https://forum.example/hackernews:kettle"),
            "{body}"
        );
    }
}

/// Discord's webhooks do not say what kind of channel they belong to.
#[tokio::test]
async fn forum_channels_get_a_thread_and_text_channels_get_none() {
    for is_forum in [true, false] {
        let receiver = TestServer::start(move |_, request| {
            let message: Value = serde_json::from_slice(&request.body).unwrap();
            let is_taken = message.get("thread_name").is_some() == is_forum && is_plain(request);
            Answer::Status(if is_taken { 204 } else { 400 })
        })
        .await;
        let (mut world, manager) = world_with("DISCORD", &receiver).await;
        world.config.dispatcher.retry_schedule = vec![Duration::from_millis(1); 2];
        let replica = world.ready_dispatcher().await;
        world.publish_scan(manager, "kettle").await;
        world.until("SUCCEEDED", 1).await;
        replica.stop().await;
        let last = receiver.requests().pop().unwrap();
        let body = String::from_utf8(last.body).unwrap();
        assert!(
            body.contains("https://forum.example/hackernews:kettle"),
            "{body}"
        );
    }
}

/// A form of a message that is refused says nothing against the endpoint, so the other deliveries do not wait.
#[tokio::test]
async fn refused_forms_of_many_posts_open_no_breaker() {
    const POSTS: i64 = 12;
    let receiver = TestServer::start(move |_, request| refuse_all_but_plain(400, request)).await;
    let (world, manager) = world_with("SLACK", &receiver).await;
    let fast = "UPDATE connections SET max_per_second = 100";
    world.database.run(fast).await;
    for nth in 0..POSTS {
        world.publish_scan(manager, &format!("kettle {nth}")).await;
    }
    let replica = world.ready_dispatcher().await;
    world.until("SUCCEEDED", POSTS).await;
    replica.stop().await;
    assert!(i64::try_from(receiver.count()).unwrap() >= 2 * POSTS);
    let opened = "connection_lanes WHERE open_until IS NOT NULL OR open_count > 0";
    assert_eq!(world.database.count(opened).await, 0);
    assert_eq!(openings(), 0.0);
}

/// Returns how often breakers opened in this process.
fn openings() -> f64 {
    let families = prometheus::gather();
    let changes = { families.iter() }.find(|one| one.name() == "earshot_breaker_changes_total");
    let of_each = { changes.iter() }.flat_map(|one| one.get_metric());
    of_each
        .filter(|one| {
            one.get_label()
                .iter()
                .any(|label| label.value() == "opened")
        })
        .map(|one| one.get_counter().get_value())
        .sum()
}

/// The full message comes again after another failure, so the forms are not counted by attempts.
#[tokio::test]
async fn refused_forms_after_another_failure_open_no_breaker() {
    const POSTS: i64 = 6;
    for format in ["SLACK", "DISCORD"] {
        let receiver = TestServer::start(move |number, request| {
            if number == 0 {
                return Answer::Full {
                    status: 429,
                    headers: vec![("retry-after", "3600".to_owned())],
                    body: Vec::new(),
                };
            }
            let message: Value = serde_json::from_slice(&request.body).unwrap();
            // A forum channel takes threads alone.
            let fits = format == "SLACK" || message.get("thread_name").is_some();
            Answer::Status(if fits && is_plain(request) { 200 } else { 400 })
        })
        .await;
        let (mut world, manager) = world_with(format, &receiver).await;
        world.config.dispatcher.retry_schedule = vec![Duration::from_millis(1); 5];
        let replica = world.ready_dispatcher().await;
        world.publish_scan(manager, "kettle").await;
        world.until("RETRYING", 1).await;
        for nth in 1..POSTS {
            world.publish_scan(manager, &format!("kettle {nth}")).await;
        }
        world.until("PENDING", POSTS - 1).await;
        let before = openings();
        for change in [
            "UPDATE deliveries SET attempt_count = 1, last_status_code = 503, next_attempt_time = now()",
            "UPDATE connection_lanes SET open_until = now(), next_due_time = now()",
        ] {
            world.database.run(change).await;
        }
        world.until("SUCCEEDED", POSTS).await;
        assert_eq!(openings(), before, "{format}");
        replica.stop().await;
    }
}

/// The cause may be gone, for example a wrong channel.
#[tokio::test]
async fn delivery_that_is_requested_again_is_in_full() {
    let receiver = TestServer::start(|number, _| match number {
        0..2 => Answer::Status(400),
        _ => Answer::Status(200),
    })
    .await;
    let (mut world, manager) = world_with("SLACK", &receiver).await;
    world.config.dispatcher.retry_schedule.truncate(1);
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("EXHAUSTED", 1).await;
    let name = world.database.texts(
        "concat('namespaces/', ulid(namespace_id), '/connections/', ulid(connection_id), '/deliveries/', ulid(id))",
        "deliveries",
    );
    let name = name.await[0].parse().unwrap();
    let mut conn = world.database.connect().await;
    deliveries::reopen(&mut conn, name).await.unwrap().unwrap();
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    let plain: Vec<bool> = receiver.requests().iter().map(is_plain).collect();
    assert_eq!(plain, [false, true, false]);
}

#[tokio::test]
async fn our_own_format_stays_in_full() {
    let receiver = TestServer::start(|number, _| match number {
        0 => Answer::Status(400),
        _ => Answer::Status(200),
    })
    .await;
    let (world, manager) = world_with("EARSHOT", &receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    let requests = receiver.requests();
    assert_eq!(requests[0].body, requests[1].body);
}
