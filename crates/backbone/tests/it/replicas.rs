//! Heartbeats: from before the first lease to after the last.

use std::{sync::Arc, time::Duration};

use test_support::{Proxy, Replica, TestDatabase, eventually};

use crate::support::{backbone, check, start};

/// Four seconds are the limit, and a heartbeat of a busy machine may be late.
const ALIVE: &str = "replicas WHERE heartbeat_time > clock_timestamp() - interval '10 seconds'";

/// The only replica: its id and its last heartbeat.
async fn beat(database: &TestDatabase) -> (String, String) {
    let ids = database.texts("id", "replicas").await;
    let times = database.texts("heartbeat_time", "replicas").await;
    match (&ids[..], &times[..]) {
        ([id], [time]) => (id.clone(), time.clone()),
        _ => panic!("its leases were free: {ids:?}"),
    }
}

/// Waits until the same replica beats once more. The runner ends a test that waits for ever.
async fn next_beat(database: &TestDatabase) {
    let before = beat(database).await;
    loop {
        let now = beat(database).await;
        assert_eq!(now.0, before.0, "its leases were free");
        if now.1 != before.1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn replica_is_registered_while_it_works() {
    let database = Arc::new(TestDatabase::create().await);
    let hosted = backbone(&database);
    let (own, seen) = (hosted.clone(), Arc::clone(&database));
    let replica = Replica::start("scanner", hosted, move |context| async move {
        assert!(own.ready(&context.shutdown).await);
        // Work may take a lease as its very first action.
        assert_eq!(seen.count(ALIVE).await, 1);
        context.health.check("working").ok();
        context.shutdown.cancelled().await;
        // While it drains it still holds its leases.
        next_beat(&seen).await;
        Ok(())
    });
    eventually("it works", async || check(&replica, "working").0).await;
    let services = database.texts("service", "replicas").await;
    assert_eq!(services, ["scanner"]);
    replica.stop().await;
    assert_eq!(database.count("replicas").await, 0);
}

#[tokio::test]
async fn the_heartbeat_is_renewed_through_lost_connections() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it works", async || check(&replica, "working").0).await;
    for _ in 0..4 {
        database.disconnect_all().await;
        next_beat(&database).await;
    }
    replica.stop().await;
}

#[tokio::test]
async fn the_heartbeat_leaves_a_server_that_answers_nothing() {
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(&database.server()).await;
    let mut config = test_support::config(&database, store::roles::Service::Scanner);
    let url = proxy.url(&database.url_of(store::roles::Service::Scanner));
    config.database.url = url.into();
    let replica = start("scanner", backbone::Backbone::in_process(&config).unwrap());
    eventually("it works", async || check(&replica, "working").0).await;

    proxy.silence();
    // A heartbeat may have passed just before.
    eventually("no statement runs", async || {
        let running = "pg_stat_activity WHERE datname = current_database() \
                       AND state = 'active' AND pid <> pg_backend_pid()";
        database.count(running).await == 0
    })
    .await;
    database.run("TRUNCATE replicas").await;

    eventually("it beats at the new server", async || {
        database.count("replicas").await == 1
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn busy_pool_costs_no_heartbeat() {
    let database = TestDatabase::create().await;
    let mut config = test_support::config(&database, store::roles::Service::Scanner);
    config.database.max_connections = 2;
    let backbone = backbone::Backbone::in_process(&config).unwrap();
    let replica = start("scanner", backbone.clone());
    eventually("it works", async || check(&replica, "working").0).await;
    let held = (
        backbone.pool.get().await.unwrap(),
        backbone.pool.get().await.unwrap(),
    );
    for _ in 0..3 {
        next_beat(&database).await;
    }
    drop(held);
    replica.stop().await;
}

#[tokio::test]
async fn killed_replica_counts_as_dead() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it works", async || check(&replica, "working").0).await;
    replica.kill();
    eventually("it counts as dead", async || {
        database.count(ALIVE).await == 0
    })
    .await;
    assert_eq!(database.count("replicas").await, 1, "it was not removed");
}
