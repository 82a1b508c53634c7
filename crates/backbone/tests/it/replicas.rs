//! Heartbeats: from before the first lease to after the last.

use std::{sync::Arc, time::Duration};

use test_support::{Replica, TestDatabase, eventually};

use crate::support::{SOON, backbone, check, start};

const ALIVE: &str = "replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds'";

#[tokio::test]
async fn a_replica_is_known_before_it_works_and_gone_after() {
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
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert_eq!(seen.count(ALIVE).await, 1);
        Ok(())
    });
    eventually("it works", SOON, async || check(&replica, "working").0).await;
    let services = database.texts("service", "replicas").await;
    assert_eq!(services, ["scanner"]);
    replica.stop().await;
    assert_eq!(database.count("replicas").await, 0);
}

#[tokio::test]
async fn the_heartbeat_is_renewed_through_lost_connections() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it works", SOON, async || check(&replica, "working").0).await;
    let begin = tokio::time::Instant::now();
    while begin.elapsed() < Duration::from_secs(5) {
        if begin.elapsed() < Duration::from_secs(2) {
            database.disconnect_all().await;
        }
        assert_eq!(database.count(ALIVE).await, 1, "its leases were free");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    replica.stop().await;
}

#[tokio::test]
async fn a_busy_pool_costs_no_heartbeat() {
    let database = TestDatabase::create().await;
    let mut config = test_support::config(&database, store::roles::Service::Scanner);
    config.database.max_connections = 2;
    let backbone = backbone::Backbone::in_process(&config).unwrap();
    let replica = start("scanner", backbone.clone());
    eventually("it works", SOON, async || check(&replica, "working").0).await;
    let held = (
        backbone.pool.get().await.unwrap(),
        backbone.pool.get().await.unwrap(),
    );
    tokio::time::sleep(Duration::from_millis(4_500)).await;
    assert_eq!(database.count(ALIVE).await, 1, "its leases were free");
    drop(held);
    replica.stop().await;
}

#[tokio::test]
async fn a_killed_replica_is_dead_after_four_seconds() {
    let database = TestDatabase::create().await;
    let replica = start("scanner", backbone(&database));
    eventually("it works", SOON, async || check(&replica, "working").0).await;
    replica.kill();
    let silence = eventually("it counts as dead", SOON, async || {
        database.count(ALIVE).await == 0
    })
    .await;
    assert!(silence > Duration::from_millis(2_500), "{silence:?}");
    assert_eq!(database.count("replicas").await, 1, "it was not removed");
}
