//! Dispatchers that come, go and die.

use std::time::Duration;

use test_support::{Answer, eventually};

use crate::support::{SOON, World, after_warming, always, scripted};

#[tokio::test]
async fn a_scan_whose_event_is_lost_is_delivered_all_the_same() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    world.scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    for replica in replicas {
        replica.stop().await;
    }
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn what_a_killed_dispatcher_had_open_is_repeated_by_another() {
    let mut world = World::new().await;
    world.config.dispatcher.timeout = Duration::from_secs(20);
    let receiver = scripted(vec![Answer::Hang]).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let first = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    eventually("the request is open", SOON, async || receiver.count() == 1).await;
    let second = world.ready_dispatcher().await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(receiver.count(), 1, "the lease is not kept");

    first.kill();
    let took = world.until("SUCCEEDED", 1).await;
    assert!(took < Duration::from_millis(6_500), "{took:?}");
    let requests = receiver.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
    second.stop().await;
}

#[tokio::test]
async fn a_shutdown_waits_for_open_requests_and_records_them() {
    let world = World::new().await;
    let receiver = after_warming(Answer::after(
        Duration::from_millis(500),
        Answer::Status(200),
    ))
    .await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let warm = world.warm(manager).await;
    for number in 0..4 {
        world
            .scan_and_tell(manager, &format!("kettle {number}"))
            .await;
    }
    eventually("the requests are open", SOON, async || {
        receiver.count() == warm + 4
    })
    .await;
    replica.stop().await;
    assert_eq!(world.in_state("SUCCEEDED").await, 8 + 4);
    assert_eq!(world.database.count("delivery_attempts").await, 8 + 4);
    assert_eq!(world.database.count("replicas").await, 0);
}

#[tokio::test]
async fn connections_lost_in_between_lose_no_delivery() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    for number in 0..20 {
        world
            .scan_and_tell(manager, &format!("kettle {number}"))
            .await;
        if number % 4 == 0 {
            world.database.disconnect_all().await;
        }
    }
    // A commit whose answer was lost leaves a lease that takes a while to be missed.
    eventually("all are delivered", 3 * SOON, async || {
        world.in_state("SUCCEEDED").await == 20
    })
    .await;
    for replica in replicas {
        replica.stop().await;
    }
}
