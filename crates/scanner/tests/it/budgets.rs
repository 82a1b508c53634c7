//! Request budgets of a platform over all replicas, and platforms that cannot be read at all.

use std::time::{Duration, Instant};

use platforms::simulator::{Fault, FaultKind};
use runtime::config::{Kind, PlatformConfig};
use store::feeds::{self, FeedState};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, SOON, World};

const RUST: &str = "lemmy:c/rust";

async fn states(world: &World, manager: domain::ManagerName) -> Vec<(FeedState, Option<String>)> {
    let mut conn = world.database.connect().await;
    let health = feeds::health_of(&mut conn, manager).await.unwrap();
    let health = health.into_iter();
    health.map(|feed| (feed.state, feed.error)).collect()
}

#[tokio::test]
async fn replicas_share_a_platforms_budget() {
    const LIMIT: u32 = 24;
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        if platform.name == "lemmy" {
            platform.access.requests_per_minute = Some(LIMIT);
        }
    }
    let manager = world.manager("kettle", &[LEMMY, RUST]).await;
    world.publish("lemmy", "A kettle that listens");
    let replicas = [
        world.ready_scanner().await,
        world.ready_scanner().await,
        world.ready_scanner().await,
    ];
    world.until_scanned(manager, 1).await;
    let begin = Instant::now();
    eventually("the budget is spent", SOON, async || {
        let states = states(&world, manager).await;
        states
            .iter()
            .all(|(state, _)| *state == FeedState::BudgetSpent)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = world.platforms.requests("/lemmy");
    assert!(
        begin.elapsed() < Duration::from_secs(50),
        "no minute has passed"
    );
    assert!(asked <= u64::from(LIMIT), "{asked} requests of {LIMIT}");
    assert!(asked >= u64::from(LIMIT) - 8, "{asked} requests of {LIMIT}");
    // It is no failure of the feed's.
    assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_platform_that_asks_for_quiet_gets_it_from_all_feeds_and_replicas() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY, RUST, HACKER_NEWS]).await;
    world.publish("lemmy", "A first post");
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    eventually("all are read", SOON, async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 3
    })
    .await;
    // The fault must meet a poll, not a look-back for the new Manager.
    eventually("the past is read", SOON, async || {
        let open = "backfills WHERE state <> 'DONE'";
        world.database.count(open).await == 0
    })
    .await;
    world.platforms.fail(Fault {
        platform: "lemmy".to_owned(),
        kind: FaultKind::RetryAfter,
        times: 1,
        value: 5,
        path: None,
    });
    eventually("it was throttled", SOON, async || {
        world
            .database
            .count("feeds WHERE trouble = 'FAILING'")
            .await
            == 1
    })
    .await;
    // Each replica believes for a second that no one is silenced.
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    let before = world.platforms.requests("/lemmy");
    world.publish("lemmy", "A kettle on Lemmy");
    world.publish("hackernews", "A kettle on Hacker News");
    let took = world.until_scanned(manager, 1).await;
    assert!(
        took < Duration::from_millis(1_500),
        "others are unharmed: {took:?}"
    );
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(world.platforms.requests("/lemmy"), before);
    world.until_scanned(manager, 2).await;
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_platform_without_credentials_is_told_of_and_the_others_are_scanned() {
    let mut world = World::new().await;
    let access = runtime::config::Access::default();
    world.config.platforms.push(PlatformConfig {
        name: "linkedin".to_owned(),
        kind: Kind::LinkedIn,
        source: domain::manager::SourceType::Network,
        base_url: Some("https://api.linkedin.example".parse().unwrap()),
        items_url: None,
        poll_interval: None,
        access,
    });
    let manager = world.manager("kettle", &[LEMMY, "linkedin:newest"]).await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "A kettle that listens");
    world.until_scanned(manager, 1).await;
    eventually("the feed tells", SOON * 2, async || {
        let states = states(&world, manager).await;
        states[1].0 == FeedState::Blocked
    })
    .await;
    let states = states(&world, manager).await;
    assert_eq!(states[0], (FeedState::Ok, None));
    let reason = states[1].1.as_deref().unwrap();
    assert!(reason.contains("needed"), "{reason}");
    let report = replica.health.report();
    assert!(report.is_ready(), "{report:?}");
    let check = report
        .checks
        .iter()
        .find(|check| check.name == "platform.linkedin");
    let detail = check.unwrap().detail.as_deref().unwrap();
    assert!(detail.contains("needed"), "{detail}");
    replica.stop().await;
}

#[tokio::test]
async fn wrong_credentials_show_and_go_when_they_are_right() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    world.platforms.fail(Fault {
        platform: "lemmy".to_owned(),
        kind: FaultKind::Status,
        times: 4,
        value: 401,
        path: None,
    });
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A kettle on Hacker News");
    world.until_scanned(manager, 1).await;
    eventually("the feed tells", SOON, async || {
        let states = states(&world, manager).await;
        let refused = states[1].1.as_deref().unwrap_or_default().contains("401");
        states[1].0 == FeedState::Blocked && refused
    })
    .await;
    // Refused often enough, a feed is left alone for an hour.
    world
        .database
        .run("UPDATE feeds SET next_poll_time = now() WHERE platform = 'lemmy'")
        .await;
    eventually("readiness tells", SOON * 2, async || {
        let report = replica.health.report();
        let lemmy = report
            .checks
            .iter()
            .find(|check| check.name == "platform.lemmy");
        let detail = lemmy.and_then(|check| check.detail.clone());
        report.is_ready() && detail.is_some_and(|detail| detail.contains("401"))
    })
    .await;
    world.publish("lemmy", "A kettle on Lemmy");
    eventually("it is read again", SOON, async || {
        world
            .database
            .run("UPDATE feeds SET next_poll_time = least(next_poll_time, now()) WHERE platform = 'lemmy'")
            .await;
        world.scanned(manager).await.len() == 2
    })
    .await;
    assert_eq!(states(&world, manager).await[1], (FeedState::Ok, None));
    replica.stop().await;
}

#[tokio::test]
async fn a_429_on_a_later_page_keeps_the_pages_before_and_pauses_the_platform() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.poll_interval = Some(Duration::from_secs(3_600));
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    let posts = (0..120).map(|n| crate::support::post("lemmy", &format!("Kettle {n}")));
    world.platforms.publish(posts.collect());
    for (kind, value) in [(FaultKind::Delay, 0), (FaultKind::RetryAfter, 600)] {
        world.platforms.fail(Fault {
            platform: "lemmy".to_owned(),
            kind,
            times: 1,
            value,
            path: None,
        });
    }
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 50).await;
    eventually("the platform is paused", SOON, async || {
        let paused = "platform_budgets WHERE silent_until > now() + interval '5 minutes'";
        world.database.count(paused).await == 1
    })
    .await;
    assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
    assert_eq!(world.scanned(manager).await.len(), 50);
    replica.stop().await;
}
