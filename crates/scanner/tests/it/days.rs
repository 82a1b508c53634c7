//! The daily record of a feed.

use std::time::Duration;

use domain::{ManagerName, Timestamp};
use platform_simulator::NewPost;
use store::feeds::{self, FeedDay};
use test_support::eventually;

use crate::support::{LEMMY, World, post};

/// Today's record of the feed.
pub(crate) async fn today(world: &World, feed: &str) -> Option<FeedDay> {
    let mut conn = world.database.connect().await;
    let name = feed.parse().unwrap();
    let mut days = feeds::days_of(&mut conn, world.fixture.namespace, &[&name])
        .await
        .unwrap();
    let days = days.remove(feed)?;
    days.into_iter().next()
}

#[tokio::test]
async fn a_day_counts_each_post_once_when_commits_fail() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_hours(24);
    // The first three commits of a poll with posts fail at their end.
    for statement in [
        "CREATE SEQUENCE ends",
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         IF nextval('ends') <= 3 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END $$",
        "CREATE TRIGGER die BEFORE UPDATE ON feeds FOR EACH ROW \
         WHEN (NEW.posts_per_day > 0 AND OLD.cursor IS DISTINCT FROM NEW.cursor) EXECUTE FUNCTION die()",
    ] {
        world.database.run(statement).await;
    }
    let manager: ManagerName = world.manager("kettle", &[LEMMY]).await;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    let titles = (0..7).map(|n| format!("Kettle {n}"));
    let posts = titles.map(|title| post("lemmy", &title)).collect();
    let published = world.platforms.publish(posts);
    world.until_scanned(manager, 7).await;
    eventually("it is decided when to look back", async || {
        world.feed(LEMMY, "late_time > now()").await == "true"
    })
    .await;
    // A post older than what polls read again, and one that its author deletes.
    world.platforms.publish(vec![NewPost {
        time: Some(Timestamp::now().minus(Duration::from_hours(5))),
        ..post("lemmy", "A late kettle")
    }]);
    world
        .database
        .run("UPDATE feeds SET late_time = now() - interval '1 second'")
        .await;
    world.until(manager, "A late kettle").await;
    world.platforms.delete(published[0].id);
    world.until_asked("/lemmy").await;
    world.until_asked("/lemmy").await;

    let day = today(&world, LEMMY).await.unwrap();
    assert_eq!(
        (day.posts, day.quarantined, day.gap_count),
        (8, 0, 0),
        "{day:?}"
    );
    assert_eq!(world.database.count("feed_days").await, 1);
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn later_read_fills_and_closes_a_gap() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_hours(24);
    let manager = world.manager("kettle", &[LEMMY]).await;
    let at = |minutes, title: &str| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_mins(minutes))),
        ..post("lemmy", title)
    };
    // More than an ordinary poll reads again and, further in the past, more than one search reads.
    let busy = (0..120).map(|n| at(140 - n, &format!("Kettle {n}")));
    let flood = (0..1_600).map(|_| at(35 * 60, "A flood"));
    world.platforms.publish(busy.chain(flood).collect());
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 120).await;
    eventually("it is decided when to look back", async || {
        world.feed(LEMMY, "late_time > now()").await == "true"
    })
    .await;
    for (from, to) in [(200, 190), (40, 38), (30, 26)] {
        world
            .database
            .run(&format!(
                "INSERT INTO feed_gaps (feed, find_time, start_time, end_time, reason) \
                 VALUES ('{LEMMY}', now(), now() - interval '{from} hours', now() - interval '{to} hours', 'a test')"
            ))
            .await;
    }
    world.platforms.publish(vec![
        at(28 * 60, "A kettle of the gap"),
        at(25 * 60, "A kettle outside the gap"),
    ]);
    // As after a gap: it is unknown whether older posts are stored.
    let look = async || {
        world
            .database
            .run(
                "UPDATE feeds SET kept_since = now(), ids_since = now(), late_time = now() - interval '1 second' \
                 WHERE leased_by IS NULL",
            )
            .await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    };
    let open = async || {
        let hours = "round(extract(epoch FROM find_time - start_time) / 3600)::text";
        let gaps = "feed_gaps WHERE fill_time IS NULL ORDER BY id";
        world.database.texts(hours, gaps).await
    };
    eventually("the gaps are filled", async || {
        look().await;
        open().await.len() < 2
    })
    .await;
    world.until(manager, "A kettle of the gap").await;
    for _ in 0..5 {
        look().await;
    }
    let left = open().await;
    assert_eq!(left, ["200"], "no search reads that far back");
    let day = today(&world, LEMMY).await.unwrap();
    let filled: Vec<bool> = day.gaps.iter().map(|gap| gap.is_filled).collect();
    assert_eq!((day.late, filled), (1, vec![true, true, false]));
    assert_eq!(world.scanned(manager).await.len(), 121);
    replica.stop().await;
}
