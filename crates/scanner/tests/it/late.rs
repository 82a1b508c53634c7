//! Posts that become visible after their feed has passed their time.

use std::time::Duration;

use domain::Timestamp;
use platform_simulator::NewPost;
use test_support::eventually;

use crate::{
    days::today,
    support::{World, metric, post},
};

fn aged(platform: &str, title: &str, hours: u64) -> NewPost {
    let mut late = post(platform, title);
    late.time = Some(Timestamp::now().minus(Duration::from_hours(hours)));
    if platform == "hackernews" {
        // Jobs are in no list of stories; only the search has them.
        late.community = Some("job".to_owned());
    }
    late
}

/// Waits until the feed was read further back once more.
async fn look_for_late_posts(world: &World) {
    world
        .database
        .run("UPDATE feeds SET late_time = now() - interval '1 second'")
        .await;
    eventually("late posts are looked for", async || {
        world.database.count("feeds WHERE late_time > now()").await == 1
    })
    .await;
}

#[tokio::test]
async fn posts_that_appear_hours_late_are_found_once() {
    for platform in ["lemmy", "hackernews"] {
        let mut world = World::new().await;
        world.config.scanner.backfill = Duration::from_hours(24);
        let feed = format!("{platform}:newest");
        let manager = world.manager("kettle", &[&feed]).await;
        // More than an ordinary poll reads again.
        let busy = (0..120).map(|n| NewPost {
            time: Some(Timestamp::now().minus(Duration::from_mins(140 - n))),
            ..post(platform, &format!("Kettle {n}"))
        });
        world.platforms.publish(busy.collect());
        let replicas = [world.ready_scanner().await, world.ready_scanner().await];
        world.until_scanned(manager, 120).await;
        eventually("it is decided when to look back", async || {
            world.feed(&feed, "late_time > now()").await == "true"
        })
        .await;

        world.platforms.publish(vec![
            aged(platform, "A kettle from elsewhere", 5),
            aged(platform, "A kettle of another day", 30),
        ]);
        let path = format!("/{platform}");
        world.until_asked(&path).await;
        world.until_asked(&path).await;
        assert_eq!(world.scanned(manager).await.len(), 120, "{platform}");
        look_for_late_posts(&world).await;
        world.until(manager, "A kettle from elsewhere").await;
        look_for_late_posts(&world).await;
        look_for_late_posts(&world).await;
        assert_eq!(world.scanned(manager).await.len(), 121, "{platform}");
        assert_eq!(today(&world, &feed).await.unwrap().late, 1, "{platform}");
        // Other tests of this process count too.
        assert!(metric(&format!(
            r#"earshot_posts_late_total{{platform="{platform}"}}"#
        )));
        for replica in replicas {
            replica.stop().await;
        }
    }
}

/// Starts a search of a week, and waits until it was made or goes on later.
async fn look_a_week_back(world: &World) {
    world
        .database
        .run("UPDATE feeds SET late_reading = NULL")
        .await;
    look_for_late_posts(world).await;
}

#[tokio::test]
async fn post_that_appears_five_days_late_is_found_once() {
    for platform in ["lemmy", "hackernews"] {
        let mut world = World::new().await;
        world.config.scanner.backfill = Duration::from_hours(7 * 24);
        let feed = format!("{platform}:newest");
        let manager = world.manager("kettle", &[&feed]).await;
        let busy = (0..120).map(|n| NewPost {
            time: Some(Timestamp::now().minus(Duration::from_mins(140 - n))),
            ..post(platform, &format!("Kettle {n}"))
        });
        let early = aged(platform, "A kettle that was read in time", 5 * 24);
        world.platforms.publish(busy.chain([early]).collect());
        let replicas = [world.ready_scanner().await, world.ready_scanner().await];
        world.until_scanned(manager, 121).await;
        eventually("it is decided when to look back", async || {
            world.feed(&feed, "late_time > now()").await == "true"
        })
        .await;
        // The new Manager's backfill would become more Scans too.
        world.until_backfilled().await;
        // Without them a post that wrongly counts as late becomes another Scan.
        for keys in ["scan_keys", "post_keys"] {
            world.database.run(&format!("DELETE FROM {keys}")).await;
        }

        world
            .platforms
            .publish(vec![aged(platform, "A kettle of five days ago", 5 * 24)]);
        look_a_week_back(&world).await;
        world.until(manager, "A kettle of five days ago").await;
        look_a_week_back(&world).await;
        look_a_week_back(&world).await;

        assert_eq!(world.scanned(manager).await.len(), 122, "{platform}");
        let day = today(&world, &feed).await.unwrap();
        assert_eq!((day.posts, day.late), (122, 1), "{platform}: {day:?}");
        for replica in replicas {
            replica.stop().await;
        }
    }
}

#[tokio::test]
async fn search_of_a_week_continues_in_later_polls() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_hours(7 * 24);
    let feed = "lemmy:newest";
    let manager = world.manager("kettle", &[feed]).await;
    // More pages than one search reads.
    let flood = (0..1_600).map(|n| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_mins(3_000 - n))),
        ..post("lemmy", "A flood")
    });
    let young = post("lemmy", "A kettle");
    world.platforms.publish(flood.chain([young]).collect());
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 1).await;
    eventually("it is decided when to look back", async || {
        world.feed(feed, "late_time > now()").await == "true"
    })
    .await;
    // The new Manager's backfill would find the late post too.
    world.until_backfilled().await;

    world
        .platforms
        .publish(vec![aged("lemmy", "A kettle of five days ago", 5 * 24)]);
    look_a_week_back(&world).await;
    let goes_on = "late_reading -> 'cursor' <> 'null'";
    assert_eq!(world.feed(feed, goes_on).await, "true");
    assert_eq!(world.scanned(manager).await.len(), 1);
    eventually("the search is finished", async || {
        look_for_late_posts(&world).await;
        world.feed(feed, goes_on).await == "false"
    })
    .await;

    assert_eq!(world.scanned(manager).await.len(), 2);
    assert_eq!(today(&world, feed).await.unwrap().late, 1);
    replica.stop().await;
}
