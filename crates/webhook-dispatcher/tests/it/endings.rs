//! Deliveries that are not sent: shutdown with queued deliveries, expiry, and reports of what is left.

use std::{collections::BTreeSet, time::Duration};

use domain::{Id, Timestamp};
use test_support::{Answer, TestServer, eventually};
use tokio::sync::watch;

use crate::support::{World, after_warming, always, scripted};

/// Deliveries that wait in memory at a shutdown are handed back, and sent once by the next replica.
#[tokio::test]
async fn shutdown_returns_queued_deliveries() {
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 1;
    let (release, held) = watch::channel(false);
    let receiver = TestServer::start(move |number, _| match number {
        0..3 => Answer::Status(200),
        _ => Answer::once(&held, Answer::Status(200)),
    })
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 30).await;
    eventually("some are sent", async || receiver.count() > 3).await;
    // The queued ones are handed back before the open request is answered.
    let answer = async {
        world.until("IN_FLIGHT", 1).await;
        release.send(true).expect("the receiver waits");
    };
    tokio::join!(replica.stop(), answer);
    let sent = receiver.count();
    assert!(sent < 25, "{sent} were sent before the end");
    assert_eq!(
        world.in_state("SUCCEEDED").await,
        i64::try_from(sent).unwrap()
    );
    assert_eq!(
        world
            .database
            .count("deliveries WHERE leased_by IS NOT NULL OR state = 'IN_FLIGHT'")
            .await,
        0
    );

    world.config.dispatcher.lane_limit = 8;
    let next = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 30).await;
    next.stop().await;
    let bodies: BTreeSet<Vec<u8>> = receiver
        .requests()
        .into_iter()
        .map(|one| one.body)
        .collect();
    assert_eq!((receiver.count(), bodies.len()), (30, 30), "each once");
}

/// Otherwise they would wait for the sweep of the next replica.
#[tokio::test]
async fn shutdown_writes_hints_of_returned_deliveries() {
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 1;
    let (release, held) = watch::channel(false);
    let receiver = after_warming(Answer::once(&held, Answer::Status(200))).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    eventually("nothing waits", async || {
        let noted = "connection_lanes WHERE next_due_time IS NOT NULL";
        world.database.count(noted).await == 0
    })
    .await;
    // They fit into the lane's queue in memory, even if the endpoint is slow, so the database has no hint of them.
    world.scans_and_tell(manager, 2).await;
    world.until("IN_FLIGHT", 2).await;
    eventually("one is open", async || receiver.count() == warm + 1).await;
    let hint = "connection_lanes WHERE next_due_time <= clock_timestamp()";
    assert_eq!(world.database.count(hint).await, 0);
    let answer = async {
        world.until("PENDING", 1).await;
        release.send(true).expect("the receiver waits");
    };
    tokio::join!(replica.stop(), answer);
    assert_eq!(world.in_state("PENDING").await, 1);
    assert_eq!(world.database.count(hint).await, 1);
}

/// The endpoint is gone, and the shutdown begins before the queued deliveries are back in the database. Meanwhile
/// another replica has found nothing that waits, as the Connection was enabled again.
#[tokio::test]
async fn shutdown_writes_hints_of_deliveries_whose_return_was_slow() {
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 1;
    let (release, held) = watch::channel(false);
    let receiver = after_warming(Answer::once(&held, Answer::Status(410))).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    world.scans_and_tell(manager, 3).await;
    world.until("IN_FLIGHT", 3).await;
    eventually("one is open", async || receiver.count() == warm + 1).await;
    let lock = "SELECT FROM deliveries WHERE state = 'IN_FLIGHT' FOR UPDATE";
    let slow = world.database.begin(&[lock]).await;
    release.send(true).expect("the receiver waits");
    let returned = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' \
                    AND query LIKE '%leased_by = NULL, next_attempt_time = least%'";
    eventually("they are about to be returned", async || {
        world.database.count(returned).await == 1
    })
    .await;
    let unlock = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world
            .database
            .run("UPDATE connections SET state = 'ACTIVE', update_time = clock_timestamp()")
            .await;
        world
            .database
            .run("UPDATE connection_lanes SET next_due_time = NULL")
            .await;
        drop(slow);
    };
    tokio::join!(replica.stop(), unlock);
    assert_eq!(world.in_state("PENDING").await, 2);
    let hint = "connection_lanes WHERE next_due_time <= clock_timestamp()";
    assert_eq!(world.database.count(hint).await, 1);
}

#[tokio::test]
async fn shutdown_writes_hints_of_deliveries_that_were_requested_during_their_request() {
    let world = World::new().await;
    let (release, held) = watch::channel(false);
    let receiver = after_warming(Answer::once(&held, Answer::Status(200))).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    world.publish_scan(manager, "kettle").await;
    eventually("its request is open", async || receiver.count() == warm + 1).await;
    // Like a replay.
    let again =
        "UPDATE deliveries SET reopen_asked = true, reopen_time = now() WHERE state = 'IN_FLIGHT'";
    assert_eq!(world.database.run(again).await, 1);
    let hint = "connection_lanes WHERE next_due_time <= clock_timestamp()";
    assert_eq!(world.database.count(hint).await, 0);
    let answer = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        release.send(true).expect("the receiver waits");
    };
    tokio::join!(replica.stop(), answer);
    assert_eq!(world.in_state("PENDING").await, 1);
    assert_eq!(world.database.count(hint).await, 1);
}

/// Deliveries that wait for a rate limit are handed back too.
#[tokio::test]
async fn shutdown_returns_deliveries_that_wait_for_a_rate_limit() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    world
        .database
        .run("UPDATE connections SET max_per_second = 2")
        .await;
    world.scans(manager, 20).await;
    let replica = world.ready_dispatcher().await;
    eventually("some are sent", async || receiver.count() >= 4).await;
    replica.stop().await;
    let sent = receiver.count();
    assert!(sent < 15, "{sent}");
    assert_eq!(
        world.in_state("SUCCEEDED").await,
        i64::try_from(sent).unwrap()
    );
    assert_eq!(world.in_state("IN_FLIGHT").await, 0);
    world
        .database
        .run("UPDATE connections SET max_per_second = 20")
        .await;
    let next = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 20).await;
    next.stop().await;
    assert_eq!(receiver.count(), 20, "each once");
}

/// Deliveries of a disabled Connection are kept up to retention. An expired one has a reason, and is still sent if
/// it is requested again.
#[tokio::test]
async fn expired_deliveries_can_be_replayed() {
    let mut world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED', state_reason = 'by its owner'")
        .await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 3).await;
    world.until("PENDING", 3).await;
    replica.stop().await;

    // Disabling by the owner keeps them. They are within retention, even though they are older than `max_age`.
    world.config.dispatcher.max_age = Duration::from_millis(1);
    let replica = world.ready_dispatcher().await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(world.in_state("PENDING").await, 3);
    replica.stop().await;

    world.config.retention.deliveries = Duration::from_millis(1);
    let replica = world.ready_dispatcher().await;
    eventually("they are given up", async || {
        let expired = "deliveries WHERE state = 'EXHAUSTED' AND last_error = 'expired'";
        world.database.count(expired).await == 3
    })
    .await;
    replica.stop().await;
    assert_eq!(receiver.count(), 0);

    world.config.retention.deliveries = Duration::from_secs(86_400);
    world.config.dispatcher.max_age = Duration::from_secs(86_400);
    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE', state_reason = NULL")
        .await;
    let replica = world.ready_dispatcher().await;
    {
        let mut conn = world.database.connect().await;
        let list = domain::list::ListQuery::parse(
            "",
            domain::list::DELIVERY_FIELDS,
            None,
            None,
            None,
            None,
        );
        let page = store::deliveries::list(&mut conn, connection, &list.unwrap())
            .await
            .unwrap();
        for delivery in page.items {
            store::deliveries::reopen(&mut conn, delivery.name)
                .await
                .unwrap()
                .unwrap();
        }
    }
    world.until("SUCCEEDED", 3).await;
    replica.stop().await;
    assert_eq!(receiver.count(), 3);
}

/// The time while their Connection was disabled does not count against them.
#[tokio::test]
async fn deliveries_older_than_max_age_are_retried_after_their_connection_is_enabled() {
    let mut world = World::new().await;
    world.config.dispatcher.max_age = Duration::from_secs(3_600);
    let receiver = scripted(vec![Answer::Status(500), Answer::Status(500)]).await;
    let manager = world.manager_for(&receiver).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED', update_time = clock_timestamp() - interval '2 hours'")
        .await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("PENDING", 1).await;
    let time = Timestamp::now().minus(Duration::from_secs(7_200));
    let id = Id::at(time).to_uuid();
    world
        .database
        .run(&format!(
            "UPDATE deliveries SET id = '{id}', create_time = id_time('{id}')"
        ))
        .await;
    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE', update_time = clock_timestamp()")
        .await;
    eventually("it ends", async || {
        world.in_state("SUCCEEDED").await + world.in_state("EXHAUSTED").await == 1
    })
    .await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 500 -", "2 500 -", "3 200 -"]);
}

#[tokio::test]
async fn unfinished_deliveries_are_counted_by_state() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(600); 3];
    let (well, ill) = (
        always(Answer::Status(200)).await,
        always(Answer::Status(500)).await,
    );
    let connections = [world.connection(&well).await, world.connection(&ill).await];
    let manager = world.manager(&connections).await;
    let off = connections[0].connection.to_uuid();
    world
        .database
        .run(&format!(
            "UPDATE connections SET state = 'DISABLED' WHERE id = '{off}'"
        ))
        .await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 4).await;
    world.until("RETRYING", 4).await;
    let mut conn = world.database.connect().await;
    let told = store::deliveries::count_unfinished(&mut conn, 10_000)
        .await
        .unwrap();
    assert_eq!((told.pending, told.retrying, told.in_flight), (4, 4, 0));
    assert_eq!(told.due, 4);
    let endpoints = store::deliveries::endpoints(&mut conn).await.unwrap();
    assert_eq!((endpoints.active, endpoints.disabled), (1, 1));
    let told = store::deliveries::count_unfinished(&mut conn, 3)
        .await
        .unwrap();
    assert_eq!(told.pending + told.retrying, 3, "bounded");
    eventually("the metrics tell of states", async || {
        let gathered = prometheus::gather();
        let names: BTreeSet<&str> = gathered.iter().map(|family| family.name()).collect();
        [
            "earshot_deliveries_unfinished",
            "earshot_deliveries_due",
            "earshot_endpoints",
        ]
        .iter()
        .all(|name| names.contains(name))
    })
    .await;
    replica.stop().await;
}
