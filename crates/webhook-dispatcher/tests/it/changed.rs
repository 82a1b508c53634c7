//! Connections that their owners change or delete while deliveries are in progress.

use std::time::Duration;

use domain::{ConnectionName, Timestamp, connection::ConnectionChange};
use store::connections;
use test_support::{Answer, TestServer, eventually};
use tokio::sync::watch;

use crate::support::{World, after_warming, always, scripted};

/// Changes the address like a PATCH.
async fn lead_to(world: &World, connection: ConnectionName, receiver: &TestServer) {
    let mut conn = world.database.connect().await;
    let sealer = &world.fixture.sealer;
    let current = connections::get(&mut conn, sealer, connection).await;
    let change = ConnectionChange {
        url: Some(receiver.url("/hook")),
        ..ConnectionChange::default()
    };
    let current = current.unwrap().unwrap();
    connections::update(&mut conn, sealer, current, &change, Timestamp::now())
        .await
        .unwrap();
}

#[tokio::test]
async fn former_address_does_not_disable_the_connection() {
    let world = World::new().await;
    let (release, held) = watch::channel(false);
    let late = Answer::once(&held, Answer::Status(410));
    let (old, new) = (always(late).await, always(Answer::Status(200)).await);
    let connection = world.connection(&old).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    eventually("the request is open", async || old.count() == 1).await;
    lead_to(&world, connection, &new).await;
    release.send(true).expect("the receiver waits");
    // It was never sent to the address that the Connection has now.
    world.until("SUCCEEDED", 1).await;
    assert_eq!((old.count(), new.count()), (1, 1));
    assert_eq!(world.attempts().await, ["1 410 -", "2 200 -"]);
    let states = world.database.texts("state", "connections").await;
    assert_eq!(states, ["ACTIVE"]);
    replica.stop().await;
}

#[tokio::test]
async fn response_from_before_enabling_does_not_disable() {
    let world = World::new().await;
    let (release, held) = watch::channel(false);
    let late = Answer::once(&held, Answer::Status(410));
    let receiver = scripted(vec![late]).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    eventually("the request is open", async || receiver.count() == 1).await;
    for state in ["DISABLED", "ACTIVE"] {
        let sql =
            format!("UPDATE connections SET state = '{state}', update_time = clock_timestamp()");
        world.database.run(&sql).await;
    }
    release.send(true).expect("the receiver waits");
    world.until("SUCCEEDED", 1).await;
    let states = world.database.texts("state", "connections").await;
    assert_eq!(states, ["ACTIVE"]);
    replica.stop().await;
}

#[tokio::test]
async fn failures_of_a_former_address_do_not_count() {
    const OPEN: i64 = 7;
    let world = World::new().await;
    // All of them must be open at the same time.
    let (release, held) = watch::channel(false);
    let late = Answer::once(&held, Answer::Status(500));
    let (old, new) = (after_warming(late).await, always(Answer::Status(200)).await);
    let connection = world.connection(&old).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    for number in 0..OPEN {
        let title = format!("kettle {number}");
        world.publish_scan(manager, &title).await;
    }
    let open = warm + usize::try_from(OPEN).unwrap();
    eventually("the requests are open", async || old.count() == open).await;
    lead_to(&world, connection, &new).await;
    release.send(true).expect("the receiver waits");
    // Five of them would have opened its breaker for half a minute.
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

/// The state of a deleted Connection is dropped, and nothing is claimed for it any more. A dispatcher that assumed
/// waiting deliveries would keep asking, without a pause if there are several such Connections.
#[tokio::test]
async fn deliveries_of_a_deleted_connection_are_not_claimed() {
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
    // Their lanes have a high limit: together they may take as much as one claim does.
    for number in 0..WARM {
        let title = format!("kettle {number}");
        world.publish_scan(manager, &title).await;
        world.until("SUCCEEDED", (number + 1) * CONNECTIONS).await;
    }
    let idle = commits(&world).await;

    // A due backlog that cannot be claimed while another transaction has its rows locked. Disabled Connections send
    // none of it before.
    let state = async |state| {
        let sql = format!("UPDATE connections SET state = '{state}'");
        world.database.run(&sql).await;
    };
    state("DISABLED").await;
    let backlog = "UPDATE deliveries SET state = 'PENDING', next_attempt_time = now()";
    world.database.run(backlog).await;
    let held = world
        .database
        .begin(&["SELECT FROM deliveries FOR UPDATE"])
        .await;
    state("ACTIVE").await;
    world
        .database
        .run("UPDATE connection_lanes SET next_due_time = now()")
        .await;
    // Longer than a query for due Connections takes.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    world.database.run("DELETE FROM manager_notices").await;
    world.database.run("DELETE FROM connections").await;
    // A claim that has still seen them would send.
    let now = world
        .database
        .texts("clock_timestamp()", "pg_stat_wal")
        .await;
    let older = format!(
        "pg_stat_activity WHERE datname = current_database() AND state = 'active' AND query_start < '{}'",
        now[0]
    );
    eventually("each claim is newer", async || {
        world.database.count(&older).await == 0
    })
    .await;
    drop(held);
    world.until("CANCELLED", WARM * CONNECTIONS).await;

    // PostgreSQL may still report earlier statements, and a busy machine may have been slow before.
    let most = idle.max(60) * 3;
    eventually("it is idle again", async || {
        let after = commits(&world).await;
        println!("{idle} commits while idle, {after} after the deletion");
        after < most
    })
    .await;
    replica.stop().await;
}

/// Number of transactions that end within about two seconds.
async fn commits(world: &World) -> i64 {
    let ended = async || {
        let count = "pg_stat_get_db_xact_commit(oid)";
        let database = "pg_database WHERE datname = current_database()";
        let texts = world.database.texts(count, database).await;
        texts[0].parse::<i64>().unwrap()
    };
    // PostgreSQL reports their statements with a second's delay.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let before = ended().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    ended().await - before
}
