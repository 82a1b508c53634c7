//! Deliveries that wait in the database, and how they are sent.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use test_support::{Answer, TestServer, eventually};

use crate::support::{SOON, World, always};

#[tokio::test]
async fn a_rate_is_met_over_two_replicas() {
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
    // There before anybody looks: Scans are not made as fast as the rate on every machine.
    world.scans(manager, 120).await;
    let replicas = [
        world.ready_dispatcher().await,
        world.ready_dispatcher().await,
    ];
    eventually("all go", 2 * SOON, async || receiver.count() >= 120).await;
    // Behind the first, for the lanes begin with one place; by the receiver's clock.
    let [first, last] = [40, 100].map(|nth| arrivals.lock().unwrap()[nth]);
    let took = (last - first).as_secs_f64();
    assert!((2.7..=3.3).contains(&took), "60 at 20/s took {took} s");
    for replica in replicas {
        replica.stop().await;
    }
}

/// They must start without anything else: no other Scan, and no request that ends.
#[tokio::test]
async fn what_was_held_back_goes_once_results_are_written() {
    let mut world = World::new().await;
    world.config.dispatcher.max_in_flight = 4;
    let answer = Answer::after(Duration::from_millis(400), Answer::Status(200));
    let receiver = always(answer).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let warmed = world.warm(manager).await;
    let mut scans = Vec::new();
    for number in 0..8 {
        scans.push(world.scan(manager, &format!("held {number}")).await);
    }
    let writing = world
        .database
        .begin(&["LOCK TABLE delivery_attempts IN SHARE MODE"])
        .await;
    for scan in scans {
        world.tell(scan).await;
    }
    eventually("as many requests as results may wait", SOON, async || {
        receiver.count() >= warmed + 4
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(receiver.count() < warmed + 8, "{}", receiver.count());
    drop(writing);
    world
        .until("SUCCEEDED", i64::try_from(warmed).unwrap() + 8)
        .await;
    replica.stop().await;
}

#[tokio::test]
async fn a_backlog_of_one_delays_no_other() {
    let world = World::new().await;
    let (slow, well) = (
        always(Answer::after(
            Duration::from_millis(50),
            Answer::Status(200),
        ))
        .await,
        always(Answer::Status(200)).await,
    );
    let slow_manager = world.manager_for(&slow).await;
    let well_manager = world.manager_for(&well).await;
    for number in 0..400 {
        world.scan(slow_manager, &format!("slow {number}")).await;
    }
    let replica = world.ready_dispatcher().await;
    eventually("the backlog is worked off", SOON, async || {
        slow.count() > 20
    })
    .await;
    for number in 0..20 {
        let begin = Instant::now();
        world
            .scan_and_tell(well_manager, &format!("well {number}"))
            .await;
        eventually("it goes at once", SOON, async || well.count() == number + 1).await;
        assert!(begin.elapsed() < Duration::from_millis(700));
    }
    assert!(slow.count() < 400, "the backlog is still there");
    assert!(slow.most_open() <= 8);
    replica.stop().await;
}

#[tokio::test]
async fn what_no_hint_tells_of_is_found() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    world.until("SUCCEEDED", 1).await;
    // As a dispatcher that dies between its commit and its note leaves it.
    world
        .database
        .run("UPDATE deliveries SET state = 'PENDING', next_attempt_time = now()")
        .await;
    eventually("it is found", SOON, async || receiver.count() == 2).await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
}

#[tokio::test]
async fn deliveries_of_what_is_gone_are_cancelled() {
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
    world.scan_and_tell(manager, "kettle").await;
    world.until("PENDING", 1).await;
    // As where the partition of the Scan was dropped.
    world.database.run("DELETE FROM scans").await;
    world
        .database
        .run("UPDATE connections SET state = 'ACTIVE'")
        .await;
    eventually("it is cancelled", Duration::from_secs(25), async || {
        world.in_state("CANCELLED").await == 4
    })
    .await;
    replica.stop().await;
}

#[tokio::test]
async fn a_result_that_the_database_cannot_take_holds_up_no_other() {
    let world = World::new().await;
    let receiver = always(Answer::Status(200)).await;
    let manager = world.manager_for(&receiver).await;
    let poison = world.scan(manager, "poison").await;
    // An error, and no breach of a rule.
    let rule = format!(
        "CREATE FUNCTION poison() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN IF NEW.scan_id = '{}' AND NEW.state = 'SUCCEEDED' THEN RAISE 'poison'; END IF; RETURN NEW; END $$",
        poison.scan.to_uuid()
    );
    world.database.run(&rule).await;
    world
        .database
        .run("CREATE TRIGGER poison BEFORE UPDATE ON deliveries FOR EACH ROW EXECUTE FUNCTION poison()")
        .await;
    let mut scans = vec![poison];
    for number in 0..5 {
        scans.push(world.scan(manager, &format!("kettle {number}")).await);
    }
    let replica = world.ready_dispatcher().await;
    for scan in scans {
        world.tell(scan).await;
    }
    world.until("SUCCEEDED", 5).await;
    assert_eq!(receiver.count(), 6);
    world
        .database
        .run("DROP TRIGGER poison ON deliveries")
        .await;
    world.until("SUCCEEDED", 6).await;
    assert_eq!(receiver.count(), 6, "and is not repeated");
    replica.stop().await;
}

#[tokio::test]
async fn an_owner_is_heeded_amid_a_backlog() {
    let world = World::new().await;
    let receiver = always(Answer::after(
        Duration::from_millis(20),
        Answer::Status(200),
    ))
    .await;
    let manager = world.manager_for(&receiver).await;
    world.scans(manager, 1_000).await;
    let replica = world.ready_dispatcher().await;
    let goes_on = async |what: &str| {
        let before = receiver.count();
        eventually(what, SOON, async || receiver.count() > before + 20).await;
    };
    goes_on("the backlog is worked off").await;
    for (held, least, released) in [
        ("max_per_second = 3", 1, "max_per_second = NULL"),
        ("state = 'DISABLED'", 0, "state = 'ACTIVE'"),
    ] {
        let set = async |what: &str| {
            let sql = format!("UPDATE connections SET {what}");
            assert_eq!(world.database.run(&sql).await, 1);
        };
        set(held).await;
        // What was claimed before is still sent.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = receiver.count();
        tokio::time::sleep(Duration::from_secs(2)).await;
        let sent = receiver.count() - before;
        assert!((least..=9).contains(&sent), "{held}: {sent} in two seconds");
        set(released).await;
        goes_on(released).await;
    }
    assert!(receiver.count() < 1_000, "the backlog was long enough");
    replica.stop().await;
}

#[tokio::test]
async fn what_is_asked_for_again_while_it_is_sent_goes_at_once() {
    let world = World::new().await;
    let receiver = always(Answer::after(
        Duration::from_millis(700),
        Answer::Status(200),
    ))
    .await;
    let manager = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    world.scan_and_tell(manager, "kettle").await;
    eventually("its request is open", SOON, async || receiver.count() == 1).await;
    // As a replay does.
    let again =
        "UPDATE deliveries SET reopen_asked = true, reopen_time = now() WHERE state = 'IN_FLIGHT'";
    assert_eq!(world.database.run(again).await, 1);
    let begin = Instant::now();
    eventually("it goes again", SOON, async || receiver.count() == 2).await;
    // The request's time and a moment, where the sweep looks every five seconds.
    assert!(begin.elapsed() < Duration::from_secs(3));
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
}
