//! Whole polls and backfills: those in parts miss no match, and a post at fault holds up no other.

use std::{sync::Arc, time::Duration};

use domain::{FeedName, Reach, Timestamp};
use platform_simulator::{NewPost, Simulator};
use runtime::{
    Config,
    config::{Kind, PlatformConfig},
};
use store::backfills;
use test_support::{Fixture, Replica, TestDatabase, eventually, post};

use super::{FEED, all_of, watching};
use crate::{
    Deciders,
    find::{GENERAL, MOST},
    plans::Plans,
};

/// Configuration of a scanner that polls the simulated Hacker News.
fn polling(database: &TestDatabase, platforms: &Simulator) -> Config {
    let mut config = test_support::config(database, store::roles::Service::Scanner);
    let settings = platforms.settings().into_iter();
    let hackernews = settings.filter(|settings| settings.name == "hackernews");
    config.platforms = hackernews
        .map(|settings| PlatformConfig {
            kind: Kind::HackerNews,
            source: Kind::HackerNews.source().unwrap(),
            name: settings.name,
            base_url: settings.base_url,
            items_url: settings.items_url,
            poll_interval: Some(Duration::from_millis(200)),
            access: settings.access,
        })
        .collect();
    config
}

fn new_post(title: &str) -> NewPost {
    NewPost {
        platform: "hackernews".to_owned(),
        title: title.to_owned(),
        author: "ana".to_owned(),
        ..NewPost::default()
    }
}

#[tokio::test]
async fn refused_post_of_a_poll_in_parts_is_skipped_and_the_others_are_stored_once() {
    const MANAGERS: usize = 30;
    const POSTS: usize = 10;
    let database = TestDatabase::create().await;
    for table in ["posts", "recent_posts"] {
        let function = format!(
            "CREATE FUNCTION refuse_{table}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF to_jsonb(NEW)::text LIKE '%poison%' THEN \
                 RAISE check_violation USING MESSAGE = 'no poison here'; \
             END IF; RETURN NEW; END $$"
        );
        database.run(&function).await;
        let trigger = format!(
            "CREATE TRIGGER refuse BEFORE INSERT ON {table} FOR EACH ROW \
             EXECUTE FUNCTION refuse_{table}()"
        );
        database.run(&trigger).await;
    }
    let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    for _ in 0..MANAGERS {
        let kettle = watching("kettle", FEED);
        fixture.applied_manager(&mut conn, &kettle, &[]).await;
    }
    // The part before the refused post is stored when the database refuses it, and there is one after it.
    assert_eq!(MOST.div_ceil(MANAGERS), 4);
    let posts = (0..POSTS).map(|number| match number {
        5 => new_post("A kettle of poison"),
        _ => new_post(&format!("Kettle {number}")),
    });
    platforms.publish(posts.collect());
    let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
    let config = polling(&database, &platforms);
    let replica = Replica::of("scanner", &config, &bus, crate::run);
    let others = i64::try_from(MANAGERS * (POSTS - 1)).unwrap();
    eventually("the others have Scans", async || {
        database.count("scans").await >= others
    })
    .await;
    assert_eq!(database.count("scans").await, others);
    let quarantined = "quarantined_posts WHERE kind = 'REFUSED' AND reason LIKE '%no poison here'";
    assert_eq!(database.count(quarantined).await, 1);
    let counted = "feeds WHERE quarantine_count = 1 AND failure_count = 0 AND gap_count = 0";
    assert_eq!(database.count(counted).await, 1);
    let posts = database.texts("sum(posts)::text", "feed_days").await;
    assert_eq!(posts, [(POSTS - 1).to_string()]);
    replica.stop().await;
}

#[tokio::test]
async fn backfill_in_parts_misses_no_match() {
    const MANAGERS: usize = 30;
    const POSTS: usize = 10;
    let database = TestDatabase::create().await;
    let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let toaster = watching("toaster", FEED);
    fixture.applied_manager(&mut conn, &toaster, &[]).await;
    // The feed keeps the new ones, and a look-back reads the old ones.
    let old = (0..POSTS as u64).map(|number| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_hours(48 - number))),
        ..new_post(&format!("Old kettle {number}"))
    });
    let new = (0..POSTS).map(|number| new_post(&format!("Kettle {number}")));
    platforms.publish(old.chain(new).collect());
    let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
    let config = polling(&database, &platforms);
    let replica = Replica::of("scanner", &config, &bus, crate::run);
    let posts = i64::try_from(POSTS).unwrap();
    eventually("the new ones are kept", async || {
        database.count("recent_posts").await == posts
    })
    .await;
    // One step takes all Managers.
    for statement in [
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN NEW.next_time := now() + interval '1 hour'; RETURN NEW; END $$",
        "CREATE TRIGGER hold BEFORE INSERT ON backfills FOR EACH ROW EXECUTE FUNCTION hold()",
    ] {
        database.run(statement).await;
    }
    let start = Timestamp::now().minus(Duration::from_hours(30 * 24));
    let window = config.scanner.backfill;
    for _ in 0..MANAGERS {
        let kettle = watching("kettle", FEED);
        let manager = fixture.applied_manager(&mut conn, &kettle, &[]).await;
        let reach = |_: &FeedName| Reach::Time(Duration::MAX);
        backfills::request(&mut conn, manager, start, false, window, reach)
            .await
            .unwrap();
    }
    const { assert!(MANAGERS * POSTS > 2 * MOST, "they fit into one part") };
    // What is delivered has a pace.
    database.run("DELETE FROM backfills WHERE notify").await;
    let release = "UPDATE backfills SET next_time = NULL";
    assert_eq!(database.run(release).await, MANAGERS);
    eventually("the backfills end", async || {
        database.count("backfills WHERE state <> 'DONE'").await == 0
    })
    .await;
    let all = i64::try_from(MANAGERS * POSTS * 2).unwrap();
    assert_eq!(database.count("scans").await, all);
    replica.stop().await;
}

#[tokio::test]
async fn post_whose_matching_panics_is_quarantined_and_the_others_are_stored() {
    let database = TestDatabase::create().await;
    let platforms = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut conn = database.connect().await;
    let fixture = Fixture::create(&mut conn).await;
    let config = polling(&database, &platforms);
    let kettle = watching("kettle", FEED);
    let manager = fixture.applied_manager(&mut conn, &kettle, &[]).await;
    let titles = [
        "Kettle 1",
        "A kettle that cannot be matched",
        "Kettle 2",
        "A kettle that cannot be explained",
        "Kettle 3",
    ];
    let publish = |title: &str| {
        platforms.publish(vec![new_post(title)]);
    };
    titles.into_iter().for_each(publish);
    let bus = Arc::new(bus::InProcess::new()) as Arc<dyn bus::Bus>;
    let replica = Replica::of("scanner", &config, &bus, crate::run);
    let scanned = format!("scans WHERE manager_id = '{}'", manager.manager.to_uuid());
    eventually("the others have Scans", async || {
        database.count(&scanned).await == 3
    })
    .await;
    let quarantined =
        "quarantined_posts WHERE kind = 'UNREADABLE' AND reason = 'an internal error'";
    assert_eq!(database.count(quarantined).await, 2);
    // The feed goes on behind them, and counts them once.
    publish("Kettle 4");
    eventually("a later post has one too", async || {
        database.count(&scanned).await == 4
    })
    .await;
    assert_eq!(database.count(quarantined).await, 2);
    let counted = "feeds WHERE quarantine_count = 2 AND failure_count = 0 AND gap_count = 0";
    assert_eq!(database.count(counted).await, 1);
    replica.stop().await;
}

#[tokio::test]
#[should_panic(expected = "as asked")]
async fn a_panic_of_all_of_many_posts_is_not_blamed_on_them() {
    let database = TestDatabase::create().await;
    let plans = Plans::new(database.pool(), Deciders::default());
    let feed: FeedName = FEED.parse().unwrap();
    let posts = vec![post("forum:1", "It cannot be matched"); GENERAL];
    all_of(&plans, &feed, &posts).await;
}
