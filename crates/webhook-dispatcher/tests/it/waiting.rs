//! Deliveries that wait in the database, and how they are sent.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use test_support::{Answer, TestServer, eventually};
use tokio::sync::watch;

use crate::support::{World, always, scripted};

#[tokio::test]
async fn rate_limit_is_met_over_two_replicas() {
    let world = World::new().await;
    let arrivals = Arc::new(Mutex::new(Vec::new()));
    let noting = Arc::clone(&arrivals);
    let receiver = TestServer::start(move |_, _| {
        noting.lock().unwrap().push(Instant::now());
        Answer::Status(200)
    })
    .await;
    let connection = world.connection(&receiver).await;
    world
        .database
        .run("UPDATE connections SET max_per_second = 20")
        .await;
    let manager = world.manager(&[connection]).await;
    // Created before the dispatchers start, because some machines create Scans more slowly than the rate.
    world.scans(manager, 160).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    eventually("all go", async || receiver.count() >= 160).await;
    // Measured after the first ones, because lanes start with one request; by the receiver's clock.
    let [first, last] = [40, 150].map(|nth| arrivals.lock().unwrap()[nth]);
    let took = (last - first).as_secs_f64();
    // With a rate per replica it would be 2.8 s, and with one shared rate 5.5 s; the first may be late.
    assert!(took >= 4.0, "110 at 20/s took {took} s");
    for replica in replicas {
        replica.stop().await;
    }
}

/// They must start without any other trigger: no other Scan, and no request that ends.
#[tokio::test]
async fn held_back_deliveries_are_sent_once_results_are_written() {
    let mut world = World::new().await;
    world.config.dispatcher.max_in_flight = 4;
    let answer = Answer::after(Duration::from_millis(400), Answer::Status(200));
    let receiver = always(answer).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warmed = world.warm(manager).await;
    // Before the Scans: on a slow machine, some of their results would be written first.
    let writing = world
        .database
        .begin(&["LOCK TABLE delivery_attempts IN SHARE MODE"])
        .await;
    world.scans_and_tell(manager, 8).await;
    eventually("as many requests as results may wait", async || {
        receiver.count() >= warmed + 4
    })
    .await;
    world.beats(2).await;
    assert!(receiver.count() < warmed + 8, "{}", receiver.count());
    drop(writing);
    world
        .until("SUCCEEDED", i64::try_from(warmed).unwrap() + 8)
        .await;
    replica.stop().await;
}

/// New deliveries do not wait for the sweep while a retry waits longer.
#[tokio::test]
async fn retry_delays_no_new_delivery_under_a_rate_limit() {
    // A busy machine may need several tries.
    const TRIES: i64 = 10;
    const AT_ONCE: Duration = Duration::from_secs(3);
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(600)];
    let receiver = scripted(vec![Answer::Status(500)]).await;
    let manager = world.manager_for(&receiver).await;
    world
        .database
        .run("UPDATE connections SET max_per_second = 20")
        .await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "first").await;
    world.until("RETRYING", 1).await;
    let (mut fastest, mut number) = (Duration::MAX, 0);
    while fastest >= AT_ONCE && number < TRIES {
        number += 1;
        let begin = Instant::now();
        world
            .publish_scan(manager, &format!("kettle {number}"))
            .await;
        world.until("SUCCEEDED", number).await;
        if number > 1 {
            fastest = fastest.min(begin.elapsed());
        }
    }
    // If a sweep found them, each after the first would take five seconds.
    assert!(fastest < AT_ONCE, "{fastest:?}");
    replica.stop().await;
}

/// Checks order, not time: the other receiver gets everything while the backlog's requests stay open.
#[tokio::test]
async fn backlog_of_one_connection_delays_no_other() {
    const ANSWERED: usize = 20;
    let world = World::new().await;
    let (release, held) = watch::channel(false);
    let slow = TestServer::start(move |number, _| match number {
        0..ANSWERED => Answer::Status(200),
        _ => Answer::once(&held, Answer::Status(200)),
    })
    .await;
    let well = always(Answer::Status(200)).await;
    let slow_manager = world.manager_for(&slow).await;
    let well_manager = world.manager_for(&well).await;
    for number in 0..100 {
        world.scan(slow_manager, &format!("slow {number}")).await;
    }
    let replica = world.ready_dispatcher().await;
    eventually("the backlog is worked off", async || {
        slow.count() > ANSWERED
    })
    .await;
    for number in 0..20 {
        world
            .publish_scan(well_manager, &format!("well {number}"))
            .await;
        eventually("it goes at once", async || well.count() == number + 1).await;
    }
    assert!(slow.count() <= ANSWERED + 8, "{} requests", slow.count());
    release.send(true).expect("the receiver waits");
    world.until("SUCCEEDED", 120).await;
    assert!(slow.most_open() <= 8);
    replica.stop().await;
}

#[tokio::test]
async fn delivery_without_a_hint_is_found() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    // The state that a dispatcher leaves when it dies between its commit and its hint.
    world
        .database
        .run("UPDATE deliveries SET state = 'PENDING', next_attempt_time = now()")
        .await;
    eventually("it is found", async || receiver.count() == 2).await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn deliveries_of_deleted_resources_are_cancelled() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    let replica = world.ready_dispatcher().await;
    world.scans_and_tell(manager, 3).await;
    world.until("PENDING", 3).await;
    world.database.run("DELETE FROM manager_notices").await;
    world.database.run("DELETE FROM connections").await;
    world.until("CANCELLED", 3).await;
    assert_eq!(receiver.count(), 0);

    let connection = world.connection(&receiver).await;
    let manager = world.manager(&[connection]).await;
    world
        .database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    world.publish_scan(manager, "kettle").await;
    world.until("PENDING", 1).await;
    // As if the partition of the Scan had been dropped.
    world.database.run("DELETE FROM scans").await;
    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE'")
        .await;
    eventually("it is cancelled", async || {
        world.in_state("CANCELLED").await == 4
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn owner_change_takes_effect_during_a_backlog() {
    const BACKLOG: usize = 2_000;
    let world = World::new().await;
    let receiver = always(Answer::after(
        Duration::from_millis(20),
        Answer::Status(200),
    ))
    .await;
    let manager = world.manager_for(&receiver).await;
    world.scans(manager, BACKLOG).await;
    let replica = world.ready_dispatcher().await;
    let goes_on = async |what: &str| {
        let before = receiver.count();
        eventually(what, async || receiver.count() > before + 20).await;
    };
    goes_on("the backlog is worked off").await;
    // A claim takes the deliveries of a second at most.
    for (held, per_second, claimed, released) in [
        ("max_per_second = 3", 3.0, 4, "max_per_second = NULL"),
        ("state = 'DISABLED'", 0.0, 0, "state = 'ACTIVE'"),
    ] {
        let set = async |what: &str| {
            let sql = format!("UPDATE connections SET {what}");
            assert_eq!(world.database.run(&sql).await, 1);
        };
        set(held).await;
        // Deliveries that were claimed before are still sent.
        world.beats(1).await;
        eventually("they are sent", async || {
            world.in_state("IN_FLIGHT").await <= claimed
        })
        .await;
        let (before, begin) = (receiver.count(), Instant::now());
        world.beats(2).await;
        let sent = receiver.count() - before;
        let most = 9.0 + per_second * begin.elapsed().as_secs_f64();
        assert!(sent as f64 <= most, "{held}: {sent}, at most {most}");
        if per_second > 0.0 {
            eventually("it goes on", async || receiver.count() > before).await;
        }
        set(released).await;
        goes_on(released).await;
    }
    assert!(receiver.count() < BACKLOG, "the backlog was long enough");
    replica.stop().await;
}

/// If this were left to the sweep, each round after the first would take five seconds, because it starts when the
/// previous sweep has ended.
#[tokio::test]
async fn delivery_requested_during_its_request_is_sent_at_once() {
    // A busy machine may need several tries.
    const TRIES: usize = 10;
    const AT_ONCE: Duration = Duration::from_secs(3);
    let world = World::new().await;
    let (releases, held): (Vec<_>, Vec<_>) = (0..=TRIES).map(|_| watch::channel(false)).unzip();
    let receiver = TestServer::start(move |number, _| {
        let held: &watch::Receiver<bool> = &held[number];
        Answer::once(held, Answer::Status(200))
    })
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "kettle").await;
    let mut fastest = Duration::MAX;
    for (number, release) in releases.iter().enumerate() {
        let begin = Instant::now();
        eventually("its request is open", async || {
            receiver.count() == number + 1
        })
        .await;
        if number > 1 {
            fastest = fastest.min(begin.elapsed());
        }
        let is_last = fastest < AT_ONCE || number == TRIES;
        if !is_last {
            // Like a replay.
            let again = "UPDATE deliveries SET reopen_asked = true, reopen_time = now() \
                         WHERE state = 'IN_FLIGHT'";
            assert_eq!(world.database.run(again).await, 1);
        }
        release.send(true).expect("the receiver waits");
        if is_last {
            break;
        }
    }
    assert!(fastest < AT_ONCE, "{fastest:?}");
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
}
