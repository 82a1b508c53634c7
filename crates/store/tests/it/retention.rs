//! Old data is removed, and nothing that is still needed.

use std::time::Duration;

use diesel_async::RunQueryDsl;
use domain::{Id, ManagerName, Timestamp};
use store::retention::{self, Dropped, Purge, Table, Unpartitioned};
use test_support::eventually;

use crate::{
    rows,
    support::{Start, number, run, start},
};

const DAY: Duration = Duration::from_secs(86_400);
const OLD: &str =
    "date_trunc('week', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '60 days'";

/// Deliveries and Scans of the last half hour, and as many that are about 60 days old.
async fn world(state: &str) -> Start {
    let mut at = start().await;
    for table in ["posts", "scans", "deliveries", "delivery_attempts"] {
        rows::partition(&mut at.conn, table, OLD).await;
    }
    let connection = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    let manager = ManagerName {
        namespace: at.fixture.namespace,
        manager: Id::generate(),
    };
    rows::deliveries(
        &mut at.conn,
        connection,
        manager,
        30,
        OLD,
        "1 minute",
        state,
    )
    .await;
    rows::deliveries(
        &mut at.conn,
        connection,
        manager,
        30,
        "now()",
        "1 minute",
        state,
    )
    .await;
    at
}

#[tokio::test]
async fn a_partition_past_its_time_is_dropped() {
    let mut world = world("'SUCCEEDED'").await;
    let conn = &mut world.conn;
    for table in [Table::Deliveries, Table::DeliveryAttempts, Table::Scans] {
        let none = retention::older_than(conn, table, 90 * DAY, Timestamp::now())
            .await
            .unwrap();
        assert_eq!(none, [], "{table:?}");
        let old = retention::older_than(conn, table, 30 * DAY, Timestamp::now())
            .await
            .unwrap();
        assert_eq!(old.len(), 1, "{table:?}");
        assert!(old[0].name.starts_with(table.as_str()) && old[0].start < old[0].end);
        let dropped = retention::drop_partition(conn, &old[0]).await.unwrap();
        assert_eq!(dropped, Dropped::Dropped);
        let again = retention::drop_partition(conn, &old[0]).await;
        assert!(matches!(again, Ok(Dropped::Gone) | Err(_)));
        let left = retention::older_than(conn, table, 30 * DAY, Timestamp::now())
            .await
            .unwrap();
        assert_eq!(left, []);
    }
    assert_eq!(world.database.count("deliveries").await, 30);
    assert_eq!(world.database.count("scans").await, 30);
}

#[tokio::test]
async fn nothing_is_old_by_one_wrong_clock_alone() {
    let mut world = world("'SUCCEEDED'").await;
    let conn = &mut world.conn;
    let now = Timestamp::now();
    // To this process the database is 100 days ahead.
    for (own, old) in [
        (now.minus(100 * DAY), 0),
        (now, 1),
        (now.plus(100 * DAY), 1),
    ] {
        let earlier = retention::earlier_now(conn, own).await.unwrap();
        let found = retention::older_than(conn, Table::Scans, 30 * DAY, earlier);
        assert_eq!(found.await.unwrap().len(), old, "{own}");
    }
}

#[tokio::test]
async fn a_partition_with_unfinished_deliveries_is_kept() {
    for state in ["'PENDING'", "'RETRYING'", "'IN_FLIGHT'"] {
        let state = format!("CASE WHEN n = 7 THEN {state} ELSE 'SUCCEEDED' END");
        let mut world = world(&state).await;
        let conn = &mut world.conn;
        let old = retention::older_than(conn, Table::Deliveries, 30 * DAY, Timestamp::now())
            .await
            .unwrap();
        let dropped = retention::drop_partition(conn, &old[0]).await.unwrap();
        assert_eq!(dropped, Dropped::InUse, "{state}");
        let given_up = retention::exhaust_expired(conn, old[0].end, 100)
            .await
            .unwrap();
        // A delivery that a dispatcher is sending stays with it.
        let expected = usize::from(!state.contains("IN_FLIGHT"));
        assert_eq!(given_up, expected);
        assert_eq!(
            retention::exhaust_expired(conn, old[0].end, 100)
                .await
                .unwrap(),
            0
        );
        let expired = "deliveries WHERE state = 'EXHAUSTED' AND last_error = 'expired'";
        assert_eq!(
            world.database.count(expired).await,
            i64::try_from(expected).unwrap()
        );
        let dropped = retention::drop_partition(&mut world.conn, &old[0])
            .await
            .unwrap();
        let now = if expected == 1 {
            Dropped::Dropped
        } else {
            Dropped::InUse
        };
        assert_eq!(dropped, now);
    }
    let mut world = world("'SUCCEEDED'").await;
    run(&mut world.conn, "UPDATE scans SET fanned_out = false").await;
    let old = retention::older_than(&mut world.conn, Table::Scans, 30 * DAY, Timestamp::now())
        .await
        .unwrap();
    let dropped = retention::drop_partition(&mut world.conn, &old[0])
        .await
        .unwrap();
    assert_eq!(dropped, Dropped::InUse);
}

#[tokio::test]
async fn a_post_is_kept_as_long_as_its_scans() {
    let mut world = world("'SUCCEEDED'").await;
    let conn = &mut world.conn;
    let old = retention::older_than(conn, Table::Posts, 30 * DAY, Timestamp::now())
        .await
        .unwrap();
    assert_eq!(
        retention::drop_partition(conn, &old[0]).await.unwrap(),
        Dropped::InUse
    );
    run(conn, format!("DELETE FROM scans WHERE create_time < {OLD}")).await;
    assert_eq!(
        retention::drop_partition(conn, &old[0]).await.unwrap(),
        Dropped::Dropped
    );
}

#[tokio::test]
async fn dropping_a_partition_does_not_block_others() {
    let mut world = world("'SUCCEEDED'").await;
    let reading = world.database.begin(&["SELECT FROM deliveries"]).await;
    let old = retention::older_than(
        &mut world.conn,
        Table::Deliveries,
        30 * DAY,
        Timestamp::now(),
    )
    .await
    .unwrap();
    let dropped = retention::drop_partition(&mut world.conn, &old[0])
        .await
        .unwrap();
    assert_eq!(dropped, Dropped::Busy);
    drop(reading);
    eventually("it is dropped", async || {
        let dropped = retention::drop_partition(&mut world.conn, &old[0]).await;
        dropped.unwrap() == Dropped::Dropped
    })
    .await;
}

#[tokio::test]
async fn a_recreated_week_is_not_dropped() {
    let mut world = world("'SUCCEEDED'").await;
    for table in [Table::Deliveries, Table::Scans] {
        let old = retention::older_than(&mut world.conn, table, DAY, Timestamp::now())
            .await
            .unwrap();
        assert_eq!(old.len(), 1, "that of 60 days ago alone: {old:?}");
    }
}

#[tokio::test]
async fn keys_are_purged_in_batches() {
    let mut world = world("'SUCCEEDED'").await;
    let conn = &mut world.conn;
    let times = format!("(CASE WHEN n % 2 = 0 THEN now() ELSE {OLD} END)");
    run(
        conn,
        format!(
            "INSERT INTO scan_keys SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), {times} \
             FROM generate_series(1, 40000) AS n"
        ),
    )
    .await;
    run(
        conn,
        format!("INSERT INTO post_keys SELECT gen_random_uuid(), test_id({times}) FROM generate_series(1, 40000) AS n"),
    )
    .await;
    let old = retention::older_than(conn, Table::Scans, 30 * DAY, Timestamp::now())
        .await
        .unwrap();
    let before = old[0].end;
    for table in [Unpartitioned::ScanKeys, Unpartitioned::PostKeys] {
        let mut purge = Purge::new(table, before);
        let mut batches = Vec::new();
        while batches.last() != Some(&0) {
            batches.push(purge.delete(conn, 8_000).await.unwrap());
        }
        assert_eq!(batches, [8_000, 8_000, 4_000, 0], "{table:?}");
    }
    assert_eq!(world.database.count("scan_keys").await, 20_000);
    assert_eq!(world.database.count("post_keys").await, 20_000);
}

#[tokio::test]
async fn a_purge_reads_only_old_rows() {
    let mut world = world("'SUCCEEDED'").await;
    let conn = &mut world.conn;
    for (table, values) in [
        (
            Unpartitioned::ScanKeys,
            "scan_keys SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), time",
        ),
        (
            Unpartitioned::PostKeys,
            "post_keys SELECT gen_random_uuid(), test_id(time)",
        ),
        (
            Unpartitioned::ScanLikes,
            "scan_likes (namespace_id, manager_id, key, scan_id, create_time) \
             SELECT gen_random_uuid(), gen_random_uuid(), 1, gen_random_uuid(), time",
        ),
        (
            Unpartitioned::AuditEvents,
            "audit_events (account_id, id, create_time, action, resource, fields, actor_type) \
             SELECT (SELECT id FROM accounts LIMIT 1), gen_random_uuid(), time, 'CREATE', 'a', '{}', 'OPERATOR'",
        ),
    ] {
        let name = values.split(' ').next().unwrap();
        let insert = format!(
            "INSERT INTO {values} FROM generate_series(1, 30000) AS n, LATERAL (SELECT now() + n * interval '1 second' \
             - CASE WHEN n % 25 = 0 THEN interval '60 days' ELSE interval '1 day' END) AS t (time)"
        );
        run(conn, insert).await;
        run(conn, format!("VACUUM ANALYZE {name}")).await;
        run(conn, "BEGIN").await;
        let before = Timestamp::now().minus(30 * DAY).to_chrono();
        let mut purge = Purge::new(table, before);
        let mut deleted = 0;
        loop {
            let count = purge.delete(conn, 500).await.unwrap();
            deleted += count;
            if count == 0 {
                break;
            }
        }
        let read = number(
            conn,
            &format!(
                "SELECT pg_stat_get_xact_tuples_returned('{name}'::regclass) \
                     + pg_stat_get_xact_tuples_fetched('{name}'::regclass) AS number"
            ),
        )
        .await;
        run(conn, "ROLLBACK").await;
        assert_eq!(deleted, 1_200, "{name}");
        assert!(read < 1_250, "{name}: {read} rows were read");
    }
}

#[tokio::test]
async fn retention_runs_in_one_replica_at_a_time() {
    let world = world("'SUCCEEDED'").await;
    let mut one = world.database.connect().await;
    let mut other = world.database.connect().await;
    assert!(retention::begin_turn(&mut one).await.unwrap());
    assert!(!retention::begin_turn(&mut other).await.unwrap());
    retention::end_turn(&mut one).await.unwrap();
    assert!(retention::begin_turn(&mut other).await.unwrap());
    // State that a process which died in between leaves behind.
    drop(other);
    eventually("the turn is free", async || {
        retention::begin_turn(&mut one).await.unwrap()
    })
    .await;
}

#[tokio::test]
async fn a_post_partition_is_checked_without_reading_the_scans_that_stay() {
    let mut at = start().await;
    let manager = Id::generate().to_uuid();
    run(
        &mut at.conn,
        &format!(
            "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, \
             value, matched, fanned_out) \
             SELECT '{}', '{manager}', gen_random_uuid(), time, time, gen_random_uuid(), time, true, '[]', true \
             FROM generate_series(1, 60000) AS n, LATERAL (SELECT now() - n * interval '1 millisecond') AS t (time)",
            at.fixture.namespace.to_uuid()
        ),
    )
    .await;
    run(&mut at.conn, "VACUUM ANALYZE scans").await;
    #[derive(diesel::QueryableByName)]
    struct Line {
        #[diesel(sql_type = diesel::sql_types::Text, column_name = "QUERY PLAN")]
        line: String,
    }
    let plan: Vec<Line> = diesel::sql_query(
        "EXPLAIN ANALYZE SELECT EXISTS (SELECT FROM scans WHERE post_receive_time >= now() - interval '90 days' \
         AND post_receive_time < now() - interval '83 days')",
    )
    .load(&mut at.conn)
    .await
    .unwrap();
    let plan: Vec<String> = plan.into_iter().map(|line| line.line).collect();
    let plan = plan.join("\n");
    assert!(plan.contains("Bitmap Index Scan on scans_"), "{plan}");
    let removed = "Rows Removed by Index Recheck: ";
    let read = plan
        .lines()
        .find_map(|line| line.trim().strip_prefix(removed));
    let read: u32 = read.map_or(0, |count| count.parse().unwrap());
    assert!(read < 6_000, "a tenth of the Scans at most\n{plan}");
}
