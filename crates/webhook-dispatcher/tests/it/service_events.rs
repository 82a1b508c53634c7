//! Service events, from their cause to the receiver.

use domain::{ConnectionName, Timestamp};
use serde_json::Value;
use test_support::{Answer, eventually};

use crate::support::{World, always, scripted};

async fn receive_events(world: &World, connection: ConnectionName) {
    let id = connection.connection.to_uuid();
    world
        .database
        .run(&format!(
            "UPDATE connections SET events = '{{CONNECTION_DISABLED}}' WHERE id = '{id}'"
        ))
        .await;
}

#[tokio::test]
async fn connection_that_answers_410_is_told_to_the_others() {
    let world = World::new().await;
    let (gone, receiver) = (
        always(Answer::Status(410)).await,
        scripted(vec![Answer::Status(500)]).await,
    );
    let [disabled, receiving] = [
        world.connection(&gone).await,
        world.connection(&receiver).await,
    ];
    for connection in [disabled, receiving] {
        receive_events(&world, connection).await;
    }
    let manager = world.manager(&[disabled]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;

    let requests = receiver.requests();
    assert_eq!(requests.len(), 2, "it was retried");
    assert_eq!(requests[0].body, requests[1].body);
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(body["type"], "CONNECTION_DISABLED");
    assert_eq!(body["name"], disabled.to_string());
    assert_eq!(body["nickname"], "hook");
    assert_eq!(body["reason"], "the endpoint answered 410");
    assert!(body["id"].is_string() && body["time"].is_string());
    assert_eq!(gone.count(), 1);
}

#[tokio::test]
async fn event_is_sent_again_after_its_dispatcher_died() {
    let world = World::new().await;
    let receiver = scripted(vec![Answer::Hang]).await;
    let [disabled, receiving] = [
        world.connection(&receiver).await,
        world.connection(&receiver).await,
    ];
    receive_events(&world, receiving).await;
    let mut conn = world.database.connect().await;
    let now = Timestamp::now();
    let done = store::connections::disable(&mut conn, disabled, "gone", now).await;
    assert!(done.unwrap());

    let first = world.ready_dispatcher().await;
    eventually("a request is open", async || receiver.count() == 1).await;
    first.kill();
    let second = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 1).await;
    second.stop().await;
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
}

#[tokio::test]
async fn refused_events_delay_no_other() {
    /// More than a dispatcher takes at a time.
    const REFUSED: i64 = 129;
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let mut conn = world.database.connect().await;
    let receiving = world.connection(&receiver).await;
    receive_events(&world, receiving).await;
    let mut disabled = Vec::new();
    for _ in 0..3 {
        let connection = world.connection(&receiver).await;
        let done = store::connections::disable(&mut conn, connection, "gone", Timestamp::now());
        assert!(done.await.unwrap());
        disabled.push(connection);
        if disabled.len() == 1 {
            let columns = "namespace_id, event_type, name, details";
            let copies = format!("generate_series(2, {REFUSED})");
            let copies = format!("SELECT {columns} FROM service_events, {copies}");
            let copies = format!("INSERT INTO service_events ({columns}) {copies}");
            world.database.run(&copies).await;
        }
    }
    let rule = format!("CHECK (event ->> 'name' <> '{}')", disabled[0]);
    let rule = format!("ALTER TABLE deliveries ADD CONSTRAINT poison {rule}");
    world.database.run(&rule).await;
    let replica = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 2).await;
    world
        .database
        .run("ALTER TABLE deliveries DROP CONSTRAINT poison")
        .await;
    world.until("SUCCEEDED", REFUSED + 2).await;
    assert_eq!(i64::try_from(receiver.count()), Ok(REFUSED + 2));
    replica.stop().await;
}
