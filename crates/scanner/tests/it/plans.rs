//! However plans change, no post is matched against old ones.

use std::time::Duration;

use platforms::simulator::{Fault, FaultKind};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, SOON, World};

#[tokio::test]
async fn a_new_plan_works_within_a_second_of_its_event() {
    let world = World::new().await;
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A kettle that listens");
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    world.tell_applied(manager).await;
    let took = world.until_scanned(manager, 1).await;
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    replica.stop().await;
}

#[tokio::test]
async fn a_new_plan_works_soon_though_no_event_tells() {
    let world = World::new().await;
    // Someone watches the feed already, so that nothing but the index has to change.
    world.manager("toaster", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    world.until_asked("/hackernews").await;
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    world.publish("hackernews", "A kettle that listens");
    let took = world.until_scanned(manager, 1).await;
    assert!(took < Duration::from_millis(3_000), "{took:?}");
    replica.stop().await;
}

#[tokio::test]
async fn a_plan_applied_while_a_poll_is_open_matches_its_posts() {
    let world = World::new().await;
    world.manager("toaster", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    for number in 0..5 {
        world.platforms.fail(Fault {
            platform: "lemmy".to_owned(),
            kind: FaultKind::Delay,
            times: 1,
            value: 400,
            path: None,
        });
        world.until_asked("/lemmy").await;
        // The answer, when it comes, has the post; the index of the poll's begin lacks the plan.
        let manager = world.manager(&format!("kettle{number}"), &[LEMMY]).await;
        world.publish("lemmy", &format!("A kettle{number} that listens"));
        world.until_scanned(manager, 1).await;
    }
    replica.stop().await;
}

#[tokio::test]
async fn a_disabled_manager_matches_nothing_and_its_feeds_rest() {
    let world = World::new().await;
    let off = world.manager("kettle", &[HACKER_NEWS, LEMMY]).await;
    let on = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "First kettle");
    world.until_scanned(off, 1).await;
    world.until_scanned(on, 1).await;

    world.disable(off).await;
    world.publish("hackernews", "Second kettle");
    world.publish("lemmy", "Second kettle");
    world.until_scanned(on, 2).await;
    assert_eq!(world.feed(HACKER_NEWS, "watched").await, "false");
    eventually("an open poll ends", SOON, async || {
        world.feed(HACKER_NEWS, "leased_by").await.is_empty()
    })
    .await;
    let before = world.platforms.requests("/hackernews");
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert_eq!(world.platforms.requests("/hackernews"), before);
    replica.stop().await;
    assert_eq!(world.scanned(off).await, ["First kettle"]);
}
