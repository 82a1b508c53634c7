//! Connections that their owners change or delete while something of theirs is under way.

use std::time::Duration;

use test_support::{Answer, TestServer, eventually};

use crate::support::{SOON, World, after_warming, always, scripted};

/// Changes the row as a PATCH does.
async fn lead_to(world: &World, receiver: &TestServer) {
    let url = receiver.url("/hook");
    let sql = format!("UPDATE connections SET url = '{url}', update_time = clock_timestamp()");
    assert_eq!(world.database.run(&sql).await, 1);
}

#[tokio::test]
async fn an_address_that_was_left_disables_nothing() {
    let world = World::new().await;
    let late = Answer::after(Duration::from_millis(500), Answer::Status(410));
    let (old, new) = (always(late).await, always(Answer::Status(200)).await);
    let connection = world.connection(&old).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    eventually("the request is open", SOON, async || old.count() == 1).await;
    lead_to(&world, &new).await;
    // It has never been where the Connection leads now.
    world.until("SUCCEEDED", 1).await;
    assert_eq!((old.count(), new.count()), (1, 1));
    assert_eq!(world.attempts().await, ["1 410 -", "2 200 -"]);
    let states = world.database.texts("state", "connections").await;
    assert_eq!(states, ["ACTIVE"]);
    replica.stop().await;
}

#[tokio::test]
async fn an_answer_from_before_it_was_enabled_disables_nothing() {
    let world = World::new().await;
    let late = Answer::after(Duration::from_millis(500), Answer::Status(410));
    let receiver = scripted(vec![late]).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    eventually("the request is open", SOON, async || receiver.count() == 1).await;
    for state in ["DISABLED", "ACTIVE"] {
        let sql =
            format!("UPDATE connections SET state = '{state}', update_time = clock_timestamp()");
        world.database.run(&sql).await;
    }
    world.until("SUCCEEDED", 1).await;
    let states = world.database.texts("state", "connections").await;
    assert_eq!(states, ["ACTIVE"]);
    replica.stop().await;
}

#[tokio::test]
async fn failures_of_an_address_that_was_left_do_not_count() {
    const OPEN: i64 = 7;
    let mut world = World::new().await;
    world.config.dispatcher.timeout = Duration::from_secs(20);
    // All of them are to be open at a time.
    let late = Answer::after(Duration::from_secs(3), Answer::Status(500));
    let (old, new) = (after_warming(late).await, always(Answer::Status(200)).await);
    let connection = world.connection(&old).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    for number in 0..OPEN {
        let title = format!("kettle {number}");
        world.scan_and_tell(manager, &title).await;
    }
    let open = warm + usize::try_from(OPEN).unwrap();
    eventually("the requests are open", SOON, async || old.count() == open).await;
    lead_to(&world, &new).await;
    // Five of them would have opened its breaker, for half a minute.
    world.until("SUCCEEDED", 8 + OPEN).await;
    assert_eq!(old.count(), open);
    let failed = world
        .database
        .count("delivery_attempts WHERE status_code = 500");
    assert_eq!(failed.await, OPEN);
    let clean = "connection_lanes WHERE open_until IS NULL AND recent_outcomes = 0 AND failing_since IS NULL";
    assert_eq!(world.database.count(clean).await, 1);
    replica.stop().await;
}

/// The memory of a deleted Connection is dropped: nothing is claimed for it any more. A dispatcher
/// that believed that something waits for it would go on asking, without a pause where there are several.
#[tokio::test]
async fn nobody_asks_for_what_waits_for_a_deleted_connection() {
    const CONNECTIONS: i64 = 4;
    const WARM: i64 = 12;
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let mut connections = Vec::new();
    for _ in 0..CONNECTIONS {
        connections.push(world.connection(&receiver).await);
    }
    let manager = world.manager(&connections).await;
    let replica = world.ready_dispatcher().await;
    // Their lanes are wide: together they may have as much as one claim takes.
    for number in 0..WARM {
        let title = format!("kettle {number}");
        world.scan_and_tell(manager, &title).await;
        world.until("SUCCEEDED", (number + 1) * CONNECTIONS).await;
    }
    let idle = commits(&world).await;

    // A backlog that is due, and cannot be had for as long as someone has its rows locked.
    let due = "now() + interval '1500 milliseconds'";
    let backlog = format!("UPDATE deliveries SET state = 'PENDING', next_attempt_time = {due}");
    world.database.run(&backlog).await;
    let held = world
        .database
        .begin(&["SELECT FROM deliveries FOR UPDATE"])
        .await;
    world
        .database
        .run(&format!(
            "UPDATE connection_lanes SET next_due_time = {due}"
        ))
        .await;
    let behind = "connection_lanes WHERE next_due_time < now()";
    eventually("all are behind", SOON, async || {
        world.database.count(behind).await == CONNECTIONS
    })
    .await;
    // Longer than a look for what is due takes.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    world.database.run("DELETE FROM manager_notices").await;
    world.database.run("DELETE FROM connections").await;
    drop(held);

    let after = commits(&world).await;
    println!("{idle} commits while idle, {after} after the deletion");
    assert!(after < idle.max(20) * 3, "{idle} before, {after} after");
    world.until("CANCELLED", WARM * CONNECTIONS).await;
    replica.stop().await;
}

/// How many transactions end within some two seconds. A busy machine makes them fewer, not more.
async fn commits(world: &World) -> i64 {
    let ended = async || {
        let count = "pg_stat_get_db_xact_commit(oid)";
        let database = "pg_database WHERE datname = current_database()";
        let texts = world.database.texts(count, database).await;
        texts[0].parse::<i64>().unwrap()
    };
    // PostgreSQL reports their statements a second late.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let before = ended().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    ended().await - before
}
