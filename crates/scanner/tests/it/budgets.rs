//! Request budgets of a platform over all replicas, and platforms that cannot be read at all.

use std::time::{Duration, Instant};

use platform_simulator::{Fault, FaultKind};
use runtime::config::{Kind, PlatformConfig};
use store::feeds::{self, FeedState};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, World};

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
    let begin = Instant::now();
    let replicas = [
        world.ready_scanner().await,
        world.ready_scanner().await,
        world.ready_scanner().await,
    ];
    world.until_scanned(manager, 1).await;
    eventually("the budget is spent", async || {
        let states = states(&world, manager).await;
        states
            .iter()
            .all(|(state, _)| *state == FeedState::BudgetSpent)
    })
    .await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = world.platforms.requests("/lemmy");
    // The limit of each minute that has started.
    let most = u64::from(LIMIT) * (1 + begin.elapsed().as_secs() / 60);
    assert!(asked <= most, "{asked} requests of {most}");
    assert!(asked >= u64::from(LIMIT) - 8, "{asked} requests of {LIMIT}");
    // It does not count as a failure of the feed.
    assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn pause_of_a_platform_applies_to_all_feeds_and_replicas() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY, RUST, HACKER_NEWS]).await;
    world.publish("lemmy", "A first post");
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    eventually("all are read", async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 3
    })
    .await;
    // The fault must hit a poll, not a look-back of the new Manager.
    eventually("the past is read", async || {
        let open = "backfills WHERE state <> 'DONE'";
        world.database.count(open).await == 0
    })
    .await;
    world
        .platforms
        .fail(Fault::new("lemmy", FaultKind::RetryAfter, 600));
    eventually("it was throttled", async || {
        world
            .database
            .count("feeds WHERE trouble = 'FAILING'")
            .await
            == 1
    })
    .await;
    // For up to a second, each replica assumes that the platform is not silenced. Without the pause there would be
    // requests several times a second.
    eventually("both replicas pause", async || {
        let before = world.platforms.requests("/lemmy");
        tokio::time::sleep(Duration::from_millis(1_100)).await;
        world.platforms.requests("/lemmy") == before
    })
    .await;
    let before = world.platforms.requests("/lemmy");
    world.publish("lemmy", "A kettle on Lemmy");
    world.publish("hackernews", "A kettle on Hacker News");
    // Other platforms are not affected.
    world.until_scanned(manager, 1).await;
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    assert_eq!(world.platforms.requests("/lemmy"), before);
    for replica in replicas {
        replica.stop().await;
    }
}

/// A firewall in front of a platform may ask for a day, because of one request.
#[tokio::test]
async fn platform_that_asks_for_a_day_is_polled_again_after_minutes() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("it is read", async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 1
    })
    .await;
    // The fault must hit a poll.
    world.until_backfilled().await;
    world
        .platforms
        .fail(Fault::new("lemmy", FaultKind::RetryAfter, 86_400));
    eventually("it was throttled", async || {
        world
            .database
            .count("feeds WHERE trouble = 'FAILING'")
            .await
            == 1
    })
    .await;
    // The pause is also in the memory of the replica.
    replica.stop().await;
    for pause in [
        "platform_budgets SET silent_until = silent_until",
        "feeds SET next_poll_time = next_poll_time",
    ] {
        let passes = format!("UPDATE {pause} - interval '15 minutes'");
        world.database.run(&passes).await;
    }
    world.publish("lemmy", "A kettle on Lemmy");
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn platform_without_credentials_is_reported_and_others_are_scanned() {
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
    eventually("the feed tells", async || {
        let states = states(&world, manager).await;
        states[1].0 == FeedState::Blocked
    })
    .await;
    let states = states(&world, manager).await;
    assert_eq!(states[0], (FeedState::Ok, None));
    let reason = states[1].1.as_deref().unwrap();
    assert!(reason.contains("needed"), "{reason}");
    eventually("readiness tells", async || {
        let report = replica.health.report();
        let linkedin = report
            .checks
            .iter()
            .find(|check| check.name == "platform.linkedin");
        let detail = linkedin.and_then(|check| check.detail.as_deref());
        report.is_ready() && detail.is_some_and(|detail| detail.contains("needed"))
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn wrong_credentials_are_reported_until_they_are_corrected() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    world
        .platforms
        .fail(Fault::new("lemmy", FaultKind::Status, 401).times(4));
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A kettle on Hacker News");
    world.until_scanned(manager, 1).await;
    eventually("the feed tells", async || {
        let states = states(&world, manager).await;
        let refused = states[1].1.as_deref().unwrap_or_default().contains("401");
        states[1].0 == FeedState::Blocked && refused
    })
    .await;
    // After these refusals, a feed is not polled for an hour.
    eventually("readiness tells", async || {
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
    eventually("it is read again", async || {
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
async fn a_429_on_a_later_page_keeps_earlier_pages_and_pauses_the_platform() {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.poll_interval = Some(Duration::from_secs(3_600));
    }
    let manager = world.manager("kettle", &[LEMMY]).await;
    let posts = (0..120).map(|n| crate::support::post("lemmy", &format!("Kettle {n}")));
    world.platforms.publish(posts.collect());
    for (kind, value) in [(FaultKind::Delay, 0), (FaultKind::RetryAfter, 600)] {
        world.platforms.fail(Fault::new("lemmy", kind, value));
    }
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 50).await;
    eventually("the platform is paused", async || {
        let paused = "platform_budgets WHERE silent_until > now() + interval '5 minutes'";
        world.database.count(paused).await == 1
    })
    .await;
    assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
    assert_eq!(world.scanned(manager).await.len(), 50);
    replica.stop().await;
}
