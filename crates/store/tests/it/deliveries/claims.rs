//! Waiting deliveries are claimed by Connection, in fair order, by one replica.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use domain::{ConnectionName, Id, Timestamp};
use store::seal::Sealer;
use store::{AsyncConnection, deliveries, lanes};
use store::{deliveries::Want, fair::Round};
use test_support::{instructions, post};

use super::{Sending, claim, living, rows_read, sending};
use crate::{
    rows,
    support::{number, record, run},
};

#[tokio::test]
async fn each_connection_gets_its_capacity_longest_due_first() {
    let mut at = sending(2).await;
    let mut scans = Vec::new();
    for n in 0..6 {
        scans.push(at.waiting(&format!("forum:{n}")).await);
    }
    // Here, older Scans are due later.
    run(
        &mut at.at.conn,
        "UPDATE deliveries SET next_attempt_time = now() - (create_time - now() + interval '1 hour')",
    )
    .await;
    run(
        &mut at.at.conn,
        format!(
            "UPDATE deliveries SET next_attempt_time = now() + interval '1 hour' WHERE scan_id = '{}'",
            scans[5].scan.to_uuid()
        ),
    )
    .await;
    let replica = at.replica;
    let first = at.connections[0];
    let claimed = at.claim(replica, 3).await;
    assert_eq!(claimed.len(), 6);
    let claimed: Vec<_> = claimed
        .iter()
        .filter(|task| task.delivery.connection_name() == first)
        .filter_map(|task| task.scan())
        .collect();
    assert_eq!(claimed, [scans[4], scans[3], scans[2]]);
    assert_eq!(at.claim(replica, 9).await.len(), 4);
    for wait in at.settled().await {
        assert!(wait.unwrap() > Duration::from_secs(3_500), "{wait:?}");
    }
    let wait = lanes::next_due(&mut at.at.conn).await.unwrap().unwrap();
    assert!(wait > Duration::from_secs(3_500), "{wait:?}");
}

/// The delay of a first delivery is measured only on those.
#[tokio::test]
async fn a_claimed_delivery_shows_whether_it_was_reopened() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let replica = at.replica;
    let first = at.claim(replica, 1).await.remove(0);
    assert_eq!(first.reopen_time, None);
    let conn = &mut at.at.conn;
    deliveries::hand_back(conn, replica, &[first.delivery])
        .await
        .unwrap();
    deliveries::reopen(conn, first.delivery)
        .await
        .unwrap()
        .unwrap();
    let second = at.claim(replica, 1).await.remove(0);
    assert_eq!(second.delivery, first.delivery);
    assert!(second.reopen_time.is_some());
}

#[tokio::test]
async fn a_claim_reads_only_the_rows_that_it_takes() {
    let mut at = sending(1).await;
    let (connection, manager, replica) = (at.connections[0], at.manager, at.replica);
    let conn = &mut at.at.conn;
    rows::deliveries(
        conn,
        connection,
        manager,
        20_000,
        "now()",
        "1 millisecond",
        "'PENDING'",
    )
    .await;
    run(conn, "UPDATE deliveries SET next_attempt_time = now()").await;
    run(conn, "VACUUM ANALYZE deliveries").await;
    let (sealer, want) = (
        &at.at.fixture.sealer,
        Want {
            connection,
            count: 5,
        },
    );
    let read = conn.transaction(async |conn| {
        let before = rows_read(conn, "deliveries").await;
        // After several executions the planner switches to a generic plan.
        for _ in 0..8 {
            deliveries::claim(conn, sealer, replica, &[want]).await?;
        }
        Ok::<_, store::Error>(rows_read(conn, "deliveries").await - before)
    });
    let read = read.await.unwrap();
    let leased = "SELECT count(*) AS number FROM deliveries WHERE state = 'IN_FLIGHT'";
    assert_eq!(number(conn, leased).await, 40);
    assert!(read < 2_000, "{read} rows were read for 40");
}

/// In a new week a partition has no statistics, and the planner assumes that a Manager has few Scans.
#[tokio::test]
async fn a_claim_finds_scans_by_key_in_partitions_without_statistics() {
    let mut at = sending(1).await;
    let posts: Vec<_> = (0..2_000)
        .map(|n| post(&format!("forum:{n}"), "t"))
        .collect();
    let scans = record(&mut at.at.conn, at.manager, &posts).await;
    at.fan_out_all(&scans).await;
    let (connection, replica) = (at.connections[0], at.replica);
    let (conn, sealer) = (&mut at.at.conn, &at.at.fixture.sealer);
    let count = 100;
    let read = conn.transaction(async |conn| {
        let before = rows_read(conn, "scans").await + rows_read(conn, "posts").await;
        let want = Want { connection, count };
        let claimed = deliveries::claim(conn, sealer, replica, &[want]).await?;
        assert_eq!(claimed.len(), 100);
        let after = rows_read(conn, "scans").await + rows_read(conn, "posts").await;
        Ok::<_, store::Error>(after - before)
    });
    let read = read.await.unwrap();
    assert!(
        (200..1_000).contains(&read),
        "{read} rows were read for 100"
    );
}

#[tokio::test]
async fn thousands_of_deliveries_of_one_account_do_not_hide_those_of_another() {
    let mut at = sending(1).await;
    run(
        &mut at.at.conn,
        "INSERT INTO connections (namespace_id, id, nickname, url, method, headers_sealed, create_time, update_time) \
         SELECT namespace_id, gen_random_uuid(), 'n', url, method, headers_sealed, create_time, update_time \
         FROM connections, generate_series(1, 200)",
    )
    .await;
    run(
        &mut at.at.conn,
        "UPDATE connection_lanes SET next_due_time = now() - interval '1 hour'",
    )
    .await;
    let lone = "UPDATE connection_lanes SET account_id = 'ffffffff-0000-0000-0000-000000000000', \
                next_due_time = now() WHERE connection_id IN (SELECT connection_id FROM connection_lanes LIMIT 1)";
    run(&mut at.at.conn, lone).await;
    let due = lanes::due(&mut at.at.conn, &[], 10).await.unwrap();
    assert_eq!(due.len(), 11);
}

#[tokio::test]
async fn a_due_time_that_misses_a_new_delivery_is_set_again() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let names = at.connections.clone();
    lanes::mark_due(&mut at.at.conn, &names).await.unwrap();
    let replica = at.replica;
    assert_eq!(at.claim(replica, 1).await.len(), 1);
    // Another replica is about to move the hint, because it found nothing.
    let settling = at
        .at
        .database
        .begin(&["UPDATE connection_lanes SET next_due_time = NULL"])
        .await;
    at.waiting("forum:2").await;
    let pool = at.at.database.pool();
    let noting = tokio::spawn(async move {
        lanes::mark_due(&mut pool.get().await.unwrap(), &names)
            .await
            .unwrap();
    });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut settling = settling;
    run(&mut settling, "COMMIT").await;
    noting.await.unwrap();
    assert_eq!(at.due().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_never_claim_the_same_delivery() {
    let mut at = sending(2).await;
    let posts: Vec<_> = (0..60).map(|n| post(&format!("forum:{n}"), "t")).collect();
    for scan in record(&mut at.at.conn, at.manager, &posts).await {
        at.fan_out(scan, &[]).await;
    }
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (pool, sealer) = (at.at.database.pool(), at.at.fixture.sealer.clone());
            let names = at.connections.clone();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                let replica = living(&mut conn).await;
                let mut claimed = Vec::new();
                for _ in 0..30 {
                    let more = claim(&mut conn, &sealer, replica, &names, 7).await;
                    assert!(more.len() <= 14);
                    claimed.extend(more.into_iter().map(|task| task.delivery));
                }
                claimed
            })
        })
        .collect();
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!((distinct.len(), all.len()), (120, 120));
}

#[tokio::test]
async fn one_unreadable_secret_does_not_stop_the_others() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let broken = at.connections[0];
    let stranger = Sealer::new([("other".to_owned(), [1; 32])]).unwrap();
    let sealed = stranger.seal(b"{}", &broken.to_string());
    let hex: String = sealed.iter().map(|byte| format!("{byte:02x}")).collect();
    let sql = format!(
        "UPDATE connections SET headers_sealed = decode('{hex}', 'hex') WHERE id = '{}'",
        broken.connection.to_uuid()
    );
    run(&mut at.at.conn, sql).await;
    let (replica, sealer) = (at.replica, at.at.fixture.sealer.clone());
    let wants: Vec<Want> = at
        .connections
        .iter()
        .map(|connection| Want {
            connection: *connection,
            count: 10,
        })
        .collect();
    let claimed = deliveries::claim(&mut at.at.conn, &sealer, replica, &wants)
        .await
        .unwrap();
    let sent: HashSet<_> = claimed
        .iter()
        .flatten()
        .map(|task| task.delivery.connection_name())
        .collect();
    assert_eq!((claimed.len(), sent), (2, [at.connections[1]].into()));
}

/// The Connection may have been disabled for longer than the maximum age, and its circuit breaker may open at the
/// first tries.
#[tokio::test]
async fn the_maximum_age_counts_from_the_last_change_of_the_connection() {
    let mut at = sending(1).await;
    let (connection, manager) = (at.connections[0], at.manager);
    let conn = &mut at.at.conn;
    rows::deliveries(
        conn,
        connection,
        manager,
        3,
        "now() - interval '2 hours'",
        "1 second",
        "'PENDING'",
    )
    .await;
    run(
        conn,
        "UPDATE connection_lanes SET open_until = now() + interval '1 minute'",
    )
    .await;
    let (kept, max_age) = (Duration::from_secs(86_400), Duration::from_secs(3_600));
    for (changed, expired) in [("30 minutes", 0), ("61 minutes", 3)] {
        let sql = format!("UPDATE connections SET update_time = now() - interval '{changed}'");
        run(conn, sql).await;
        let now = Timestamp::now();
        let count = deliveries::expire(conn, kept, max_age, 10, now).await;
        assert_eq!(count.unwrap(), expired, "changed {changed} ago");
    }
}

#[tokio::test]
async fn nothing_waits_for_as_long_as_the_clock_went_back() {
    let mut at = sending(2).await;
    at.waiting("forum:1").await;
    let [due, later] = [0, 1].map(|n| at.connections[n].connection.to_uuid());
    // Written by a clock that was an hour ahead.
    let conn = &mut at.at.conn;
    for (connection, wait) in [(due, 0), (later, 10)] {
        run(
            conn,
            format!(
                "UPDATE deliveries SET update_time = now() + interval '1 hour', \
                     next_attempt_time = now() + interval '1 hour' + {wait} * interval '1 minute' \
                 WHERE connection_id = '{connection}'"
            ),
        )
        .await;
    }
    run(
        conn,
        "UPDATE connection_lanes SET next_due_time = now() + interval '1 hour', \
             rate_time = now() + interval '1 hour', open_until = now() + interval '1 hour'",
    )
    .await;
    assert_eq!(at.due().await, BTreeSet::new());

    let conn = &mut at.at.conn;
    assert_eq!(deliveries::follow_clock(conn, 100).await.unwrap(), 2);
    assert_eq!(lanes::follow_clock(conn).await.unwrap(), 2);

    for expected in [
        format!("deliveries WHERE connection_id = '{due}' AND next_attempt_time <= now()"),
        format!(
            "deliveries WHERE connection_id = '{later}' AND next_attempt_time \
             BETWEEN now() + interval '9 minutes' AND now() + interval '11 minutes'"
        ),
    ] {
        let count = format!("SELECT count(*) AS number FROM {expected}");
        assert_eq!(number(conn, &count).await, 1, "{expected}");
    }
    let free = "SELECT count(*) AS number FROM connection_lanes \
        WHERE rate_time IS NULL AND open_until <= now() AND next_due_time <= now()";
    assert_eq!(number(conn, free).await, 2);
    assert_eq!(deliveries::follow_clock(conn, 100).await.unwrap(), 0);
    assert_eq!(lanes::follow_clock(conn).await.unwrap(), 0);
}

#[tokio::test]
async fn chat_service_has_a_pace_and_discord_keeps_it() {
    let mut at = sending(1).await;
    lanes::mark_due(&mut at.at.conn, &at.connections)
        .await
        .unwrap();
    for (format, per_second, expected) in [
        ("EARSHOT", "NULL", None),
        ("SLACK", "NULL", Some(60)),
        ("TEAMS", "NULL", Some(240)),
        ("DISCORD", "NULL", Some(28)),
        ("DISCORD", "1", Some(28)),
        ("SLACK", "10000", Some(600_000)),
        ("EARSHOT", "1", Some(60)),
    ] {
        let set =
            format!("UPDATE connections SET format = '{format}', max_per_second = {per_second}");
        run(&mut at.at.conn, set).await;
        let due = lanes::due(&mut at.at.conn, &[], 10).await.unwrap();
        let restrained: Vec<_> = due.iter().map(|due| due.restrained).collect();
        assert_eq!(restrained, [expected.is_some()], "{format}");
        let locked = lanes::lock_due(&mut at.at.conn, &at.connections).await;
        assert_eq!(
            locked.unwrap()[0].per_minute,
            expected,
            "{format} {per_second}"
        );
    }
}

/// Creates a Connection of another account with one waiting delivery.
async fn waiting_of_another_account(at: &mut Sending) -> (ConnectionName, Id) {
    let conn = &mut at.at.conn;
    let fixture = at.at.fixture.beside(conn, "other").await;
    let url = "https://other.example/";
    let connection = fixture.connection(conn, url).await;
    let manager = fixture
        .manager(conn, &instructions("a"), &[connection])
        .await;
    let scans = record(conn, manager, &[post("forum:0", "t")]).await;
    at.fan_out_all(&scans).await;
    (connection, fixture.account)
}

#[tokio::test]
async fn accounts_share_the_capacity_for_requested_deliveries() {
    let mut at = sending(6).await;
    for n in 0..3 {
        at.waiting(&format!("forum:{n}")).await;
    }
    let large = at.at.fixture.account;
    let (connection, small) = waiting_of_another_account(&mut at).await;
    let (conn, sealer, replica) = (&mut at.at.conn, &at.at.fixture.sealer, at.replica);
    run(conn, "UPDATE deliveries SET urgent = true").await;

    let claimed =
        deliveries::claim_urgent(conn, sealer, replica, 4, &[], &mut Round::default()).await;
    let claimed: Vec<_> = claimed.unwrap().into_iter().map(Result::unwrap).collect();
    let held: Vec<_> = claimed
        .iter()
        .map(|task| (task.delivery.connection_name(), task.account))
        .collect();
    let of_large = held.iter().filter(|(_, account)| *account == large);
    assert_eq!((held.len(), of_large.count()), (3, 2));
    assert!(held.contains(&(connection, small)));
    // One place is free, which each of them must leave to an account that holds none.
    let more =
        deliveries::claim_urgent(conn, sealer, replica, 4, &held, &mut Round::default()).await;
    assert_eq!(more.unwrap().len(), 0);
    let more =
        deliveries::claim_urgent(conn, sealer, replica, 4, &held[..1], &mut Round::default()).await;
    assert_eq!(more.unwrap().len(), 1);
    let more =
        deliveries::claim_urgent(conn, sealer, replica, 3, &held, &mut Round::default()).await;
    assert_eq!(more.unwrap().len(), 0);
}

/// Thousands of requested deliveries of an account that has its share are skipped in one query.
#[tokio::test]
async fn requested_deliveries_of_one_account_hide_those_of_no_other() {
    let mut at = sending(40).await;
    let scans: Vec<_> = (0..40).map(|n| post(&format!("forum:{n}"), "t")).collect();
    let scans = record(&mut at.at.conn, at.manager, &scans).await;
    at.fan_out_all(&scans).await;
    let (connection, _) = waiting_of_another_account(&mut at).await;
    let (conn, sealer, replica) = (&mut at.at.conn, &at.at.fixture.sealer, at.replica);
    run(conn, "UPDATE deliveries SET urgent = true").await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let claimed =
            deliveries::claim_urgent(conn, sealer, replica, 8, &held, &mut Round::default()).await;
        let claimed = claimed.unwrap().into_iter().map(Result::unwrap);
        held.extend(claimed.map(|task| (task.delivery.connection_name(), task.account)));
    }
    let of_other = held.iter().filter(|(one, _)| *one == connection).count();
    assert_eq!((held.len(), of_other), (5, 1));
}

/// If the endpoints of an account answer at once, its deliveries end before the next query, so it never holds its
/// share.
#[tokio::test]
async fn requested_deliveries_that_succeed_at_once_hide_those_of_no_other() {
    let mut at = sending(6).await;
    let scans: Vec<_> = (0..300).map(|n| post(&format!("forum:{n}"), "t")).collect();
    let scans = record(&mut at.at.conn, at.manager, &scans).await;
    at.fan_out_all(&scans).await;
    let (connection, _) = waiting_of_another_account(&mut at).await;
    let (conn, sealer, replica) = (&mut at.at.conn, &at.at.fixture.sealer, at.replica);
    run(conn, "UPDATE deliveries SET urgent = true").await;
    let mut round = Round::default();
    let mut connections = Vec::new();
    for _ in 0..2 {
        let claimed = deliveries::claim_urgent(conn, sealer, replica, 8, &[], &mut round).await;
        let claimed = claimed.unwrap().into_iter().map(Result::unwrap);
        connections.push(
            claimed
                .map(|task| task.delivery.connection_name())
                .collect::<Vec<_>>(),
        );
    }
    assert!(!connections[0].contains(&connection));
    assert_eq!(connections[1], [connection]);
}
