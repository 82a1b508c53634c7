//! Backfills: Managers are run over past posts, each post once, and only requested Scans are delivered.

use std::{collections::BTreeSet, time::Duration};

use domain::{ManagerName, Reach, Timestamp};
use platform_simulator::{Fault, FaultKind, NewPost};
use store::{
    backfills::{self, FeedReach},
    roles::Service,
};
use test_support::eventually;

use crate::support::{HACKER_NEWS, LEMMY, World, blogs, metric, post, watching};

pub(crate) const DAY: u64 = 24 * 60;

pub(crate) fn aged(platform: &str, title: &str, minutes: u64) -> NewPost {
    NewPost {
        time: Some(Timestamp::now().minus(Duration::from_secs(minutes * 60))),
        ..post(platform, title)
    }
}

pub(crate) async fn ask(
    world: &World,
    manager: ManagerName,
    days: u64,
    notify: bool,
) -> Vec<FeedReach> {
    let mut conn = world.database.connect().await;
    let start = Timestamp::now().minus(Duration::from_secs(days * DAY * 60));
    let reach = |_: &domain::FeedName| Reach::Time(Duration::MAX);
    let window = world.config.scanner.backfill;
    backfills::request(&mut conn, manager, start, notify, window, reach)
        .await
        .unwrap()
}

#[tokio::test]
async fn new_manager_gets_recent_posts_of_its_feeds() {
    let world = World::new().await;
    world.manager("toaster", &[LEMMY, HACKER_NEWS]).await;
    world.platforms.publish(vec![
        aged("lemmy", "A kettle of yesterday", 20 * 60),
        aged("lemmy", "A kettle of long ago", 40 * 60),
    ]);
    let replica = world.ready_scanner().await;
    world.publish("lemmy", "A kettle of now");
    world.publish("hackernews", "A kettle of hackers");
    eventually("all are kept", async || {
        world.database.count("recent_posts").await == 3
    })
    .await;

    let manager = world.manager("kettle", &[LEMMY, HACKER_NEWS]).await;
    world.until_scanned(manager, 3).await;
    world.until_backfilled().await;
    let found: BTreeSet<String> = world.scanned(manager).await.into_iter().collect();
    let expected = [
        "A kettle of hackers",
        "A kettle of now",
        "A kettle of yesterday",
    ];
    assert_eq!(found, expected.map(str::to_owned).into());
    // Their events are written like those of any Scan, and there are no requests to the platform except those of
    // the polls, which go on.
    assert_eq!(world.database.count("scans WHERE fanned_out").await, 0);
    world.until_asked("/lemmy").await;
    assert_eq!(
        world
            .database
            .count("backfills WHERE look_back_id IS NOT NULL")
            .await,
        0
    );

    // Only at its first apply.
    let mut conn = world.database.connect().await;
    world
        .database
        .run("UPDATE managers SET generation = 2, state = 'PENDING_APPLY'")
        .await;
    world.database.run("DELETE FROM backfills").await;
    let instructions = crate::support::watching("kettle", &[LEMMY]);
    store::managers::apply(
        &mut conn,
        manager,
        2,
        &instructions,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await
    .unwrap()
    .unwrap();
    assert_eq!(world.database.count("backfills").await, 0);
    replica.stop().await;
}

#[tokio::test]
async fn a_backfill_waits_while_many_scans_have_no_deliveries() {
    let world = World::new().await;
    let busy = world.manager("toaster", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    // The kettles are older, so no poll reads them after the last toaster.
    let kettles = (0..60).map(|n| aged("lemmy", &format!("Kettle {n}"), 5));
    let toasters = (0..250).map(|n| aged("lemmy", &format!("Toaster {n}"), 5));
    world.platforms.publish(kettles.chain(toasters).collect());
    // No dispatcher runs.
    world.until_scanned(busy, 250).await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    world.until_scanned(manager, 60).await;
    // Three blocks, and each waits for 0.8 seconds.
    let id = manager.manager.to_uuid();
    let span = format!(
        "(SELECT max(create_time) - min(create_time) AS span FROM scans WHERE manager_id = '{id}') AS s \
         WHERE span > interval '1500 milliseconds'"
    );
    assert_eq!(world.database.count(&span).await, 1);
    replica.stop().await;
}

#[tokio::test]
async fn long_backfill_is_silent_by_default_and_creates_each_scan_once() {
    let mut world = World::new().await;
    // So that a step of 500 posts is followed by others.
    world.config.scanner.backfill = Duration::from_secs(3_600);
    let old = |number: u64| {
        aged(
            "hackernews",
            &format!("Kettle {number}"),
            2 * DAY + number * 5,
        )
    };
    world.platforms.publish((0..700).rev().map(old).collect());
    world.platforms.publish(vec![
        aged("hackernews", "A kettle of the hour", 30),
        aged("hackernews", "A kettle of last month", 35 * DAY),
    ]);
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    world.until_scanned(manager, 1).await;
    world.until_backfilled().await;

    // The second step waits for the next replica.
    for statement in [
        "CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN NEW.next_time := now() + interval '1 hour'; RETURN NEW; END $$",
        "CREATE TRIGGER hold BEFORE UPDATE ON look_backs FOR EACH ROW \
         WHEN (OLD.cursor IS NULL AND NEW.cursor IS NOT NULL) EXECUTE FUNCTION hold()",
    ] {
        world.database.run(statement).await;
    }
    let reached = ask(&world, manager, 30, false).await;
    assert_eq!(reached.len(), 1);
    assert_eq!(reached[0].feed.as_str(), HACKER_NEWS);
    let days = Timestamp::now().since(reached[0].reach_time).as_secs() / 86_400;
    assert!((29..=30).contains(&days), "{days}");
    eventually("a step was made", async || {
        world
            .database
            .count("look_backs WHERE cursor IS NOT NULL")
            .await
            == 1
    })
    .await;
    replica.kill();
    let replica = world.ready_scanner().await;
    // New posts are delivered even during a silent backfill.
    world.publish("hackernews", "A fresh kettle");
    world.until(manager, "A fresh kettle").await;
    // The next replica continues from there.
    for statement in [
        "DROP TRIGGER hold ON look_backs",
        "UPDATE look_backs SET next_time = now()",
    ] {
        world.database.run(statement).await;
    }
    world.until_backfilled().await;
    let found = world.scanned(manager).await;
    let distinct: BTreeSet<&String> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (702, 702));
    assert!(!distinct.contains(&"A kettle of last month".to_owned()));
    // They are marked, so no delivery is ever created for them.
    assert_eq!(world.database.count("scans WHERE NOT fanned_out").await, 2);

    // Requested again, with delivery: there is no post that it did not have yet.
    ask(&world, manager, 30, true).await;
    world.until_backfilled().await;
    assert_eq!(world.scanned(manager).await.len(), 702);

    // Another Manager gets all of them.
    let other = world.manager("kettle", &[HACKER_NEWS]).await;
    ask(&world, other, 30, true).await;
    world.until_backfilled().await;
    assert_eq!(world.scanned(other).await.len(), 702);
    assert_eq!(
        world.database.count("scans WHERE NOT fanned_out").await,
        2 + 702
    );
    replica.stop().await;
}

#[tokio::test]
async fn silent_backfill_does_not_silence_a_new_post() {
    let world = World::new().await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed was read", async || {
        !world.feed(LEMMY, "cursor").await.is_empty()
    })
    .await;
    for number in 0..30 {
        world.publish("lemmy", &format!("Kettle {number}"));
        ask(&world, manager, 30, false).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.until_scanned(manager, 30).await;
    world.until_backfilled().await;
    assert_eq!(world.scanned(manager).await.len(), 30);
    assert_eq!(
        world.database.count("scans WHERE fanned_out").await,
        0,
        "a new post is not delivered"
    );
    replica.stop().await;
}

#[tokio::test]
async fn new_managers_on_a_watched_feed_cost_no_requests() {
    const POSTS: u32 = 5;
    let world = World::new().await;
    // Simulates dispatchers that keep up.
    for statement in [
        "CREATE FUNCTION fan_out() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN NEW.fanned_out := true; RETURN NEW; END $$",
        "CREATE TRIGGER fan_out BEFORE INSERT ON scans FOR EACH ROW EXECUTE FUNCTION fan_out()",
    ] {
        world.database.run(statement).await;
    }
    world.manager("toaster", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    for number in 0..POSTS {
        world.publish("lemmy", &format!("Kettle {number}"));
    }
    eventually("all are kept", async || {
        world.database.count("recent_posts").await == i64::from(POSTS)
    })
    .await;
    let mut managers = Vec::new();
    for _ in 0..150 {
        managers.push(world.manager("kettle", &[LEMMY]).await);
    }
    for manager in managers {
        world.until_scanned(manager, POSTS as usize).await;
    }
    world.until_backfilled().await;
    assert_eq!(world.database.count("scans").await, 150 * i64::from(POSTS));
    replica.stop().await;
}

/// Refuses Scans of some terms permanently.
async fn refuse(world: &World, terms: &str) {
    let function = format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF NEW.matched::text ~ '{terms}' THEN \
             RAISE EXCEPTION 'refused here' USING ERRCODE = 'check_violation'; \
         END IF; RETURN NEW; END $$"
    );
    for statement in [
        function.as_str(),
        "CREATE TRIGGER refuse BEFORE INSERT ON scans FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
}

#[tokio::test]
async fn backfill_that_cannot_be_stored_delays_no_other() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_secs(3_600);
    world.manager("toaster", &[HACKER_NEWS]).await;
    let old = |number: u64| {
        aged(
            "hackernews",
            &format!("An old hexed kettle {number}"),
            2 * DAY,
        )
    };
    world.platforms.publish((0..3).map(old).collect());
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A cursed kettle");
    eventually("it is kept", async || {
        world.database.count("recent_posts").await == 1
    })
    .await;
    replica.stop().await;
    refuse(&world, "cursed|hexed").await;
    // One Manager whose stored posts cannot be stored as Scans, one whose older ones cannot, and one after them.
    let mut managers = Vec::new();
    for term in ["cursed", "hexed", "kettle"] {
        let manager = world.manager(term, &[HACKER_NEWS]).await;
        ask(&world, manager, 30, true).await;
        managers.push(manager);
    }
    let replica = world.ready_scanner().await;
    let impatient = async || {
        // Between two tries lie seconds.
        let soon = "UPDATE look_backs SET next_time = least(next_time, now())";
        world.database.run(soon).await;
        let open = "backfills WHERE state IN ('WAITING', 'READING')";
        world.database.count(open).await == 0
    };
    eventually("all come to an end", impatient).await;
    let found: BTreeSet<String> = world.scanned(managers[2]).await.into_iter().collect();
    assert_eq!(found.len(), 4, "{found:?}");
    for manager in &managers[..2] {
        assert!(world.scanned(*manager).await.is_empty());
        let id = manager.manager.to_uuid();
        let own = format!("backfills WHERE manager_id = '{id}'");
        let states = world.database.texts("state || ': ' || error", &own).await;
        assert_eq!(states, ["FAILED: refused here"]);
    }
    // The last step ends after the Manager that it cannot store is set aside.
    eventually("the look-backs end", async || {
        world.database.count("look_backs").await == 0
    })
    .await;
    assert!(metric(
        r#"earshot_work_items_total{kind="backfill",outcome="set_aside"} 2"#
    ));

    // A new request, after the cause is fixed, tries again.
    world.database.run("DROP TRIGGER refuse ON scans").await;
    ask(&world, managers[0], 30, true).await;
    world.until_scanned(managers[0], 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn look_back_reads_the_posts_of_a_postponed_manager_again() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_secs(3_600);
    world
        .platforms
        .publish(vec![aged("hackernews", "An old kettle", 2 * DAY)]);
    let manager = world.manager("kettle", &[HACKER_NEWS]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed was read", async || {
        !world.feed(HACKER_NEWS, "cursor").await.is_empty()
    })
    .await;
    world.until_backfilled().await;
    // A sequence keeps its value when a transaction is rolled back.
    for statement in [
        "CREATE SEQUENCE refusals",
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN \
         IF nextval('public.refusals') <= 2 THEN \
             RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'; \
         END IF; RETURN NEW; END $$",
        "CREATE TRIGGER refuse BEFORE INSERT ON scans FOR EACH ROW EXECUTE FUNCTION refuse()",
    ] {
        world.database.run(statement).await;
    }
    ask(&world, manager, 30, true).await;
    eventually("the post arrives", async || {
        // Between two tries lie seconds.
        for table in ["look_backs", "backfills"] {
            let soon = format!("UPDATE {table} SET next_time = least(next_time, now())");
            world.database.run(&soon).await;
        }
        world.scanned(manager).await == ["An old kettle"]
    })
    .await;
    world.until_backfilled().await;
    replica.stop().await;
}

#[tokio::test]
async fn look_back_reads_a_long_list_only_a_few_times() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_secs(60);
    for platform in &mut world.config.platforms {
        // Only the look-back sends requests meanwhile.
        platform.poll_interval = Some(Duration::from_secs(600));
    }
    let old = |number: u64| aged("lemmy", &format!("Toaster {number}"), DAY + number);
    world.platforms.publish((0..2_600).rev().map(old).collect());
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed was read", async || {
        !world.feed(LEMMY, "cursor").await.is_empty()
    })
    .await;
    world.until_backfilled().await;
    let before = world.platforms.requests("/lemmy");
    ask(&world, manager, 30, false).await;
    eventually("it has looked back", async || {
        let open = "backfills WHERE state <> 'DONE'";
        world.database.count(open).await == 0
    })
    .await;
    // 500 posts, 500, 1,000 and the rest, from 52 pages and the one after the last.
    let asked = world.platforms.requests("/lemmy") - before;
    assert!((53..=4 * 54).contains(&asked), "{asked} requests");
    replica.stop().await;
}

#[tokio::test]
async fn a_look_back_waits_as_long_as_the_platform_asks() {
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_secs(3_600);
    for platform in &mut world.config.platforms {
        platform.poll_interval = Some(Duration::from_secs(3_600));
    }
    let old = |number: u64| aged("lemmy", &format!("Kettle {number}"), 2 * DAY + number);
    world.platforms.publish((0..120).rev().map(old).collect());
    let manager = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("the feed was read", async || {
        !world.feed(LEMMY, "cursor").await.is_empty()
    })
    .await;
    world.until_backfilled().await;
    // The first page arrives, the second does not.
    for (kind, value) in [(FaultKind::Delay, 0), (FaultKind::RetryAfter, 600)] {
        world.platforms.fail(Fault::new("lemmy", kind, value));
    }
    ask(&world, manager, 30, false).await;
    eventually("a step was made", async || {
        let stepped = "look_backs WHERE cursor IS NOT NULL";
        world.database.count(stepped).await == 1
    })
    .await;
    let waits = "look_backs WHERE next_time > now() + interval '5 minutes'";
    assert_eq!(world.database.count(waits).await, 1);
    replica.stop().await;
}

#[tokio::test]
async fn stored_posts_from_before_the_accounts_first_watch_are_matched_within_the_window_only() {
    const FEED: &str = "blogs:https://b.example/x";
    let mut world = World::new().await;
    world.config.scanner.backfill = Duration::from_hours(24);
    world.config.platforms.push(blogs(Duration::from_hours(1)));
    let globex = world
        .fixture
        .beside(&mut world.database.connect().await, "globex")
        .await;
    let mut conn = world.database.connect().await;
    let instructions = watching("kettle", &[FEED]);
    let first = globex.applied_manager(&mut conn, &instructions, &[]).await;
    // The feed is read, and not due in this test.
    for sql in [
        "UPDATE account_feeds SET watch_time = now() - interval '90 hours'",
        "UPDATE feeds SET cursor = '{}', kept_since = now() - interval '80 hours', read_time = now(), \
             next_poll_time = now() + interval '1 day'",
    ] {
        world.database.run(sql).await;
    }
    let post = |title: &str, hours| domain::Post {
        time: Timestamp::now().minus(Duration::from_hours(hours)),
        ..test_support::post(title, title)
    };
    let posts = [post("An old kettle", 40), post("A new kettle", 2)];
    let feed = FEED.parse().unwrap();
    store::recent_posts::insert(&mut conn, &feed, &posts, Timestamp::now(), u32::MAX)
        .await
        .unwrap();
    let later = world
        .fixture
        .applied_manager(&mut conn, &instructions, &[])
        .await;
    for manager in [first, later] {
        ask(&world, manager, 30, true).await;
    }
    let replica = world.ready_scanner().await;
    world.until_scanned(first, 2).await;
    world.until_backfilled().await;
    assert_eq!(world.scanned(later).await, ["A new kettle"]);
    replica.stop().await;
}

const NOT_DUE: &str = "blogs:https://b.example/x";

/// A world with stored posts of [`NOT_DUE`], which is not polled, and two Managers without backfills that watch it: of
/// the fixture for "kettle", and of another account for "toaster".
async fn world_of_stored_posts(titles: &[&str]) -> (World, [ManagerName; 2]) {
    let world = World::of_blogs(Duration::from_hours(1)).await;
    let mut conn = world.database.connect().await;
    let globex = world.fixture.beside(&mut conn, "globex").await;
    let own = world.manager("kettle", &[NOT_DUE]).await;
    let toaster = watching("toaster", &[NOT_DUE]);
    let other = globex.applied_manager(&mut conn, &toaster, &[]).await;
    for sql in [
        "DELETE FROM backfills",
        "UPDATE account_feeds SET watch_time = now() - interval '90 hours'",
        "UPDATE feeds SET cursor = '{}', kept_since = now() - interval '80 hours', read_time = now(), \
             next_poll_time = now() + interval '1 day'",
    ] {
        world.database.run(sql).await;
    }
    let posts = titles.iter().map(|title| domain::Post {
        time: Timestamp::now().minus(Duration::from_hours(2)),
        ..test_support::post(title, title)
    });
    let (feed, posts) = (NOT_DUE.parse().unwrap(), posts.collect::<Vec<_>>());
    store::recent_posts::insert(&mut conn, &feed, &posts, Timestamp::now(), u32::MAX)
        .await
        .unwrap();
    (world, [own, other])
}

async fn until_a_step_failed() {
    eventually("a step fails", async || {
        !metric(r#"earshot_work_items_total{kind="backfill",outcome="failed"} 0"#)
    })
    .await;
}

/// No replica can bring its index up to date, because the role may not read mutes.
#[tokio::test]
async fn backfill_is_matched_again_only_for_changes_of_its_managers() {
    let (world, [own, other]) = world_of_stored_posts(&["A kettle", "A bicycle"]).await;
    let replica = world.ready_scanner().await;
    let role = Service::Scanner.role();
    for statement in [
        format!("REVOKE SELECT ON namespaces FROM {role}"),
        format!("GRANT SELECT (id, account_id) ON namespaces TO {role}"),
    ] {
        world.database.run(&statement).await;
    }
    world.replace(other, &watching("pan", &[NOT_DUE])).await;
    ask(&world, own, 30, true).await;
    world.until_scanned(own, 1).await;
    world.until_backfilled().await;

    world.replace(own, &watching("bicycle", &[NOT_DUE])).await;
    ask(&world, own, 30, true).await;
    eventually("the step cannot be stored", async || {
        world
            .database
            .count("backfills WHERE failure_count > 0")
            .await
            > 0
    })
    .await;
    assert_eq!(world.scanned(own).await, ["A kettle"]);
    let restored = format!("GRANT SELECT ON namespaces TO {role}");
    world.database.run(&restored).await;
    let due = "UPDATE backfills SET next_time = now() WHERE failure_count > 0";
    world.database.run(due).await;
    world.until_scanned(own, 2).await;
    replica.stop().await;
    assert_eq!(world.scanned(own).await, ["A kettle", "A bicycle"]);
}

#[tokio::test]
async fn backfill_whose_plans_change_before_each_try_is_tried_again_later() {
    let (world, [own, _]) = world_of_stored_posts(&["A kettle"]).await;
    let replica = world.ready_scanner().await;
    // Each look finds another version, so the index is never up to date.
    for statement in [
        "ALTER TABLE plan_version RENAME TO true_version",
        "CREATE VIEW plan_version AS \
         SELECT true AS single, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS version",
        format!(
            "GRANT SELECT ON plan_version TO {}",
            Service::Scanner.role()
        )
        .as_str(),
    ] {
        world.database.run(statement).await;
    }
    ask(&world, own, 30, true).await;
    until_a_step_failed().await;
    assert!(world.scanned(own).await.is_empty());
    for statement in [
        "DROP VIEW plan_version",
        "ALTER TABLE true_version RENAME TO plan_version",
    ] {
        world.database.run(statement).await;
    }
    world.until_scanned(own, 1).await;
    replica.stop().await;
}

/// Publishes posts that a poll stores, with a Manager that matches none of them.
async fn keep_kettles(world: &World, kettles: usize) {
    world.manager("toaster", &[LEMMY]).await;
    let kettles = (0..kettles).map(|n| aged("lemmy", &format!("Kettle {n}"), 5));
    world.platforms.publish(kettles.collect());
}

#[tokio::test]
async fn long_step_of_a_backfill_leaves_managers_to_the_next_one() {
    const KETTLES: usize = 60;
    let world = World::new().await;
    keep_kettles(&world, KETTLES).await;
    let replica = world.ready_scanner().await;
    eventually("all are kept", async || {
        world.database.count("recent_posts").await == KETTLES as i64
    })
    .await;
    replica.stop().await;
    // They wait when the first step begins. Without a dispatcher, each takes 0.8 seconds for each 20 Scans.
    let first = world.manager("kettle", &[LEMMY]).await;
    let second = world.manager("kettle", &[LEMMY]).await;
    let replica = world.ready_scanner().await;
    eventually("a step ends between them", async || {
        let id = first.manager.to_uuid();
        let one = format!("backfills WHERE state = 'DONE' AND manager_id = '{id}'");
        let id = second.manager.to_uuid();
        let other = format!("backfills WHERE state = 'WAITING' AND manager_id = '{id}'");
        let both = format!("{one} AND EXISTS (SELECT FROM {other})");
        world.database.count(&both).await == 1
    })
    .await;
    world.until_backfilled().await;
    for manager in [first, second] {
        let found = world.scanned(manager).await;
        assert_eq!(found.len(), KETTLES);
        assert_eq!(BTreeSet::from_iter(found).len(), KETTLES);
    }
    replica.stop().await;
}

#[tokio::test]
async fn shutdown_ends_a_step_of_a_backfill_and_the_next_replica_continues() {
    const KETTLES: usize = 200;
    let world = World::new().await;
    keep_kettles(&world, KETTLES).await;
    let replica = world.ready_scanner().await;
    eventually("all are kept", async || {
        world.database.count("recent_posts").await == KETTLES as i64
    })
    .await;
    let manager = world.manager("kettle", &[LEMMY]).await;
    // The last of ten blocks comes eight seconds later.
    world.until_scanned(manager, 1).await;
    replica.stop().await;
    assert!(world.scanned(manager).await.len() < KETTLES);
    // With a dispatcher, the rest is quick.
    world
        .database
        .run("UPDATE scans SET fanned_out = true")
        .await;
    let replica = world.ready_scanner().await;
    world.until_backfilled().await;
    let found = world.scanned(manager).await;
    assert_eq!(found.len(), KETTLES);
    assert_eq!(BTreeSet::from_iter(found).len(), KETTLES);
    replica.stop().await;
}
