use std::time::Duration;

use domain::{FeedName, Reach, Timestamp};
use store::{backfills, waiting};
use test_support::{instructions, post};

use crate::support::{record, run, start};

#[tokio::test]
async fn oldest_work_of_each_kind_is_reported() {
    let mut at = start().await;
    let manager = at
        .fixture
        .applied_manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    let conn = &mut at.conn;
    let hours = async |conn: &mut store::AsyncPgConnection| {
        let oldest = waiting::oldest(conn).await.unwrap();
        let hours = oldest
            .into_iter()
            .map(|one| (one.kind, (one.seconds / 3_600.0).round()));
        hours.collect::<Vec<_>>()
    };
    let expected = |scan, backfill, purge| {
        [("scan", scan), ("backfill", backfill), ("purge", purge)]
            .map(|(kind, hours)| (kind.to_owned(), hours))
    };
    run(conn, "DELETE FROM backfills").await;
    run(conn, "DELETE FROM look_backs").await;
    assert_eq!(hours(conn).await, expected(0.0, 0.0, 0.0));

    record(conn, manager, &[post("a:1", "Rust"), post("a:2", "Rust")]).await;
    run(
        conn,
        "UPDATE scans SET create_time = create_time - interval '1 hour'",
    )
    .await;
    run(
        conn,
        "INSERT INTO look_backs (feed, notify, since, create_time) \
         VALUES ('a:b', false, now(), now() - interval '2 hours'), ('a:c', false, now(), now())",
    )
    .await;
    run(
        conn,
        "INSERT INTO purges (namespace_id, create_time) VALUES (gen_random_uuid(), now() - interval '3 hours')",
    )
    .await;
    assert_eq!(hours(conn).await, expected(1.0, 2.0, 3.0));

    // Set aside, and waiting for a quota.
    run(
        conn,
        "INSERT INTO leases (kind, key, next_time) \
         SELECT 'fan_out', id::text, now() + interval '15 minutes' FROM scans",
    )
    .await;
    let (start, window) = (
        Timestamp::now().minus(Duration::from_hours(24)),
        Duration::ZERO,
    );
    let reach = |_: &FeedName| Reach::Time(Duration::MAX);
    let asked = backfills::request(conn, manager, start, false, window, reach);
    assert_eq!(asked.await.unwrap().len(), 1);
    run(
        conn,
        "UPDATE backfills SET create_time = now() - interval '9 hours', catch_up_since = now()",
    )
    .await;
    assert_eq!(hours(conn).await, expected(0.0, 2.0, 3.0));
    run(conn, "UPDATE backfills SET catch_up_since = NULL").await;
    assert_eq!(hours(conn).await, expected(0.0, 9.0, 3.0));
    run(conn, "DELETE FROM backfills").await;
    run(conn, "DELETE FROM leases").await;

    run(conn, "UPDATE scans SET fanned_out = true").await;
    run(conn, "DELETE FROM look_backs").await;
    run(
        conn,
        "DELETE FROM purges WHERE create_time < now() - interval '1 hour'",
    )
    .await;
    assert_eq!(hours(conn).await, expected(0.0, 0.0, 0.0));
}
