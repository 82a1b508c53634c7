//! The quota of Scans a day: no post is dropped.

use store::{
    managers,
    quotas::{self, Change},
};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, SOON, World};

async fn raise(world: &World, quota: u32) {
    let mut conn = world.database.connect().await;
    let change = Change {
        scans_per_day: Some(Some(quota)),
        ..Change::default()
    };
    let set = quotas::set(&mut conn, "acme", &change).await.unwrap();
    assert!(set.is_some());
}

#[tokio::test]
async fn a_manager_whose_account_used_up_its_day_pauses_and_catches_up() {
    const QUOTA: u32 = 4;
    let mut world = World::new().await;
    world.config.quotas.scans_per_day = QUOTA;
    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    eventually("both feeds were read", SOON, async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 2
    })
    .await;
    for n in 0..5 {
        world.publish("lemmy", &format!("Kettle {n} of lemmy"));
        world.publish("hackernews", &format!("Kettle {n} of hackers"));
    }
    eventually("all posts are kept", SOON, async || {
        world.database.count("recent_posts").await == 10
    })
    .await;
    let mut conn = world.database.connect().await;
    let read = managers::get(&mut conn, manager).await.unwrap().unwrap();
    let health = serde_json::to_value(read.health.unwrap()).unwrap();
    assert_eq!(health["reasons"], serde_json::json!(["quota_exceeded"]));
    assert_eq!(world.scanned(manager).await.len(), 4);

    // Some room, which the catch-up uses up, and a replica that dies meanwhile.
    raise(&world, QUOTA + 2).await;
    world.until_scanned(manager, 6).await;
    let [killed, replica] = replicas;
    killed.kill();
    world.publish("lemmy", "A kettle after that");
    eventually("it is kept", SOON, async || {
        world.database.count("recent_posts").await == 11
    })
    .await;
    assert_eq!(world.scanned(manager).await.len(), 6);

    // The next day.
    world
        .database
        .run("UPDATE account_days SET day = day - 1")
        .await;
    raise(&world, 100).await;
    world.until_scanned(manager, 11).await;
    eventually("nothing is left to do", SOON, async || {
        let read = managers::get(&mut conn, manager).await.unwrap().unwrap();
        read.health.unwrap().reasons.is_empty()
    })
    .await;
    let mut titles = world.scanned(manager).await;
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), 11);
    assert_eq!(world.database.count("scans").await, 11);
    replica.stop().await;
}
