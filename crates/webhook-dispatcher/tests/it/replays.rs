//! Replays with real dispatchers: each delivery of the window arrives once more, even if a process dies.

use std::{collections::HashMap, time::Duration};

use domain::{Replay, Timestamp, replay::CreateReplay};
use store::{AsyncConnection, deliveries, replays};
use test_support::{Answer, eventually};
use tokio::sync::watch;

use crate::support::{World, always, scripted};

impl World {
    pub(crate) async fn replay(&self, connection: domain::ConnectionName) -> Replay {
        let draft = CreateReplay {
            start_time: Timestamp::now().minus(Duration::from_secs(3_600)),
            end_time: None,
            states: None,
        };
        let mut conn = self.database.connect().await;
        conn.transaction(async |conn| replays::insert(conn, connection, &draft).await)
            .await
            .unwrap()
            .unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_survives_restarts_and_sends_each_delivery_once() {
    const COUNT: usize = 400;
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, COUNT).await;
    let all = i64::try_from(COUNT).unwrap();
    eventually("all arrived", async || {
        world.in_state("SUCCEEDED").await == all
    })
    .await;

    let replay = world.replay(connection).await;
    assert_eq!(replay.total, COUNT as u64);
    let past = async |count: i64| {
        eventually(&format!("{count} reopened"), async || {
            world
                .database
                .count(&format!("replays WHERE done >= {count}"))
                .await
                == 1
        })
        .await;
    };
    // The first replica dies, the second is stopped, and the third and fourth complete the replay.
    past(100).await;
    let dead = replica.backbone.replica;
    replica.kill();
    let leased = format!("deliveries WHERE leased_by = '{dead}'");
    let leased = usize::try_from(world.database.count(&leased).await).unwrap();
    let second = world.ready_dispatcher().await;
    past(250).await;
    second.stop().await;
    let (third, fourth) = (
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    );
    eventually("the replay is done", async || {
        world.database.count("replays WHERE state = 'DONE'").await == 1
    })
    .await;
    eventually("all arrived again", async || {
        world.in_state("SUCCEEDED").await == all
    })
    .await;
    third.stop().await;
    fourth.stop().await;

    let told = world
        .database
        .texts("total || ' ' || done", "replays")
        .await;
    assert_eq!(told, [format!("{COUNT} {COUNT}")]);
    assert_eq!(
        world
            .database
            .count("deliveries WHERE schedule_base = 1")
            .await,
        all
    );
    let mut arrived: HashMap<Vec<u8>, usize> = HashMap::new();
    for request in receiver.requests() {
        *arrived.entry(request.body).or_default() += 1;
    }
    assert_eq!(arrived.len(), COUNT);
    assert!(arrived.values().all(|times| *times >= 2), "each came again");
    // Only deliveries that the first replica had open or unwritten when it died may arrive once more.
    let surplus: usize = arrived.values().map(|times| times - 2).sum();
    assert!(
        surplus <= leased.max(40),
        "{surplus} came once more, of {leased}"
    );
}

#[tokio::test]
async fn replay_restarts_the_schedule_and_appends_attempts() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Status(500); 4]).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("EXHAUSTED", 1).await;
    world.replay(connection).await;
    eventually("it arrives", async || {
        world.in_state("SUCCEEDED").await == 1
    })
    .await;
    assert_eq!(
        world.attempts().await,
        ["1 500 -", "2 500 -", "3 500 -", "4 500 -", "5 200 -"]
    );
    replica.stop().await;
}

#[tokio::test]
async fn requested_retry_is_sent_at_once_past_an_open_breaker() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(600); 3];
    let receiver = scripted(vec![Answer::Status(500); 6]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 5).await;
    let open = "connection_lanes WHERE open_until > now() + interval '5 seconds'";
    let closed = "connection_lanes WHERE open_until IS NULL";
    eventually("the breaker opens", async || {
        world.database.count(open).await == 1
    })
    .await;
    assert_eq!(world.database.count(closed).await, 0);
    let name = {
        let mut conn = world.database.connect().await;
        let namespace = world.fixture.namespace;
        let list = domain::list::ListQuery::parse(
            "",
            domain::list::DELIVERY_FIELDS,
            None,
            None,
            None,
            None,
        );
        let page = deliveries::list_all(&mut conn, namespace, &list.unwrap())
            .await
            .unwrap();
        page.items[0].name
    };
    // The sixth response is a 500, and the next attempt succeeds.
    for expected in ["RETRYING", "SUCCEEDED"] {
        let before = receiver.count();
        let mut conn = world.database.connect().await;
        deliveries::reopen(&mut conn, name).await.unwrap().unwrap();
        eventually("it is sent", async || receiver.count() > before).await;
        let in_state = format!(
            "deliveries WHERE id = '{}' AND state = '{expected}' AND NOT urgent",
            name.delivery.to_uuid()
        );
        eventually(expected, async || {
            world.database.count(&in_state).await == 1
        })
        .await;
    }
    eventually("its success closes the breaker", async || {
        world.database.count(closed).await == 1
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn retry_during_an_open_request_is_sent_after_it() {
    let world = World::new().await;
    let (release, held) = watch::channel(false);
    let receiver = scripted(vec![Answer::once(&held, Answer::Status(200))]).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("IN_FLIGHT", 1).await;
    assert_eq!(
        world
            .database
            .run("UPDATE deliveries SET reopen_asked = true, urgent = true")
            .await,
        1
    );
    release.send(true).expect("the receiver waits");
    eventually("it comes again", async || receiver.count() == 2).await;
    world.until("SUCCEEDED", 1).await;
    assert_eq!(world.attempts().await, ["1 200 -", "2 200 -"]);
    let rest = "deliveries WHERE schedule_base = 1 AND NOT urgent AND NOT reopen_asked";
    assert_eq!(world.database.count(rest).await, 1);
    replica.stop().await;
}
