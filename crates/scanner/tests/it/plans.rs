//! No post is matched against old plans, regardless of how plans change.

use std::time::Duration;

use domain::{
    ManagerName, Timestamp,
    namespace::NamespaceChange,
    screen::{Mute, MuteType},
};
use platform_simulator::{Fault, FaultKind};
use store::{namespaces, roles::Service};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, World, watching};

#[tokio::test]
async fn a_new_plan_works_after_its_event() {
    let world = World::new().await;
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A kettle that listens");
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    world.publish_applied(manager).await;
    world.until_scanned(manager, 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn new_plan_applies_without_an_event() {
    let world = World::new().await;
    // The feed is already watched, so that only the index has to change.
    world.manager("toaster", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    world.until_asked("/hackernews").await;
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    world.publish("hackernews", "A kettle that listens");
    world.until_scanned(manager, 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn a_plan_applied_while_a_poll_is_open_matches_its_posts() {
    let world = World::new().await;
    world.manager("toaster", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    for number in 0..5 {
        world
            .platforms
            .fail(Fault::new("lemmy", FaultKind::Delay, 400));
        world.until_asked("/lemmy").await;
        // The response will contain the post; the index at the start of the poll lacks the plan.
        let manager = world.manager(&format!("kettle{number}"), &[LEMMY]).await;
        world.publish("lemmy", &format!("A kettle{number} that listens"));
        world.until_scanned(manager, 1).await;
    }
    replica.stop().await;
}

#[tokio::test]
async fn disabled_manager_matches_nothing_and_its_feeds_are_not_polled() {
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
    eventually("an open poll ends", async || {
        world.feed(HACKER_NEWS, "leased_by").await.is_empty()
    })
    .await;
    // Requests of a poll that has just ended may still arrive. A feed that is still polled never pauses this long.
    eventually("the feed rests", async || {
        let before = world.platforms.requests("/hackernews");
        tokio::time::sleep(Duration::from_millis(600)).await;
        world.platforms.requests("/hackernews") == before
    })
    .await;
    replica.stop().await;
    assert_eq!(world.scanned(off).await, ["First kettle"]);
}

#[tokio::test]
async fn large_poll_is_stored_while_plans_keep_changing() {
    const MANAGERS: usize = 41;
    const POSTS: usize = 100;
    let world = World::new().await;
    let other = world.manager("toaster", &[LEMMY]).await;
    // As if a customer changed a Manager while each block of Scans is stored.
    for statement in [
        format!(
            "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
             UPDATE plan_version SET version = version + 1; \
             INSERT INTO plan_changes (version, namespace_id, manager_id, change_time) \
             SELECT version, '{}', '{}', now() FROM plan_version; RETURN NULL; END $$",
            other.namespace.to_uuid(),
            other.manager.to_uuid()
        ),
        "CREATE TRIGGER change AFTER INSERT ON scan_keys FOR EACH STATEMENT EXECUTE FUNCTION change()".to_owned(),
    ] {
        world.database.run(&statement).await;
    }
    for _ in 0..MANAGERS {
        world.manager("kettle", &[HACKER_NEWS]).await;
    }
    for number in 0..POSTS {
        world.publish("hackernews", &format!("Kettle number {number}"));
    }
    let replica = world.ready_scanner().await;
    eventually("the cursor is stored", async || {
        !world.feed(HACKER_NEWS, "cursor").await.is_empty()
    })
    .await;
    assert_eq!(world.feed(HACKER_NEWS, "failure_count").await, "0");
    let scans = world.database.count("scans").await;
    assert_eq!(scans, i64::try_from(MANAGERS * POSTS).unwrap());
    replica.stop().await;
}

/// No replica can bring its index up to date, because the role may not read mutes.
#[tokio::test]
async fn poll_is_matched_again_only_for_changes_that_concern_its_feed() {
    let world = World::new().await;
    let own = world.manager("kettle", &[LEMMY]).await;
    let mut conn = world.database.connect().await;
    let globex = world.fixture.beside(&mut conn, "globex").await;
    let elsewhere = globex
        .applied_manager(&mut conn, &watching("kettle", &[HACKER_NEWS]), &[])
        .await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "First kettle");
    world.until_scanned(own, 1).await;
    world.until_backfilled().await;

    let role = Service::Scanner.role();
    for statement in [
        format!("REVOKE SELECT ON namespaces FROM {role}"),
        format!("GRANT SELECT (id, account_id) ON namespaces TO {role}"),
    ] {
        world.database.run(&statement).await;
    }
    mute(&world, elsewhere, "quiet").await;
    world.publish("lemmy", "A loud, quiet kettle");
    world.until_scanned(own, 2).await;

    mute(&world, own, "loud").await;
    world.publish("lemmy", "Another loud kettle");
    world.publish("lemmy", "A quiet kettle");
    eventually("the poll is not stored", async || {
        world.feed(LEMMY, "failure_count").await != "0"
    })
    .await;
    assert_eq!(world.scanned(own).await.len(), 2);
    let restored = format!("GRANT SELECT ON namespaces TO {role}");
    world.database.run(&restored).await;
    world.until_scanned(own, 3).await;
    replica.stop().await;
    assert_eq!(
        world.scanned(own).await,
        ["First kettle", "A loud, quiet kettle", "A quiet kettle"]
    );
}

/// Mutes a term in the Manager's Namespace.
async fn mute(world: &World, manager: ManagerName, term: &str) {
    let mut conn = world.database.connect().await;
    let current = namespaces::lock(&mut conn, manager.namespace).await;
    let change = NamespaceChange {
        mutes: Some(vec![Mute {
            mute_type: MuteType::Term,
            value: term.to_owned(),
            expire_time: None,
        }]),
        ..NamespaceChange::default()
    };
    let current = current.unwrap().unwrap();
    namespaces::update(
        &mut conn,
        current,
        &change,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap();
}
