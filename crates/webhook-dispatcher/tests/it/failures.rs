//! Failing receivers, and the results of their deliveries.

use std::time::Duration;

use test_support::{Answer, eventually};
use tokio::sync::watch;

use crate::support::{World, after_warming, always, scripted};

#[tokio::test]
async fn delivery_is_retried_until_it_succeeds() {
    let world = World::new().await;
    let receiver = scripted(vec![
        Answer::Status(500),
        Answer::redirect("http://127.0.0.1:1/elsewhere"),
        Answer::Status(404),
    ])
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
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
async fn gone_endpoint_is_not_called_until_it_is_enabled() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Status(410)]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "first kettle").await;
    world.until("EXHAUSTED", 1).await;
    let states = world
        .database
        .texts("state || ': ' || state_reason", "connections")
        .await;
    assert_eq!(states, ["DISABLED: the endpoint answered 410"]);

    world.publish_scan(manager, "second kettle").await;
    world.publish_scan(manager, "third kettle").await;
    world.until("PENDING", 2).await;
    let well = always(Answer::Status(200)).await;
    let other = world.manager_for(&well).await;
    world.publish_scan(other, "later kettle").await;
    world.until("SUCCEEDED", 1).await;
    world.beats(1).await;
    assert_eq!(receiver.count(), 1);

    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE', state_reason = NULL")
        .await;
    world.until("SUCCEEDED", 3).await;
    assert_eq!(receiver.count(), 3);
    replica.stop().await;
}

#[tokio::test]
async fn hanging_receiver_is_cut_off_and_retried() {
    let mut world = World::new().await;
    world.config.dispatcher.timeout = Duration::from_millis(800);
    world.config.dispatcher.retry_schedule = vec![Duration::from_millis(100); 100];
    let receiver = scripted(vec![Answer::Hang]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    // On a busy machine, an answer may come too late as well.
    let attempts = world.attempts().await;
    let mut results: Vec<&str> = attempts
        .iter()
        .map(|attempt| attempt.split_once(' ').unwrap().1)
        .collect();
    results.dedup();
    assert_eq!(results, ["- timeout", "200 -"]);
    let latencies = world
        .database
        .texts("latency_ms", "delivery_attempts ORDER BY number")
        .await;
    let latency: u64 = latencies[0].parse().unwrap();
    assert!(latency >= 790, "{latency}");
    replica.stop().await;
}

#[tokio::test]
async fn long_answers_change_nothing_and_are_shortened() {
    let world = World::new().await;
    let failure = |status| Answer::Full {
        status,
        headers: Vec::new(),
        body: vec![b'a'; 10_000],
    };
    let long = Answer::Long(20 * 1024 * 1024);
    let receiver = scripted(vec![failure(500), failure(502), long]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.count(), 3);
    let kept = world
        .database
        .texts("length(response_body)", "delivery_attempts ORDER BY number")
        .await;
    assert_eq!(kept, ["4096", "256", "256"]);
    replica.stop().await;
}

/// Services such as Slack mean all requests of the Connection, from any replica.
#[tokio::test]
async fn retry_after_of_one_delivery_holds_the_others() {
    let mut world = World::new().await;
    // With the pause of the first delivery, which ends later than any test.
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(1)];
    let busy = Answer::Full {
        status: 429,
        headers: vec![("retry-after", "3600".to_owned())],
        body: b"later".to_vec(),
    };
    let receiver = scripted(vec![busy]).await;
    let manager = world.manager_for(&receiver).await;
    world.scans(manager, 6).await;
    let replica = world.ready_dispatcher().await;
    world.until("RETRYING", 1).await;
    let held = "connection_lanes WHERE open_until > now() + interval '8 minutes' \
                AND failure_streak = 0 AND recent_outcomes = 0";
    eventually("the pause is stored", async || {
        world.database.count(held).await == 1
    })
    .await;
    let other = world.ready_dispatcher().await;
    for number in 0..4 {
        let title = format!("later kettle {number}");
        world.publish_scan(manager, &title).await;
    }
    world.until("PENDING", 9).await;
    let well = always(Answer::Status(200)).await;
    let manager = world.manager_for(&well).await;
    world.publish_scan(manager, "last kettle").await;
    world.until("SUCCEEDED", 1).await;
    world.beats(1).await;
    assert_eq!(receiver.count(), 1);
    assert_eq!(world.attempts().await.len(), 2);

    for ended in [
        "UPDATE deliveries SET next_attempt_time = now() WHERE next_attempt_time > now()",
        "UPDATE connection_lanes SET open_until = now(), next_due_time = now() WHERE open_until > now()",
    ] {
        assert_eq!(world.database.run(ended).await, 1, "{ended}");
    }
    world.until("SUCCEEDED", 11).await;
    assert_eq!(receiver.count(), 11);
    replica.stop().await;
    other.stop().await;
}

/// Some services name no time. Their refusals are no failures either, which would open the breaker for longer and longer.
#[tokio::test]
async fn refusal_without_a_time_holds_the_others_too() {
    let world = World::new().await;
    let receiver = always(Answer::Status(429)).await;
    let manager = world.manager_for(&receiver).await;
    world.scans(manager, 6).await;
    let replica = world.ready_dispatcher().await;
    let held = "connection_lanes WHERE open_until IS NOT NULL AND open_count > 0 \
                AND failure_streak = 0 AND recent_outcomes = 0";
    eventually("the pause is stored", async || {
        world.database.count(held).await == 1
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_to_a_forbidden_address() {
    let mut world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    // As if the address had been allowed when the Connection was created.
    world.config.outbound.allow_cidrs.clear();
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("EXHAUSTED", 1).await;
    assert_eq!(receiver.count(), 0);
    assert_eq!(world.attempts().await[0], "1 - forbidden_address");
    let states = world.database.texts("state", "connections").await;
    assert_eq!(states, ["ACTIVE"]);
    replica.stop().await;
}

#[tokio::test]
async fn results_are_kept_while_the_database_is_away() {
    let world = World::new().await;
    let (release, held) = watch::channel(false);
    let receiver = after_warming(Answer::once(&held, Answer::Status(200))).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    world.scans_and_tell(manager, 3).await;
    eventually("the requests are open", async || {
        receiver.count() == warm + 3
    })
    .await;
    world.database.go_away().await;
    release.send(true).expect("the receiver waits");
    eventually("they are answered", async || receiver.open() == 0).await;
    world.database.come_back().await;
    world.until("SUCCEEDED", 8 + 3).await;
    // No heartbeat was missed for so long that another replica took over the deliveries.
    world.beats(2).await;
    assert_eq!(receiver.count(), warm + 3);
    replica.stop().await;
}

#[tokio::test]
async fn refused_log_entry_does_not_repeat_the_request() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Status(500), Answer::Status(502)]).await;
    let manager = world.manager_for(&receiver).await;
    // As if the partition were missing.
    world
        .database
        .run("ALTER TABLE delivery_attempts ADD CONSTRAINT full_log CHECK (false)")
        .await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(receiver.count(), 3);
    let counts = world.database.texts("attempt_count", "deliveries").await;
    assert_eq!(counts, ["3"]);
    assert_eq!(world.database.count("delivery_attempts").await, 0);
    replica.stop().await;
}

/// Neither one that violates a constraint, nor one with another error.
#[tokio::test]
async fn refused_result_delays_no_other() {
    for is_constraint in [true, false] {
        let world = World::new().await;
        let receiver = always(Answer::Status(200)).await;
        let manager = world.manager_for(&receiver).await;
        let poison = world.scan(manager, "poison").await;
        let id = poison.scan.to_uuid();
        let (refuse, allow) = if is_constraint {
            let rule = format!(
                "ALTER TABLE deliveries ADD CONSTRAINT poison CHECK (state <> 'SUCCEEDED' OR scan_id <> '{id}')"
            );
            (vec![rule], "ALTER TABLE deliveries DROP CONSTRAINT poison")
        } else {
            let function = format!(
                "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS \
                 $$ BEGIN IF NEW.scan_id = '{id}' AND NEW.state = 'SUCCEEDED' THEN RAISE 'poison'; END IF; RETURN NEW; END $$"
            );
            let trigger = "CREATE TRIGGER poison BEFORE UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION poison()";
            (
                vec![function, trigger.to_owned()],
                "DROP TRIGGER poison ON deliveries",
            )
        };
        for statement in refuse {
            world.database.run(&statement).await;
        }
        let mut scans = vec![poison];
        for number in 0..5 {
            scans.push(world.scan(manager, &format!("kettle {number}")).await);
        }
        let replica = world.ready_dispatcher().await;
        for scan in scans {
            world.publish_created(scan).await;
        }
        world.until("SUCCEEDED", 5).await;
        eventually("the other is sent too", async || receiver.count() == 6).await;
        world.database.run(allow).await;
        world.until("SUCCEEDED", 6).await;
        assert_eq!(receiver.count(), 6, "and is not repeated");
        replica.stop().await;
    }
}
