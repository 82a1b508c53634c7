//! Waiting deliveries are claimed by Connection, in fair order, by one replica.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use store::deliveries::Want;
use store::seal::Sealer;
use store::{AsyncConnection, deliveries, lanes};
use test_support::post;

use super::{claim, living, rows_read, sending};
use crate::{
    rows,
    support::{number, record, run},
};

#[tokio::test]
async fn each_connection_gets_as_much_as_it_may_have_the_longest_due_first() {
    let mut at = sending(2).await;
    let mut scans = Vec::new();
    for n in 0..6 {
        scans.push(at.waiting(&format!("forum:{n}")).await);
    }
    // Older Scans are due later here.
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
        .map(|task| task.scan)
        .collect();
    assert_eq!(claimed, [scans[4], scans[3], scans[2]]);
    assert_eq!(at.claim(replica, 9).await.len(), 4);
    for wait in at.settled().await {
        assert!(wait.unwrap() > Duration::from_secs(3_500), "{wait:?}");
    }
    let wait = lanes::next_due(&mut at.at.conn).await.unwrap().unwrap();
    assert!(wait > Duration::from_secs(3_500), "{wait:?}");
}

#[tokio::test]
async fn a_claim_reads_what_it_takes_however_much_waits() {
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
        // After some the planner takes one plan for all.
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

/// In a new week nothing is known of a partition, and the planner thinks that a Manager has few Scans.
#[tokio::test]
async fn a_claim_finds_scans_by_their_keys_in_partitions_of_which_nothing_is_known() {
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
async fn one_accounts_thousands_hide_no_others_one() {
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
async fn a_hint_that_was_moved_on_while_something_came_is_set_again() {
    let mut at = sending(1).await;
    at.waiting("forum:1").await;
    let names = at.connections.clone();
    lanes::note_due(&mut at.at.conn, &names).await.unwrap();
    let replica = at.replica;
    assert_eq!(at.claim(replica, 1).await.len(), 1);
    // Another is about to move the hint on, having seen nothing.
    let settling = at
        .at
        .database
        .begin(&["UPDATE connection_lanes SET next_due_time = NULL"])
        .await;
    at.waiting("forum:2").await;
    let pool = at.at.database.pool();
    let noting = tokio::spawn(async move {
        lanes::note_due(&mut pool.get().await.unwrap(), &names)
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
