//! Posts that become visible after their feed has passed their time.

use std::time::Duration;

use domain::Timestamp;
use platforms::simulator::NewPost;
use test_support::eventually;

use crate::{
    days::today,
    support::{SOON, World, metric, post},
};

fn aged(platform: &str, title: &str, hours: u64) -> NewPost {
    let mut late = post(platform, title);
    late.time = Some(Timestamp::now().minus(Duration::from_hours(hours)));
    if platform == "hackernews" {
        // Jobs are in no list of stories: the search alone has them.
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
    eventually("late posts are looked for", SOON, async || {
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
        eventually("it is decided when to look back", SOON, async || {
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
        world.until(manager, "A kettle from elsewhere", SOON).await;
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
