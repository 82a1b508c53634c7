//! Ends of deliveries that are not sent, the end of a dispatcher that has more than it sends, and reports of
//! those that are left.

use std::{collections::BTreeSet, time::Duration};

use test_support::{Answer, eventually};

use crate::support::{SOON, World, always};

/// Deliveries that wait in memory at a shutdown are handed back, and sent once by the next replica.
#[tokio::test]
async fn a_shutdown_hands_back_what_is_queued() {
    let mut world = World::new().await;
    world.config.dispatcher.lane_limit = 1;
    let slow = Answer::after(Duration::from_millis(150), Answer::Status(200));
    let receiver = always(slow).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 30).await;
    eventually("some are sent", SOON, async || receiver.count() >= 3).await;
    replica.stop().await;
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

/// Deliveries paced by a rate limit that wait for their time are handed back too.
#[tokio::test]
async fn a_shutdown_hands_back_what_waits_for_its_rate() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    world
        .database
        .run("UPDATE connections SET max_per_second = 5")
        .await;
    world.scans(manager, 20).await;
    let replica = world.ready_dispatcher().await;
    eventually("some are sent", SOON, async || receiver.count() >= 4).await;
    replica.stop().await;
    let sent = receiver.count();
    assert!(sent < 15, "{sent}");
    assert_eq!(
        world.in_state("SUCCEEDED").await,
        i64::try_from(sent).unwrap()
    );
    assert_eq!(world.in_state("IN_FLIGHT").await, 0);
    let next = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 20).await;
    next.stop().await;
    assert_eq!(receiver.count(), 20, "each once");
}

/// Deliveries of a disabled Connection are kept up to retention. One that is given up has a reason, and is
/// sent all the same when it is asked for again.
#[tokio::test]
async fn what_waits_too_long_expires_and_can_be_replayed() {
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

    // The owner's own switch leaves them; they are within retention, older than `max_age` or not.
    world.config.dispatcher.max_age = Duration::from_millis(1);
    let replica = world.ready_dispatcher().await;
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(world.in_state("PENDING").await, 3);
    replica.stop().await;

    world.config.retention.deliveries = Duration::from_millis(1);
    let replica = world.ready_dispatcher().await;
    eventually("they are given up", 2 * SOON, async || {
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
    let before = latencies();
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
    // Other tests of this process may have added theirs, but none that took as long as these have waited.
    let late = latencies() - before;
    assert_eq!(
        late, 0,
        "what was asked for again is no first delivery's delay"
    );
}

/// Number of reported delays of more than five seconds, in any stage.
fn latencies() -> u64 {
    let gathered = prometheus::gather();
    let found = gathered
        .iter()
        .find(|family| family.name() == "earshot_delivery_latency_seconds");
    let metrics = found.map(|family| family.get_metric()).unwrap_or_default();
    let late = metrics.iter().map(|metric| {
        let histogram = metric.get_histogram();
        let within = histogram
            .get_bucket()
            .iter()
            .find(|bucket| bucket.upper_bound() >= 5.0);
        histogram.get_sample_count() - within.map_or(0, |bucket| bucket.cumulative_count())
    });
    late.sum()
}

#[tokio::test]
async fn what_is_left_is_counted_by_state() {
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
    let told = store::deliveries::standings(&mut conn, 10_000)
        .await
        .unwrap();
    assert_eq!((told.pending, told.retrying, told.in_flight), (4, 4, 0));
    assert_eq!((told.due, told.active, told.disabled), (4, 1, 1));
    let told = store::deliveries::standings(&mut conn, 3).await.unwrap();
    assert_eq!(told.pending + told.retrying, 3, "bounded");
    eventually("the metrics tell of states", SOON, async || {
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
