//! Events that a service publishes reach the bus.

use bus::Received;
use domain::{Id, ScanName, Timestamp};
use events::ScanCreated;
use test_support::{TIMEOUT, TestDatabase, eventually};

use crate::support::{backbone, check, start};

#[tokio::test]
async fn events_reach_the_bus_and_the_last_ones_before_the_service_ends() {
    let database = TestDatabase::create().await;
    let backbone = backbone(&database);
    let mut subscription = backbone
        .bus
        .work(bus::topology::SCAN_CREATED, &["scan.created"]);
    let replica = start("scanner", backbone.clone());
    eventually("it works", async || check(&replica, "working").0).await;
    let publish = || {
        let scan = Id::generate();
        backbone.events.publish(ScanCreated {
            name: ScanName {
                namespace: Id::generate(),
                manager: Id::generate(),
                scan,
            },
            create_time: Timestamp::now(),
        });
    };
    let mut next = async || {
        let next = tokio::time::timeout(TIMEOUT, subscription.next());
        next.await.expect("something comes")
    };
    publish();
    assert!(matches!(next().await, Received::Connected));
    assert!(matches!(next().await, Received::Delivery(_)));
    publish();
    replica.stop().await;
    assert!(matches!(next().await, Received::Delivery(_)));
}
