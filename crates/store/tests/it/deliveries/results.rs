//! Deliveries after a request, and leases of replicas that do not come back.

use std::{collections::HashSet, time::Duration};

use store::deliveries::Verdict;
use store::{deliveries, replicas};

use super::{each, living, result, sending};
use crate::support::{die, number, run};

#[tokio::test]
async fn results_change_the_state_of_deliveries() {
    let mut at = sending(4).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let verdicts = [
        (Verdict::Succeeded, "SUCCEEDED 1"),
        (Verdict::RetryIn(Duration::from_secs(60)), "RETRYING 1 due"),
        (Verdict::Exhausted, "EXHAUSTED 1"),
        (Verdict::Expired, "EXHAUSTED 1"),
    ];
    let results: Vec<_> = tasks
        .iter()
        .zip(verdicts)
        .map(|(task, (verdict, _))| result(task, verdict))
        .collect();
    let recorded = deliveries::record_results(&mut at.at.conn, replica, &each(&results))
        .await
        .unwrap();
    let all: HashSet<_> = tasks.iter().map(|task| task.delivery.delivery).collect();
    assert_eq!(recorded.moved, all);
    for (task, (_, row)) in tasks.iter().zip(verdicts) {
        assert_eq!(at.row(task.delivery).await, row);
    }
    let waits = "SELECT extract(epoch FROM next_attempt_time - update_time)::bigint AS number \
                 FROM deliveries WHERE state = 'RETRYING'";
    assert_eq!(number(&mut at.at.conn, waits).await, 60);
    let clean = "SELECT count(*) AS number FROM delivery_attempts \
                 WHERE response_body = 'binary' AND error = 'a stranger''s  words' AND latency_ms = 12";
    assert_eq!(number(&mut at.at.conn, clean).await, 4);

    let expired = "SELECT count(*) AS number FROM deliveries \
                   WHERE state = 'EXHAUSTED' AND last_error = 'expired'";
    assert_eq!(number(&mut at.at.conn, expired).await, 1);

    // Recorded again, as after a lost answer: nothing moves, and no attempt is duplicated.
    let again = deliveries::record_results(&mut at.at.conn, replica, &each(&results))
        .await
        .unwrap();
    assert!(again.moved.is_empty());
    assert_eq!(at.row(tasks[1].delivery).await, "RETRYING 1 due");
    assert_eq!(number(&mut at.at.conn, clean).await, 4);
    deliveries::record_results(&mut at.at.conn, replica, &[])
        .await
        .unwrap();

    run(
        &mut at.at.conn,
        "UPDATE deliveries SET next_attempt_time = now() WHERE state = 'RETRYING'",
    )
    .await;
    let again = at.claim(replica, 10).await;
    assert_eq!(
        (again.len(), again[0].delivery, again[0].attempt_count),
        (1, tasks[1].delivery, 1)
    );
    deliveries::hand_back(&mut at.at.conn, replica, &[again[0].delivery])
        .await
        .unwrap();
    assert_eq!(at.row(again[0].delivery).await, "RETRYING 1 due");
}

#[tokio::test]
async fn a_replica_that_lost_its_lease_changes_no_state() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let name = tasks[0].delivery;
    run(
        &mut at.at.conn,
        "UPDATE replicas SET heartbeat_time = now() - interval '5 seconds'",
    )
    .await;
    let other = living(&mut at.at.conn).await;
    let minute = Duration::from_secs(60);
    assert_eq!(
        deliveries::free_orphans(&mut at.at.conn, other, &[], minute, true)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(at.row(name).await, "PENDING 0 due");
    assert_eq!(at.claim(other, 10).await.len(), 1);

    let late = [result(&tasks[0], Verdict::Exhausted)];
    deliveries::record_results(&mut at.at.conn, replica, &each(&late))
        .await
        .unwrap();
    deliveries::hand_back(&mut at.at.conn, replica, &[name])
        .await
        .unwrap();
    assert_eq!(at.row(name).await, "IN_FLIGHT 0");
    let attempts = "SELECT count(*) AS number FROM delivery_attempts";
    assert_eq!(
        number(&mut at.at.conn, attempts).await,
        1,
        "it was made all the same"
    );
    deliveries::hand_back(&mut at.at.conn, other, &[name])
        .await
        .unwrap();
    assert_eq!(at.row(name).await, "PENDING 0 due");
}

#[tokio::test]
async fn a_lease_that_a_living_replica_forgot_is_released() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let in_hand = [tasks[0].delivery.delivery];
    let conn = &mut at.at.conn;
    let minute = Duration::from_secs(60);
    assert_eq!(
        deliveries::free_orphans(conn, replica, &in_hand, minute, true)
            .await
            .unwrap()
            .len(),
        0
    );
    let other = living(conn).await;
    // A busy machine may need longer than a heartbeat lasts until here.
    replicas::beat(conn, replica, "webhook-dispatcher")
        .await
        .unwrap();
    assert_eq!(
        deliveries::free_orphans(conn, other, &[], Duration::ZERO, true)
            .await
            .unwrap()
            .len(),
        0
    );
    let freed = deliveries::free_orphans(conn, replica, &in_hand, Duration::ZERO, false).await;
    assert_eq!(freed.unwrap().len(), 1);
    assert_eq!(at.row(tasks[0].delivery).await, "IN_FLIGHT 0");
    assert_eq!(at.row(tasks[1].delivery).await, "PENDING 0 due");
}

#[tokio::test]
async fn deliveries_are_not_taken_over_right_after_an_outage() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let tasks = at.claim(replica, 10).await;
    let in_hand = [tasks[0].delivery.delivery];
    let conn = &mut at.at.conn;
    let other = living(conn).await;
    // While the database was away, no replica could renew its heartbeat.
    run(
        conn,
        "UPDATE replicas SET heartbeat_time = now() - interval '30 seconds'",
    )
    .await;
    let minute = Duration::from_secs(60);
    for (who, take_over) in [(replica, true), (other, false)] {
        let freed = deliveries::free_orphans(conn, who, &in_hand, minute, take_over).await;
        assert_eq!(freed.unwrap().len(), 0, "may take over: {take_over}");
    }
    let freed = deliveries::free_orphans(conn, other, &[], minute, true).await;
    assert_eq!(freed.unwrap().len(), 2, "the holder is dead");
}

#[tokio::test]
async fn deliveries_that_dispatchers_die_with_are_spread_and_then_set_aside() {
    let mut at = sending(3).await;
    at.waiting("forum:1").await;
    let minute = Duration::from_secs(60);
    let due_in = "SELECT coalesce(round(max(extract(epoch FROM next_attempt_time - now()))), 0)::bigint AS number \
                  FROM deliveries";
    let mut waits = Vec::new();
    for crashes in 1..=4 {
        let replica = living(&mut at.at.conn).await;
        let tasks = at.claim(replica, 10).await;
        assert_eq!(tasks.len(), 3, "before crash {crashes}");
        let conn = &mut at.at.conn;
        die(conn, replica).await;
        let other = living(conn).await;
        let freed = deliveries::free_orphans(conn, other, &[], minute, true).await;
        assert!(freed.unwrap().iter().all(|one| one.crashes == crashes));
        waits.push(number(conn, due_in).await);
        run(conn, "UPDATE deliveries SET next_attempt_time = now()").await;
    }
    assert_eq!(waits[0], 0);
    assert!((2..=3).contains(&waits[1]), "one per second: {waits:?}");
    assert!((50..=120).contains(&waits[2]), "{waits:?}");
    assert!((230..=480).contains(&waits[3]), "{waits:?}");
    // An attempt that is recorded ends it.
    let replica = living(&mut at.at.conn).await;
    let tasks = at.claim(replica, 10).await;
    let failed = [result(&tasks[0], Verdict::RetryIn(Duration::ZERO))];
    deliveries::record_results(&mut at.at.conn, replica, &each(&failed))
        .await
        .unwrap();
    let innocent = "SELECT count(*) AS number FROM deliveries WHERE crash_count = 0";
    assert_eq!(number(&mut at.at.conn, innocent).await, 1);
}

/// If the holder dies or returns the delivery, a retry that was requested meanwhile is sent once, and not again
/// after the first success.
#[tokio::test]
async fn a_retry_requested_in_flight_is_sent_once() {
    for dies in [true, false] {
        let mut at = sending(1).await;
        at.waiting("forum:1").await;
        let replica = at.replica;
        let tasks = at.claim(replica, 1).await;
        let failed = [result(&tasks[0], Verdict::RetryIn(Duration::ZERO))];
        deliveries::record_results(&mut at.at.conn, replica, &each(&failed))
            .await
            .unwrap();
        let name = at.claim(replica, 1).await[0].delivery;
        let conn = &mut at.at.conn;
        let asked = deliveries::reopen(conn, name).await.unwrap().unwrap();
        assert_eq!(asked.state, domain::DeliveryState::InFlight);
        if dies {
            run(conn, "DELETE FROM replicas").await;
            let other = living(conn).await;
            let minute = Duration::from_secs(60);
            let freed = deliveries::free_orphans(conn, other, &[], minute, true).await;
            assert_eq!(freed.unwrap().len(), 1);
        } else {
            deliveries::hand_back(conn, replica, &[name]).await.unwrap();
        }
        assert_eq!(at.row(name).await, "PENDING 1 due", "dies: {dies}");
        let again = at.claim(replica, 1).await;
        assert_eq!((again[0].attempt_count, again[0].schedule_base), (1, 1));
        assert!(again[0].urgent);
        let sent = [result(&again[0], Verdict::Succeeded)];
        let recorded = deliveries::record_results(&mut at.at.conn, replica, &each(&sent))
            .await
            .unwrap();
        assert_eq!(at.row(name).await, "SUCCEEDED 2", "dies: {dies}");
        assert!(recorded.reopened.is_empty());
    }
}

/// A dispatcher died between a claim and the cancellation of the erased deliveries that it found.
#[tokio::test]
async fn deliveries_of_an_erased_post_are_cancelled_unless_in_flight() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    assert_eq!(at.claim(replica, 1).await.len(), 2);
    let conn = &mut at.at.conn;
    let ids = ["forum:1".to_owned()];
    assert_eq!(store::erasure::erase(conn, &ids).await.unwrap(), 1);
    let freed = deliveries::free_orphans(conn, replica, &[], Duration::ZERO, false).await;
    assert_eq!(freed.unwrap().len(), 2);
    let cancelled = "SELECT count(*) AS number FROM deliveries \
                     WHERE state = 'CANCELLED' AND last_error = 'post_deleted' AND leased_by IS NULL";
    assert_eq!(number(conn, cancelled).await, 2);
}

/// A lease that was lost with the answer to its commit, when the clock of the database went back.
#[tokio::test]
async fn a_forgotten_lease_of_a_former_clock_is_freed() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    assert_eq!(at.claim(replica, 1).await.len(), 1);
    let conn = &mut at.at.conn;
    let at_most = Duration::from_secs(15);
    for (ahead, freed) in [("0", 0), ("1 hour", 1)] {
        let sql = format!("UPDATE deliveries SET update_time = now() + interval '{ahead}'");
        run(conn, sql).await;
        let found = deliveries::free_orphans(conn, replica, &[], at_most, false).await;
        assert_eq!(found.unwrap().len(), freed, "{ahead}");
    }
}
