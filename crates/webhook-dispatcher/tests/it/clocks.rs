//! Wrong clocks: of a dispatcher, or of the database.

use std::time::Duration;

use domain::{Id, Timestamp};
use test_support::{Answer, eventually};

use crate::support::{World, always, scripted};

#[tokio::test]
async fn dispatcher_whose_clock_is_ahead_expires_nothing() {
    let mut world = World::new().await;
    world.config.dispatcher.max_age = Duration::from_secs(1_800);
    // By the database's clock, the one of the dispatcher is 50 minutes ahead.
    world.database.skew_clock("-50 minutes").await;
    let receiver = scripted(vec![Answer::Status(500)]).await;
    let manager = world.manager_for(&receiver).await;
    let change = |state: &str| {
        format!("UPDATE connections SET state = '{state}', update_time = clock_timestamp()")
    };
    world.database.run(&change("DISABLED")).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("PENDING", 1).await;
    // As a dispatcher with the database's clock creates it.
    let id = Id::at(Timestamp::now().minus(Duration::from_secs(3_000))).to_uuid();
    let create = format!("UPDATE deliveries SET id = '{id}', create_time = id_time('{id}')");
    world.database.run(&create).await;
    world.database.run(&change("ACTIVE")).await;
    eventually("it ends", async || {
        world.in_state("SUCCEEDED").await + world.in_state("EXHAUSTED").await == 1
    })
    .await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 500 -", "2 200 -"]);
}

/// Next to more old deliveries than the sweep counts.
#[tokio::test]
async fn retries_and_replays_do_not_wait_for_a_clock_that_went_back() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(10); 3];
    world.database.skew_clock("50 minutes").await;
    let (paused, receiver) = (
        always(Answer::Status(200)).await,
        scripted(vec![Answer::Status(500)]).await,
    );
    let old = world.connection(&paused).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    let (namespace, connection) = (old.namespace.to_uuid(), old.connection.to_uuid());
    world
        .database
        .run(&format!(
            "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, \
                 state, next_attempt_time) \
             SELECT '{namespace}', '{connection}', gen_random_uuid(), t, t, gen_random_uuid(), gen_random_uuid(), \
                 'PENDING', t \
             FROM generate_series(1, 11000), (SELECT now() - interval '2 hours' AS t) AS at"
        ))
        .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("RETRYING", 1).await;
    world
        .database
        .run(
            "INSERT INTO replays (namespace_id, connection_id, id, create_time, update_time, start_time, end_time, \
                 total, counted, place_time, place_id, next_batch_time) \
             SELECT namespace_id, id, gen_random_uuid(), t, t, t, t, 0, true, t, gen_random_uuid(), \
                 clock_timestamp() + interval '30 minutes' \
             FROM connections, (SELECT now() - interval '1 day' AS t) AS at WHERE state = 'ACTIVE'"
        )
        .await;
    world.database.skew_clock("0").await;
    world.until("SUCCEEDED", 1).await;
    let running = "replays WHERE state = 'RUNNING'";
    eventually("the replay ends", async || {
        world.database.count(running).await == 0
    })
    .await;
    replica.stop().await;
}
