//! Events in the outbox reach the bus: at once if woken, by the sweep if not.

use std::time::Duration;

use bus::{Received, Subscription};
use domain::{Id, ScanName, Timestamp};
use events::ScanCreated;
use store::{AsyncConnection, outbox};
use test_support::{TIMEOUT, TestDatabase, eventually};

use crate::support::{backbone, check, start};

fn event() -> ScanCreated {
    ScanCreated {
        name: ScanName {
            namespace: Id::generate(),
            manager: Id::generate(),
            scan: Id::generate(),
        },
        create_time: Timestamp::now(),
    }
}

async fn commit(database: &TestDatabase) {
    let mut conn = database.connect().await;
    conn.transaction(async |conn| outbox::enqueue(conn, &event()).await)
        .await
        .unwrap();
}

/// Time until the next message.
async fn arrival(subscription: &mut Box<dyn Subscription>) -> Duration {
    let begin = tokio::time::Instant::now();
    loop {
        let next = tokio::time::timeout(TIMEOUT, subscription.next());
        if let Received::Delivery(delivery) = next.await.expect("a message comes") {
            delivery.settle.ack().await.unwrap();
            return begin.elapsed();
        }
    }
}

#[tokio::test]
async fn events_are_published_after_a_wake_and_by_the_sweep() {
    let database = TestDatabase::create().await;
    let backbone = backbone(&database);
    let mut subscription = backbone
        .bus
        .work(bus::topology::SCAN_CREATED, &["scan.created"], 8);
    let replica = start("scanner", backbone.clone());
    eventually("it works", async || check(&replica, "working").0).await;

    // Through sweeps alone, each event after the first would take five seconds, because it starts when the previous
    // sweep has ended.
    let mut woken = Duration::MAX;
    for round in 0..5 {
        commit(&database).await;
        backbone.outbox.wake();
        let took = arrival(&mut subscription).await;
        if round > 0 {
            woken = woken.min(took);
        }
    }
    assert!(woken < Duration::from_secs(3), "{woken:?}");

    // Committed by a process that died before it could wake the relay.
    commit(&database).await;
    arrival(&mut subscription).await;
    eventually("what was published is deleted", async || {
        database.count("outbox").await == 0
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn events_survive_lost_connections() {
    let database = TestDatabase::create().await;
    let backbone = backbone(&database);
    let mut subscription = backbone
        .bus
        .work(bus::topology::SCAN_CREATED, &["scan.created"], 8);
    let replica = start("scanner", backbone.clone());
    eventually("it works", async || check(&replica, "working").0).await;
    for _ in 0..5 {
        commit(&database).await;
        database.disconnect_all().await;
        backbone.outbox.wake();
        arrival(&mut subscription).await;
    }
    replica.stop().await;
}
