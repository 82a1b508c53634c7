//! The index of each replica follows every change, with and without its event.

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use bus::{Bus, InProcess};
use domain::{
    Instructions, ManagerName, Timestamp,
    manager::{ManagerChange, Origin},
};
use platform_simulator::NewPost;
use scanner::{Deciders, Plans};
use store::managers;
use test_support::eventually;
use tokio_util::sync::CancellationToken;

use crate::support::{LEMMY, World, post, watching};

/// Limit for the fastest change through an event. Through sweeps, each change after the first would take two
/// seconds, because it starts when the previous sweep has ended.
const BY_EVENT: Duration = Duration::from_millis(1_500);
/// A busy machine may need several tries.
const TRIES: usize = 30;

/// Indexes of two replicas, which receive the events of the world's bus, or none.
struct Indexes {
    plans: [Arc<Plans>; 2],
    shutdown: CancellationToken,
}

impl Indexes {
    async fn start(world: &World, tells: bool) -> Self {
        let shutdown = CancellationToken::new();
        let plans =
            [0, 1].map(|_| Arc::new(Plans::new(world.database.pool(), Deciders::default())));
        for plans in &plans {
            assert!(plans.load(&shutdown).await);
            let bus = if tells {
                Arc::clone(&world.bus)
            } else {
                Arc::new(InProcess::new()) as Arc<dyn Bus>
            };
            tokio::spawn(Arc::clone(plans).keep_fresh(bus, None, shutdown.clone()));
        }
        // Subscribed: it receives all later events.
        tokio::time::sleep(Duration::from_millis(200)).await;
        Self { plans, shutdown }
    }

    /// Waits until the plan in use is as `is` requires on both replicas, and returns how long that took.
    async fn until(&self, name: ManagerName, what: &str, is: impl Fn(&str) -> bool) -> Duration {
        let begin = Instant::now();
        for plans in &self.plans {
            eventually(what, async || {
                let plan = plans.index().plan(&name);
                is(&plan.map(|plan| format!("{plan:?}")).unwrap_or_default())
            })
            .await;
        }
        begin.elapsed()
    }
}

impl Drop for Indexes {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Changes a Manager as gateway and compiler do; returns the new plan version.
async fn change(world: &World, name: ManagerName, change: &ManagerChange) -> Option<i64> {
    let mut conn = world.database.connect().await;
    let current = managers::lock(&mut conn, name).await.unwrap().unwrap();
    let updated = managers::update(
        &mut conn,
        current,
        change,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap();
    let Some(Origin::Instructions(instructions)) = &change.origin else {
        return updated.plan_version;
    };
    let now = Timestamp::now();
    managers::apply(
        &mut conn,
        name,
        updated.generation,
        instructions,
        &test_support::QUOTAS,
        now,
    )
    .await
    .unwrap()
}

fn rewritten(instructions: Instructions) -> ManagerChange {
    ManagerChange {
        origin: Some(Origin::Instructions(instructions)),
        ..ManagerChange::default()
    }
}

fn switched(enable: bool) -> ManagerChange {
    ManagerChange {
        enable: Some(enable),
        ..ManagerChange::default()
    }
}

#[tokio::test]
async fn every_change_of_a_manager_reaches_the_index_of_each_replica_in_time() {
    for tells in [true, false] {
        let world = World::new().await;
        let indexes = Indexes::start(&world, tells).await;

        let name = world.manager("kettle", &[LEMMY]).await;
        if tells {
            world.publish_applied(name).await;
        }
        let has_kettle = |plan: &str| plan.contains("kettl");
        indexes.until(name, "new", has_kettle).await;
        let mut fastest = Duration::MAX;

        let toaster = rewritten(watching("toaster", &[LEMMY]));
        let switches = [
            ("disabled", &switched(false), ""),
            ("enabled", &switched(true), "toaster"),
        ];
        let again = switches.iter().copied().cycle().take(TRIES * 2);
        let changes = [("changed", &toaster, "toaster")].into_iter().chain(again);
        for (number, (what, wish, holds)) in changes.enumerate() {
            let is_enough = !tells || fastest < BY_EVENT;
            if is_enough && number > switches.len() {
                break;
            }
            let version = change(&world, name, wish).await;
            if tells {
                let version = version.expect("scanners must know");
                world.publish_changed(name, version).await;
            }
            let is = |plan: &str| plan.is_empty() == holds.is_empty() && plan.contains(holds);
            fastest = fastest.min(indexes.until(name, what, is).await);
        }

        let mut conn = world.database.connect().await;
        let version = managers::delete(&mut conn, name, Timestamp::now())
            .await
            .unwrap()
            .expect("it was there");
        if tells {
            world.publish_changed(name, version).await;
        }
        indexes.until(name, "deleted", str::is_empty).await;
        assert!(!tells || fastest < BY_EVENT, "{fastest:?}");
    }
}

/// After a failover, the database lacks a change that scanners know, and another change has its version.
#[tokio::test]
async fn index_with_a_lost_change_is_reloaded() {
    let world = World::new().await;
    let changed = world.manager("kettle", &[LEMMY]).await;
    let teapot = watching("teapot", &[LEMMY]);
    let mut conn = world.database.connect().await;
    let new = world.fixture.manager(&mut conn, &teapot, &[]).await;
    let indexes = Indexes::start(&world, false).await;
    let toaster = rewritten(watching("toaster", &[LEMMY]));
    let version = change(&world, changed, &toaster).await.unwrap();
    let has_toaster = |plan: &str| plan.contains("toaster");
    for plans in &indexes.plans {
        eventually("the change is known", async || {
            let plan = plans.index().plan(&changed);
            has_toaster(&format!("{plan:?}"))
        })
        .await;
    }

    let json = |term| serde_json::to_string(&watching(term, &[LEMMY])).unwrap();
    let (changed_id, new_id) = (changed.manager.to_uuid(), new.manager.to_uuid());
    let failover = format!(
        "WITH back AS (UPDATE managers SET instructions = CASE id WHEN '{changed_id}' THEN '{}'::jsonb ELSE '{}' END \
                       WHERE id IN ('{changed_id}', '{new_id}')) \
         UPDATE plan_changes SET manager_id = '{new_id}', nonce = gen_random_uuid() WHERE version = {version}",
        json("kettle"),
        json("teapot"),
    );
    assert_eq!(world.database.run(&failover).await, 1);
    for plans in &indexes.plans {
        for (name, term) in [(changed, "kettl"), (new, "teapot")] {
            eventually("the index is that of the database", async || {
                let plan = plans.index().plan(&name);
                plan.is_some_and(|plan| format!("{plan:?}").contains(term))
            })
            .await;
        }
    }
}

#[tokio::test]
async fn nothing_is_ready_before_the_index_is_read() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let held = world
        .database
        .begin(&["LOCK TABLE managers IN ACCESS EXCLUSIVE MODE"])
        .await;
    let replica = world.scanner();
    assert!(!replica.health.report().is_ready(), "it has only started");
    world.publish("lemmy", "A kettle that listens");
    eventually("the index is waited for", async || {
        let checks = replica.health.report().checks;
        checks.iter().any(|check| check.name == "index")
    })
    .await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    let report = replica.health.report();
    assert!(!report.is_ready(), "{report:?}");
    let index = report.checks.iter().find(|check| check.name == "index");
    assert!(!index.unwrap().ok, "{report:?}");

    drop(held);
    world.until_scanned(manager, 1).await;
    eventually("it is ready", async || replica.health.report().is_ready()).await;
    replica.stop().await;
}

/// Ways to damage the stored instructions of a Manager.
const DAMAGES: [(&str, &str); 4] = [
    (
        "a newer release's field",
        r#"instructions || '{"mood": "x"}'"#,
    ),
    ("another type", r#"instructions || '{"include": "kettle"}'"#),
    (
        "what this release refuses",
        r#"instructions || '{"include": [{"text": "", "weight": 1}]}'"#,
    ),
    ("no instructions at all", r#"'[1, 2]'"#),
];

#[tokio::test]
async fn unreadable_plan_keeps_the_old_one_and_affects_no_other() {
    let world = World::new().await;
    let odd = world.manager("kettle", &[LEMMY]).await;
    let other = world.manager("toaster", &[LEMMY]).await;
    let replicas = [world.ready_scanner().await, world.ready_scanner().await];
    let id = odd.manager.to_uuid();
    let good = world.database.texts("instructions", "managers").await;
    assert_eq!(good.len(), 2);
    for (nth, (what, damaged)) in (1..).zip(DAMAGES) {
        world
            .database
            .run(&format!(
                "UPDATE managers SET instructions = {damaged} WHERE id = '{id}'"
            ))
            .await;
        let mut conn = world.database.connect().await;
        let feeds = [LEMMY.parse().unwrap()];
        let version = store::plans::record_change(
            &mut conn,
            odd,
            &feeds,
            &test_support::QUOTAS,
            Timestamp::now(),
        );
        let version = version.await.unwrap();
        if nth % 2 == 0 {
            world.publish_changed(odd, version).await;
        }
        world.publish("lemmy", &format!("Kettle and toaster {nth}: {what}"));
        world.until_scanned(other, nth).await;
        world.until_scanned(odd, nth).await;
    }

    // Its customer can still change other fields, and its feeds stay watched as far as they are known.
    world
        .database
        .run(&format!(
            r#"UPDATE managers SET instructions = '{{"feeds": ["{LEMMY}"], "mood": "x"}}' WHERE id = '{id}'"#
        ))
        .await;
    let english = ManagerChange {
        languages: Some(vec!["en".parse().unwrap()]),
        ..ManagerChange::default()
    };
    let version = change(&world, odd, &english).await;
    assert!(version.is_some(), "scanners must know");
    let watchers = format!("feed_watchers WHERE manager_id = '{id}'");
    assert_eq!(world.database.texts("feed", &watchers).await, [LEMMY]);

    // New instructions replace the old ones as usual, and a disabled Manager stops matching.
    let good = rewritten(watching("teapot", &[LEMMY]));
    change(&world, odd, &good).await;
    world.publish("lemmy", "A kettle, a toaster and a teapot");
    world.publish("lemmy", "A kettle and a toaster");
    world.until_scanned(other, 6).await;
    world.until_scanned(odd, 5).await;
    change(&world, odd, &switched(false)).await;
    world.publish("lemmy", "A toaster and a teapot");
    world.until_scanned(other, 7).await;
    for replica in replicas {
        replica.stop().await;
    }
    assert_eq!(world.scanned(odd).await.len(), 5);
}

/// A replica that never had a readable plan leaves the Manager out, and serves the others.
#[tokio::test]
async fn replica_that_starts_with_an_unreadable_plan_serves_the_others() {
    let world = World::new().await;
    let odd = world.manager("kettle", &[LEMMY]).await;
    let other = world.manager("toaster", &[LEMMY]).await;
    let id = odd.manager.to_uuid();
    let (_, damaged) = DAMAGES[0];
    world
        .database
        .run(&format!(
            "UPDATE managers SET instructions = {damaged} WHERE id = '{id}'"
        ))
        .await;
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "A kettle and a toaster");
    world.until_scanned(other, 1).await;
    replica.stop().await;
    assert!(world.scanned(odd).await.is_empty());
}

/// A feed is kept for a week after its last Manager, with its position.
#[tokio::test]
async fn feed_that_is_watched_again_brings_only_what_a_new_feed_would() {
    let mut world = World::new().await;
    let ago = |hours: u64, title: &str| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_hours(hours))),
        ..post("lemmy", title)
    };
    world.config.scanner.backfill = Duration::from_hours(24 * 7);
    let first = world.manager("kettle", &[LEMMY]).await;
    world
        .platforms
        .publish(vec![ago(150, "A kettle of the first Manager")]);
    let replica = world.ready_scanner().await;
    world.until_scanned(first, 1).await;
    world.until_backfilled().await;
    replica.stop().await;
    let mut conn = world.database.connect().await;
    let deleted = managers::delete(&mut conn, first, Timestamp::now()).await;
    assert!(deleted.unwrap().is_some());

    let old = (2..6).map(|days| ago(24 * days, "A kettle of the time between"));
    world
        .platforms
        .publish(old.chain([ago(1, "A fresh kettle")]).collect());
    world.config.scanner.backfill = Duration::from_hours(24);
    let second = world.manager("kettle", &[LEMMY]).await;
    assert_ne!(world.feed(LEMMY, "rewatch_time").await, "");
    let replica = world.ready_scanner().await;
    world.until(second, "A fresh kettle").await;
    world.until_backfilled().await;
    assert_eq!(world.scanned(second).await, ["A fresh kettle"]);
    // Afterwards it is a feed like any other, also for posts that were dated back.
    assert_eq!(world.feed(LEMMY, "rewatch_time").await, "");
    replica.stop().await;
}

/// Its posts were missed while no one watched the feed.
#[tokio::test]
async fn gap_from_before_a_feed_is_watched_again_is_not_counted() {
    const BLOG: &str = "blog:newest";
    let world = World::new().await;
    let kettles = |numbers: Range<u32>| {
        let posts = numbers.map(|n| post("feed:blog", &format!("Kettle {n}")));
        world.platforms.publish(posts.collect());
        world.platforms.keep_newest(10);
    };
    let mut conn = world.database.connect().await;
    let first = world.manager("kettle", &[BLOG]).await;
    kettles(0..1);
    let replica = world.ready_scanner().await;
    world.until(first, "Kettle 0").await;
    world.until_backfilled().await;
    replica.stop().await;
    let deleted = managers::delete(&mut conn, first, Timestamp::now()).await;
    assert!(deleted.unwrap().is_some());

    kettles(1..40);
    let second = world.manager("kettle", &[BLOG]).await;
    let replica = world.ready_scanner().await;
    world.until(second, "Kettle 39").await;
    replica.stop().await;
    assert_eq!(world.feed(BLOG, "gap_count").await, "0");

    // A gap of the time since then is one.
    kettles(40..80);
    let replica = world.ready_scanner().await;
    world.until(second, "Kettle 79").await;
    replica.stop().await;
    assert_eq!(world.feed(BLOG, "gap_count").await, "1");
}

#[tokio::test]
async fn pinned_entry_hides_no_gap_since_its_feed_is_watched_again() {
    const BLOG: &str = "blog:newest";
    let world = World::new().await;
    let first = world.manager("kettle", &[BLOG]).await;
    world.platforms.publish(vec![
        NewPost {
            time: Some(Timestamp::now().minus(Duration::from_mins(10))),
            featured: true,
            ..post("feed:blog", "A pinned entry")
        },
        post("feed:blog", "A kettle"),
    ]);
    let replica = world.ready_scanner().await;
    world.until(first, "A kettle").await;
    world.until_backfilled().await;
    replica.stop().await;
    let mut conn = world.database.connect().await;
    let deleted = managers::delete(&mut conn, first, Timestamp::now()).await;
    assert!(deleted.unwrap().is_some());

    let second = world.manager("kettle", &[BLOG]).await;
    // The feed gives whole seconds.
    let watched_at = Timestamp::now().to_chrono().timestamp();
    eventually("the next second", async || {
        Timestamp::now().to_chrono().timestamp() > watched_at
    })
    .await;
    let kettles = (0..40).map(|n| post("feed:blog", &format!("Kettle {n}")));
    world.platforms.publish(kettles.collect());
    world.platforms.keep_newest(10);
    let replica = world.ready_scanner().await;
    world.until(second, "Kettle 39").await;
    replica.stop().await;
    assert_eq!(world.feed(BLOG, "gap_count").await, "1");
}

/// Platforms give whole seconds, so a post may be newer than its time.
#[tokio::test]
async fn posts_of_the_second_in_which_a_feed_is_watched_are_found() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::ZERO;
    let ago = |seconds: u64, title: &str| NewPost {
        time: Some(Timestamp::now().minus(Duration::from_secs(seconds))),
        ..post("lemmy", title)
    };
    let mut conn = world.database.connect().await;
    // Watched for the first time, and then once more.
    for _ in 0..2 {
        let manager = world.manager("kettle", &[LEMMY]).await;
        let posts = vec![ago(600, "An old kettle"), ago(1, "A new kettle")];
        world.platforms.publish(posts);
        let replica = world.ready_scanner().await;
        world.until(manager, "A new kettle").await;
        assert_eq!(world.scanned(manager).await, ["A new kettle"]);
        replica.stop().await;
        let deleted = managers::delete(&mut conn, manager, Timestamp::now()).await;
        assert!(deleted.unwrap().is_some());
    }
}
