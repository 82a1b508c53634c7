//! Hundreds of feeds on replicas that start and stop.
//!
//! `EARSHOT_LARGE_TESTS=1` runs the tests in full size, for some minutes.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, Instant},
};

use domain::{Instructions, ManagerName, Timestamp};
use platform_simulator::NewPost;
use store::managers;
use test_support::{Replica, eventually};

use crate::support::{World, post, watching};

fn is_large() -> bool {
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's own switch, which no process reads"
    )]
    let large = std::env::var_os("EARSHOT_LARGE_TESTS").is_some();
    if !large {
        eprintln!("in small; EARSHOT_LARGE_TESTS=1 runs it with 500 feeds and 10,000 Managers");
    }
    large
}

/// A world of `feeds` communities, each with a post, that are polled every `interval`.
async fn world_of(feeds: usize, interval: Duration) -> (World, Vec<String>) {
    let mut world = World::new().await;
    for platform in &mut world.config.platforms {
        platform.poll_interval = Some(interval);
    }
    let names: Vec<String> = (0..feeds).map(|n| format!("lemmy:c/f{n}")).collect();
    world
        .platforms
        .publish((0..feeds).map(|n| at(n, "A post")).collect());
    world.log_leases().await;
    (world, names)
}

fn at(community: usize, title: &str) -> NewPost {
    NewPost {
        community: Some(format!("f{community}")),
        ..post("lemmy", title)
    }
}

/// Managers that divide the feeds among them, `each` feeds per Manager.
async fn managers(world: &World, count: usize, feeds: &[String], each: usize) -> Vec<ManagerName> {
    let mut conn = world.database.connect().await;
    let mut made = Vec::new();
    for number in 0..count {
        let own: Vec<&str> = (0..each)
            .map(|n| feeds[(number * each + n) % feeds.len()].as_str())
            .collect();
        let instructions: Instructions = watching("kettle", &own);
        let manager = world.fixture.manager(&mut conn, &instructions, &[]).await;
        managers::apply(
            &mut conn,
            manager,
            1,
            &instructions,
            &test_support::QUOTAS,
            Timestamp::now(),
        )
        .await
        .unwrap();
        made.push(manager);
    }
    made
}

#[tokio::test(flavor = "multi_thread")]
async fn feeds_are_polled_on_time_by_one_replica_each_while_replicas_come_and_go() {
    let is_large = is_large();
    let (count, interval, ticks) = if is_large {
        (500, Duration::from_secs(40), 860)
    } else {
        (120, Duration::from_secs(4), 160)
    };
    let (world, feeds) = world_of(count, interval).await;
    let managers = managers(&world, 20, &feeds, count / 20).await;
    let mut replicas: Vec<Replica> = Vec::new();
    for _ in 0..3 {
        replicas.push(world.ready_scanner().await);
    }
    let mut killed = BTreeSet::new();
    let mut expected = BTreeMap::<ManagerName, BTreeSet<String>>::new();
    for tick in 0..ticks {
        let feed = tick * 7 % count;
        let title = format!("Kettle {tick}");
        world.platforms.publish(vec![at(feed, &title)]);
        let owner = managers[feed / (count / 20)];
        expected.entry(owner).or_default().insert(title);
        if tick % 40 == 25 {
            let victim = replicas.remove(0);
            killed.insert(victim.backbone.replica);
            victim.kill();
            replicas.push(world.ready_scanner().await);
        }
        if tick % 100 == 90 {
            replicas.remove(0).stop().await;
            replicas.push(world.ready_scanner().await);
        }
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
    assert!(killed.len() >= 3, "{}", killed.len());
    for (manager, titles) in &expected {
        eventually("every post is scanned", async || {
            world.scanned(*manager).await.len() >= titles.len()
        })
        .await;
    }
    for replica in replicas {
        replica.stop().await;
    }
    for (manager, titles) in expected {
        let found = world.scanned(manager).await;
        assert_eq!(found.len(), titles.len(), "a Scan was made twice");
        assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), titles);
    }
    let stolen = world.taken_over(&killed).await;
    let polls = world.database.count("log WHERE now IS NOT NULL").await;
    let late = world
        .database
        .count("log WHERE now IS NOT NULL AND at - due > interval '10 seconds'")
        .await;
    let p99 = world
        .database
        .texts(
            "percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM at - due))",
            "log WHERE now IS NOT NULL",
        )
        .await;
    eprintln!(
        "{polls} polls of {count} feeds, {late} later than 10 s, p99 {p99:?} s; {} leases of the dead taken over",
        stolen
    );
    // The small variant runs next to other tests, and the machine may be too slow for all of them.
    assert!(
        !is_large || late * 100 <= polls,
        "{late} of {polls} polls were late"
    );
    let few = "SELECT feed FROM log WHERE now IS NOT NULL GROUP BY feed HAVING count(*) >= 2";
    let polled = world.database.count(&format!("({few}) AS polled")).await;
    assert_eq!(
        usize::try_from(polled).unwrap(),
        count,
        "a feed was forgotten"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_grow_with_feeds_and_not_with_managers() {
    let (count, many, seconds) = if is_large() {
        (500, 10_000, 60)
    } else {
        (60, 300, 8)
    };
    let interval = if is_large() {
        Duration::from_secs(10)
    } else {
        Duration::from_secs(1)
    };
    let mut counts = Vec::new();
    for managers_count in [count, many] {
        let (world, feeds) = world_of(count, interval).await;
        managers(&world, managers_count, &feeds, 1).await;
        let replica = world.ready_scanner().await;
        eventually("all were read", async || {
            let unread = "feeds WHERE cursor IS NULL";
            let open = "backfills WHERE state <> 'DONE'";
            world.database.count(unread).await + world.database.count(open).await == 0
        })
        .await;
        let (before, begin) = (world.platforms.requests("/lemmy"), Instant::now());
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let requests = world.platforms.requests("/lemmy") - before;
        // As many as the intervals allow, for any number of Managers.
        let polls = begin.elapsed().as_secs() / interval.as_secs() + 1;
        let most = u64::try_from(count).unwrap() * polls;
        assert!(requests <= most, "{requests} requests, more than {most}");
        assert!(requests > 0, "none is polled");
        counts.push(requests);
        replica.stop().await;
    }
    eprintln!(
        "{count} feeds: {} requests for {count} Managers, {} for {many}, in {seconds} s",
        counts[0], counts[1]
    );
}
