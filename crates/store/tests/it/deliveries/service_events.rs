//! Service events: stored with their cause, and delivered to the Connections that receive them.

use std::time::Duration;

use diesel::result::Error;
use domain::{
    ConnectionName, DeliveryState, Post, ServiceEvent, ServiceEventType, Timestamp,
    manager::{ApplyError, ApplyErrorCode},
};
use store::{
    AsyncConnection, AsyncPgConnection, QueryResult, connections,
    deliveries::{self, Subject, Task, Verdict},
    erasure::{self, edits},
    feeds::{self, DayCounts, FeedGap},
    managers,
    service_events::{self, FannedOut},
};
use test_support::{eventually, instructions, post};

use super::{Sending, each, living, result, sending};
use crate::support::{die, record, run};

const ALL: &str = "{MANAGER_APPLIED,MANAGER_APPLY_FAILED,CONNECTION_DISABLED,COVERAGE_GAP,POST_DELETED,POST_EDITED}";

async fn receive(at: &mut Sending, connection: ConnectionName, types: &str) {
    let id = connection.connection.to_uuid();
    let sql = format!("UPDATE connections SET events = '{types}' WHERE id = '{id}'");
    assert_eq!(run(&mut at.at.conn, sql).await, 1);
}

async fn fan_out(conn: &mut AsyncPgConnection) -> QueryResult<FannedOut> {
    let events = service_events::list(conn, 9, &[], 99).await?;
    service_events::fan_out(conn, &events).await
}

fn event(task: &Task) -> &ServiceEvent {
    match &task.subject {
        Subject::Event(event) => event,
        Subject::Scan { name, .. } => panic!("{name}"),
    }
}

fn failure() -> ApplyError {
    ApplyError {
        code: ApplyErrorCode::NoReachableUrl,
        // Text from a foreign server.
        message: "no\0pe".to_owned(),
    }
}

/// The post as it is now.
fn current(id: &str, text: Option<&str>) -> Post {
    Post {
        text: text.map(str::to_owned),
        ..post(id, "another title")
    }
}

/// Causes one event of each type. `connections[0]` is disabled.
async fn cause_all(at: &mut Sending) {
    at.scan("forum:1").await;
    let (manager, disabled) = (at.manager, at.connections[0]);
    let (conn, fixture) = (&mut at.at.conn, &at.at.fixture);
    let ids = ["forum:1".to_owned()];
    for (erased, text) in [(1, "edited"), (0, "not told of")] {
        let edited = [current("forum:1", Some(text))];
        edits::record(conn, &edited).await.unwrap();
        assert_eq!(erasure::erase(conn, &ids).await.unwrap(), erased);
    }
    let now = Timestamp::now();
    for is_failed in [true, false] {
        let failed = managers::fail(conn, manager, 1, &failure(), now).await;
        assert_eq!(failed.unwrap(), is_failed);
    }
    fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    let gap = FeedGap {
        from: None,
        to: now,
        reason: "a pause".to_owned(),
        is_filled: false,
    };
    let feed = "hackernews:newest".parse().unwrap();
    feeds::record_day(conn, &feed, &DayCounts::default(), Some(&gap))
        .await
        .unwrap();
    for is_disabled in [true, false] {
        let done = connections::disable(conn, disabled, "gone", now).await;
        assert_eq!(done.unwrap(), is_disabled);
    }
}

#[tokio::test]
async fn event_is_delivered_like_a_scan_and_survives_its_dispatcher() {
    let mut at = sending(3).await;
    let [first, second, _] = at.connections[..] else {
        panic!("three are made");
    };
    for connection in [first, second] {
        receive(&mut at, connection, "{POST_DELETED}").await;
    }
    let scan = at.scan("forum:1").await;
    let conn = &mut at.at.conn;
    erasure::erase(conn, &["forum:1".to_owned()]).await.unwrap();
    let given = fan_out(conn).await.unwrap();
    assert_eq!((given.events, given.waiting), (1, vec![first, second]));
    assert_eq!(fan_out(conn).await.unwrap().events, 0);

    let replica = at.replica;
    let tasks = at.claim(replica, 9).await;
    assert_eq!(tasks.len(), 2);
    let told = event(&tasks[0]).clone();
    assert_eq!(&told, event(&tasks[1]));
    assert_eq!(told.event_type, ServiceEventType::PostDeleted);
    assert_eq!(told.name, scan.to_string());
    assert_eq!(told.details.post.as_ref().unwrap().id, "forum:1");
    assert_eq!(tasks[0].post_bytes(), 0);

    let conn = &mut at.at.conn;
    let logged = deliveries::get(conn, tasks[0].delivery).await.unwrap();
    let logged = logged.unwrap();
    assert_eq!((logged.scan, logged.event), (None, Some(told.clone())));

    let other = living(conn).await;
    die(conn, replica).await;
    let minute = Duration::from_secs(60);
    let freed = deliveries::free_orphans(conn, other, &[], minute, true).await;
    assert_eq!(freed.unwrap().len(), 2);
    let again = at.claim(other, 9).await;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|task| *event(task) == told));

    let sent = [result(&again[0], Verdict::Succeeded)];
    let conn = &mut at.at.conn;
    let recorded = deliveries::record_results(conn, other, &each(&sent)).await;
    assert_eq!(recorded.unwrap().moved.len(), 1);
    let reopened = deliveries::reopen(conn, again[0].delivery).await.unwrap();
    let reopened = reopened.unwrap();
    assert_eq!(reopened.state, DeliveryState::Pending);
    assert_eq!(reopened.event, Some(told));
}

#[tokio::test]
async fn listed_events_have_few_deliveries_together() {
    let mut at = sending(3).await;
    let [first, second, disabled] = at.connections[..] else {
        panic!("three are made");
    };
    for connection in [first, second] {
        receive(&mut at, connection, "{CONNECTION_DISABLED}").await;
    }
    let conn = &mut at.at.conn;
    let done = connections::disable(conn, disabled, "gone", Timestamp::now()).await;
    assert!(done.unwrap());
    let columns = "namespace_id, event_type, name, details";
    let again =
        format!("INSERT INTO service_events ({columns}) SELECT {columns} FROM service_events");
    assert_eq!(run(conn, again).await, 1);
    let all = service_events::list(conn, 9, &[], 4).await.unwrap();
    assert_eq!(all.len(), 2);
    for (except, deliveries, expected) in [
        (&all[..0], 3, &all[..1]),
        (&all[..0], 1, &all[..1]),
        (&all[..1], 3, &all[1..]),
        (&all[..], 9, &all[..0]),
    ] {
        let listed = service_events::list(conn, 9, except, deliveries).await;
        assert_eq!(listed.unwrap(), expected, "{deliveries}");
    }
}

#[tokio::test]
async fn each_cause_stores_its_event_once() {
    let mut at = sending(2).await;
    for connection in at.connections.clone() {
        receive(&mut at, connection, ALL).await;
    }
    cause_all(&mut at).await;
    let given = fan_out(&mut at.at.conn).await.unwrap();
    assert_eq!(given.events, 6);
    assert_eq!(given.waiting, [at.connections[1]], "the other is disabled");

    let events = |number: usize| {
        let id = at.connections[number].connection.to_uuid();
        format!("deliveries WHERE connection_id = '{id}' ORDER BY id")
    };
    let (types, database) = ("event->>'type'", &at.at.database);
    let all = [
        "POST_EDITED",
        "POST_DELETED",
        "MANAGER_APPLY_FAILED",
        "MANAGER_APPLIED",
        "COVERAGE_GAP",
        "CONNECTION_DISABLED",
    ];
    assert_eq!(database.texts(types, &events(1)).await, all);
    // A Connection does not receive that it was disabled itself.
    assert_eq!(database.texts(types, &events(0)).await, all[..5]);
    let namespace = at.at.fixture.namespace;
    let gap = format!("namespaces/{namespace} hackernews:newest a pause");
    let expected = [
        "forum:1",
        "forum:1",
        "watch nope",
        "watch",
        &gap,
        "hook gone",
    ];
    let shown = "concat_ws(' ', CASE WHEN event->>'type' = 'COVERAGE_GAP' THEN event->>'name' END, \
        event->>'nickname', event->'error'->>'message', event->>'reason', event->'post'->>'id', \
        event->'gap'->>'feed', event->'gap'->>'reason')";
    assert_eq!(database.texts(shown, &events(1)).await, expected);
}

#[tokio::test]
async fn each_edit_of_a_post_is_reported_once() {
    let mut at = sending(1).await;
    let connection = at.connections[0];
    at.scan("forum:1").await;
    at.scan("forum:2").await;
    let mut other = at.at.database.connect().await;
    let mut edit = async |at: &mut Sending, text| {
        let posts = [current("forum:1", text), current("forum:3", text)];
        // Two replicas at once, as after an outage of one.
        let (one, two) = tokio::join!(
            edits::record(&mut at.at.conn, &posts),
            edits::record(&mut other, &posts)
        );
        one.and(two).unwrap();
        at.at.database.count("service_events").await
    };
    assert_eq!(edit(&mut at, Some("no one asks yet")).await, 0);
    receive(&mut at, connection, "{POST_EDITED}").await;
    for (text, events) in [
        (Some("no one asks yet"), 0),
        // Markup that is read in another way.
        (Some("*no* one\nasks_yet?"), 0),
        (None, 0),
        (Some("edited"), 1),
        (Some("edited"), 1),
        (Some("text"), 2),
    ] {
        assert_eq!(edit(&mut at, text).await, events, "{text:?}");
    }
    let stored = at.at.database.texts("text", "posts ORDER BY post_id");
    assert_eq!(stored.await, ["text", "text"], "as it was matched");
}

#[tokio::test]
async fn nothing_is_stored_for_other_namespaces_and_types() {
    let mut at = sending(1).await;
    let conn = &mut at.at.conn;
    let other = at.at.fixture.beside(conn, "other").await;
    let foreign = other.connection(conn, "https://other.example/").await;
    receive(&mut at, foreign, ALL).await;
    cause_all(&mut at).await;
    assert_eq!(at.at.database.count("service_events").await, 0);
}

#[tokio::test]
async fn event_of_a_rolled_back_cause_is_not_stored() {
    let mut at = sending(1).await;
    let (manager, connection) = (at.manager, at.connections[0]);
    receive(&mut at, connection, ALL).await;
    let rolled_back = at
        .at
        .conn
        .transaction(async |conn| {
            managers::fail(conn, manager, 1, &failure(), Timestamp::now()).await?;
            Err::<(), _>(Error::RollbackTransaction)
        })
        .await;
    assert_eq!(rolled_back, Err(Error::RollbackTransaction));
    assert_eq!(at.at.database.count("service_events").await, 0);
}

/// Its Connections are gone with it.
#[tokio::test]
async fn event_of_a_deleted_connection_is_dropped() {
    let mut at = sending(1).await;
    let (manager, connection) = (at.manager, at.connections[0]);
    receive(&mut at, connection, ALL).await;
    let conn = &mut at.at.conn;
    managers::fail(conn, manager, 1, &failure(), Timestamp::now())
        .await
        .unwrap();
    connections::delete(conn, connection, true, Timestamp::now())
        .await
        .unwrap();
    let given = fan_out(conn).await.unwrap();
    assert_eq!((given.events, given.waiting), (1, Vec::new()));
    assert_eq!(at.at.database.count("service_events").await, 0);
    assert_eq!(at.at.database.count("deliveries").await, 0);
}

#[tokio::test]
async fn feed_with_many_gaps_causes_one_event_an_hour() {
    let mut at = sending(1).await;
    let connection = at.connections[0];
    receive(&mut at, connection, "{COVERAGE_GAP}").await;
    let conn = &mut at.at.conn;
    at.at
        .fixture
        .applied_manager(conn, &instructions("kettle"), &[])
        .await;
    let feed = "hackernews:newest".parse().unwrap();
    let gap = FeedGap {
        from: None,
        to: Timestamp::now(),
        reason: "a pause".to_owned(),
        is_filled: false,
    };
    for (passed, expected) in [(0, 1), (30, 1), (30, 1), (61, 2)] {
        let sql =
            format!("UPDATE feed_gaps SET find_time = find_time - interval '{passed} minutes'");
        run(conn, sql).await;
        feeds::record_day(conn, &feed, &DayCounts::default(), Some(&gap))
            .await
            .unwrap();
        let events = at.at.database.count("service_events").await;
        assert_eq!(events, expected, "{passed}");
    }
    assert_eq!(at.at.database.count("feed_gaps").await, 4);
}

#[tokio::test]
async fn change_of_many_posts_causes_a_hundred_events_of_each_namespace() {
    let mut at = sending(1).await;
    let (connection, types) = (at.connections[0], "{POST_DELETED,POST_EDITED}");
    receive(&mut at, connection, types).await;
    let conn = &mut at.at.conn;
    let other = at.at.fixture.beside(conn, "other").await;
    let foreign = other.connection(conn, "https://other.example/").await;
    let manager = other.manager(conn, &instructions("a"), &[foreign]).await;
    receive(&mut at, foreign, types).await;
    let conn = &mut at.at.conn;
    let ids: Vec<String> = (0..120).map(|n| format!("forum:{n}")).collect();
    let posts: Vec<_> = ids.iter().map(|id| post(id, "t")).collect();
    record(conn, at.manager, &posts).await;
    record(conn, manager, &posts[..3]).await;
    let edited: Vec<_> = { ids.iter() }
        .map(|id| current(id, Some("edited")))
        .collect();
    edits::record(conn, &edited).await.unwrap();
    assert_eq!(erasure::erase(conn, &ids).await.unwrap(), 120);
    for (namespace, expected) in [(at.at.fixture.namespace, 100), (other.namespace, 3)] {
        let id = namespace.to_uuid();
        for event in ["POST_EDITED", "POST_DELETED"] {
            let events =
                format!("service_events WHERE namespace_id = '{id}' AND event_type = '{event}'");
            assert_eq!(at.at.database.count(&events).await, expected, "{event}");
        }
    }
}

#[tokio::test]
async fn dispatcher_that_dies_in_the_fan_out_or_after_it_loses_no_event() {
    let mut at = sending(1).await;
    let (manager, connection) = (at.manager, at.connections[0]);
    receive(&mut at, connection, ALL).await;
    let conn = &mut at.at.conn;
    managers::fail(conn, manager, 1, &failure(), Timestamp::now())
        .await
        .unwrap();
    {
        let mut dying = at.at.database.begin(&[]).await;
        let given = fan_out(&mut dying).await.unwrap();
        assert_eq!(given.events, 1);
    }
    eventually("another one gives it", async || {
        let given = fan_out(&mut *conn).await;
        given.unwrap().events == 1
    })
    .await;
    assert_eq!(at.at.database.count("service_events").await, 0);
    assert_eq!(at.at.database.count("deliveries").await, 1);

    // This one dies before it sets the hint.
    run(conn, "UPDATE connection_lanes SET next_due_time = NULL").await;
    assert!(at.due().await.is_empty());
    let found = deliveries::find_waiting(&mut at.at.conn, None, 9).await;
    assert_eq!(found.unwrap().unnoted, 1);
    assert_eq!(at.due().await, [connection].into());
}
