//! The daily quota of Scans drops no post.

use std::time::Duration;

use domain::{ManagerName, Timestamp};
use platform_simulator::{BLUESKY, NewPost};
use store::{
    managers,
    quotas::{self, Change},
};
use test_support::{Replica, eventually};

use crate::support::{HACKER_NEWS, LEMMY, World, watching};

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
    eventually("both feeds were read", async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 2
    })
    .await;
    for n in 0..5 {
        world.publish("lemmy", &format!("Kettle {n} of lemmy"));
        world.publish("hackernews", &format!("Kettle {n} of hackers"));
    }
    eventually("all posts are kept", async || {
        world.database.count("recent_posts").await == 10
    })
    .await;
    let mut conn = world.database.connect().await;
    let read = managers::get(&mut conn, manager).await.unwrap().unwrap();
    let health = serde_json::to_value(read.health.unwrap()).unwrap();
    assert_eq!(health["reasons"], serde_json::json!(["quota_exceeded"]));
    assert_eq!(world.scanned(manager).await.len(), 4);

    // The catch-up uses up the raised quota, and a replica dies meanwhile.
    raise(&world, QUOTA + 2).await;
    world.until_scanned(manager, 6).await;
    let [killed, replica] = replicas;
    killed.kill();
    world.publish("lemmy", "A kettle after that");
    eventually("it is kept", async || {
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
    eventually("nothing is left to do", async || {
        let read = managers::get(&mut conn, manager).await.unwrap().unwrap();
        read.health.unwrap().reasons.is_empty()
    })
    .await;
    let mut titles = world.scanned(manager).await;
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), 11);
    assert_eq!(world.database.count("scans").await, 11);
    let unexplained = "scans WHERE matched -> 'terms' = '[]'";
    assert_eq!(world.database.count(unexplained).await, 0);
    replica.stop().await;
}

#[tokio::test]
async fn delayed_poll_does_not_delay_others_of_its_account() {
    let world = World::new().await;
    let held_up = world.manager("kettle", &[LEMMY]).await;
    let other = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    eventually("both feeds were read", async || {
        world.database.count("feeds WHERE cursor IS NOT NULL").await == 2
    })
    .await;
    // A poll writes this row after its Scans.
    let row = format!(
        "INSERT INTO feed_days (feed, day, posts, late, gone, quarantined, gaps, ids_read, ids_other, ids_gone) \
         VALUES ('{LEMMY}', (now() AT TIME ZONE 'UTC')::date, 0, 0, 0, 0, 0, 0, 0, 0) \
         ON CONFLICT (feed, day) DO UPDATE SET posts = feed_days.posts"
    );
    let lock = world.database.begin(&[&row]).await;
    world.publish("lemmy", "Kettle of lemmy");
    eventually("the poll waits with its Scan", async || {
        let waiting = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' \
             AND query LIKE '%INSERT INTO feed_days%'";
        world.database.count(waiting).await == 1
    })
    .await;
    world.publish("hackernews", "Kettle of hackers");
    world.until_scanned(other, 1).await;
    assert_eq!(world.scanned(held_up).await.len(), 0);

    drop(lock);
    world.until_scanned(held_up, 1).await;
    let used = world.database.texts("sum(scans)", "account_days").await;
    assert_eq!(used, ["2"]);
    replica.stop().await;
}

fn said(text: &str) -> NewPost {
    NewPost {
        platform: BLUESKY.to_owned(),
        title: text.to_owned(),
        ..NewPost::default()
    }
}

/// A scanner that reads a stream for a Manager whose account has used up its two Scans.
async fn used_up_stream() -> (World, ManagerName, Replica) {
    let mut world = World::new().await;
    world.config.quotas.scans_per_day = 2;
    world.add_stream();
    let manager = world.manager("kettle", &["bluesky:jetstream"]).await;
    let replica = world.ready_scanner().await;
    eventually("the stream is read", async || {
        world.platforms.publish(vec![said("A kettle")]);
        world.scanned(manager).await.len() == 2
    })
    .await;
    (world, manager, replica)
}

/// A catch-up reads a week of a feed at most.
#[tokio::test]
async fn refused_post_that_is_dated_before_the_catch_up_becomes_a_scan() {
    let (world, _, replica) = used_up_stream().await;
    let backdated = NewPost {
        time: Some(Timestamp::now().minus(Duration::from_hours(30 * 24))),
        ..said("An old kettle")
    };
    world.platforms.publish(vec![backdated]);
    let refused = "refused_posts WHERE post ->> 'text' = 'An old kettle'";
    eventually("it is refused", async || {
        world.database.count(refused).await == 1
    })
    .await;
    raise(&world, 10_000).await;
    let scans = "scans JOIN posts ON posts.id = scans.post_id WHERE posts.text = 'An old kettle'";
    eventually("it has its Scan", async || {
        world.database.count(scans).await == 1
    })
    .await;
    eventually("none is left", async || {
        world.database.count("refused_posts").await == 0
    })
    .await;
    replica.stop().await;
}

/// A stream cannot be read again, and other accounts' posts push these out of what is kept of it.
#[tokio::test]
async fn refused_posts_wait_although_their_feed_does_not_keep_them() {
    // More than one step of the catch-up takes.
    const POSTS: usize = 1_020;
    let (world, manager, replica) = used_up_stream().await;
    let posts = (0..POSTS).map(|n| said(&format!("Kettle {n}")));
    world.platforms.publish(posts.collect());
    let flood = "refused_posts WHERE post ->> 'text' LIKE 'Kettle %'";
    eventually("the others are refused", async || {
        world.database.count(flood).await == i64::try_from(POSTS).unwrap()
    })
    .await;
    world.database.run("DELETE FROM recent_posts").await;

    raise(&world, 10_000).await;
    let scans = "scans JOIN posts ON posts.id = scans.post_id WHERE posts.text LIKE 'Kettle %'";
    eventually("all have their Scans", async || {
        world.database.count(scans).await == i64::try_from(POSTS).unwrap()
    })
    .await;
    eventually("none is left", async || {
        world.database.count("refused_posts").await == 0
    })
    .await;
    let mut conn = world.database.connect().await;
    eventually("nothing is left to do", async || {
        let read = managers::get(&mut conn, manager).await.unwrap().unwrap();
        read.health.unwrap().reasons.is_empty()
    })
    .await;
    replica.stop().await;
}

/// The account of a Manager that others of its transactions overtake each time.
#[tokio::test]
async fn a_race_for_the_quota_of_one_account_delays_no_other() {
    let mut world = World::new().await;
    world.config.quotas.scans_per_day = 2;
    let racing = world.manager("kettle", &[LEMMY]).await;
    let mut conn = world.database.connect().await;
    let globex = world.fixture.beside(&mut conn, "globex").await;
    let kettle = watching("kettle", &[LEMMY]);
    let other = globex.applied_manager(&mut conn, &kettle, &[]).await;
    let account = world.fixture.account.to_uuid();
    for statement in [
        "CREATE FUNCTION overtake() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         NEW.scans = NEW.scans + 2; RETURN NEW; END $$"
            .to_owned(),
        format!(
            "CREATE TRIGGER overtake BEFORE INSERT ON account_days FOR EACH ROW \
             WHEN (NEW.account_id = '{account}') EXECUTE FUNCTION overtake()"
        ),
    ] {
        world.database.run(&statement).await;
    }
    world.publish("lemmy", "A kettle");
    let replica = world.ready_scanner().await;
    world.until_scanned(other, 1).await;
    assert_eq!(world.feed(LEMMY, "failure_count").await, "0");
    assert_eq!(world.database.count("refused_posts").await, 1);
    assert!(world.scanned(racing).await.is_empty());
    world
        .database
        .run("DROP TRIGGER overtake ON account_days")
        .await;
    world.until_scanned(racing, 1).await;
    replica.stop().await;
}
