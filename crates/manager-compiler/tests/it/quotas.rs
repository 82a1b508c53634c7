//! The quota of distinct feeds: what exceeds it fails visibly, and what was applied stays.

use domain::{
    FeedName, Instructions, Timestamp,
    manager::{ApplyErrorCode, ManagerChange, Origin, SourceType},
};
use store::{AsyncConnection as _, managers};
use test_support::eventually;

use crate::support::World;

const FEEDS: [&str; 4] = [
    "hackernews:newest",
    "hackernews:ask",
    "hackernews:show",
    "lemmy:newest",
];

fn watching(feeds: &[&str]) -> Instructions {
    let feed = |name: &&str| name.parse::<FeedName>().unwrap();
    Instructions {
        feeds: feeds.iter().map(feed).collect(),
        ..test_support::instructions("kettle")
    }
}

#[tokio::test]
async fn a_manager_over_the_quota_of_feeds_fails_and_keeps_its_instructions() {
    let mut world = World::new().await;
    world.config.quotas.feeds = 2;
    let compiler = world.compiler();
    let [newest, ask, show, _] = FEEDS;
    let name = world.manual(SourceType::Forum, watching(&[newest])).await;
    world.publish_submitted(name, 1).await;
    world.until(name, "APPLIED").await;
    let more = world
        .manual(SourceType::Forum, watching(&[newest, ask]))
        .await;
    world.publish_submitted(more, 1).await;
    world.until(more, "APPLIED").await;

    let change = ManagerChange {
        origin: Some(Origin::Instructions(watching(&[newest, show]))),
        ..ManagerChange::default()
    };
    let mut conn = world.database.connect().await;
    conn.transaction(async |conn| {
        let current = managers::lock(conn, name).await?.unwrap();
        managers::update(
            conn,
            current,
            &change,
            &test_support::QUOTAS,
            Timestamp::now(),
        )
        .await
    })
    .await
    .unwrap();
    world.publish_submitted(name, 2).await;
    let manager = world.until(name, "APPLY_FAILED").await;
    let error = manager.apply_error.unwrap();
    assert_eq!(error.code, ApplyErrorCode::QuotaExceeded);
    let expected = "the account would have 3 feeds, and its quota is 2";
    assert_eq!(error.message, expected);
    assert_eq!(manager.instructions.unwrap(), watching(&[newest]));
    compiler.stop().await;
}

#[tokio::test]
async fn two_compilers_at_once_apply_no_more_feeds_than_the_quota() {
    let mut world = World::new().await;
    world.config.quotas.feeds = 2;
    let mut names = Vec::new();
    for feed in FEEDS {
        names.push(world.manual(SourceType::Forum, watching(&[feed])).await);
    }
    let compilers = [world.compiler(), world.compiler()];
    for name in &names {
        world.publish_submitted(*name, 1).await;
    }
    let pending = "managers WHERE state = 'PENDING_APPLY'";
    eventually("compiled", async || {
        world.database.count(pending).await == 0
    })
    .await;
    let applied = "managers WHERE state = 'APPLIED'";
    assert_eq!(world.database.count(applied).await, 2);
    let failed = "managers WHERE apply_error_code = 'quota_exceeded'";
    assert_eq!(world.database.count(failed).await, 2);
    for compiler in compilers {
        compiler.stop().await;
    }
}
