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
    run(
        conn,
        "INSERT INTO service_events (namespace_id, event_type, name, details, create_time) \
         SELECT gen_random_uuid(), 'COVERAGE_GAP', 'a', '{}', now() - n * interval '1 hour' \
         FROM unnest(ARRAY[4, 1]) AS n",
    )
    .await;
    let expected = |scan, backfill, purge| {
        [
            ("scan", scan),
            ("backfill", backfill),
            ("purge", purge),
            ("service_event", 4.0),
            ("digest", 0.0),
        ]
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

#[tokio::test]
async fn digest_waits_from_the_end_of_its_period() {
    let mut at = start().await;
    let conn = &mut at.conn;
    let name = at.fixture.connection(conn, "mailto:ada@example.com").await;
    run(
        conn,
        format!(
            "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time) \
             SELECT namespace_id, id, gen_random_uuid(), gen_random_uuid(), now() FROM connections WHERE id = '{}'",
            name.connection.to_uuid()
        ),
    )
    .await;
    let seconds = async |conn: &mut store::AsyncPgConnection| {
        let oldest = waiting::oldest(conn).await.unwrap();
        let digest = oldest.into_iter().find(|one| one.kind == "digest");
        digest.unwrap().seconds
    };
    // A Connection that was not changed since.
    run(conn, "UPDATE connections SET update_time = '2020-01-01'").await;
    let zone = "Asia/Kolkata";
    let begin = |unit: &str| format!("date_trunc('{unit}', now(), '{zone}')");
    // The period of its Scan is still to end, was the last one, or ended two before that.
    for (digest, unit, hours) in [("HOURLY", "hour", 1), ("DAILY", "day", 24)] {
        for (periods, least) in [(-1, 0), (1, 0), (3, 2 * hours)] {
            let begin = begin(unit);
            run(
                conn,
                format!(
                    "UPDATE digest_scans SET create_time = {begin} - {} * interval '1 hour'",
                    periods * hours
                ),
            )
            .await;
            run(
                conn,
                format!("UPDATE connections SET digest = '{digest}', time_zone = '{zone}'"),
            )
            .await;
            let waited = seconds(conn).await;
            let least = f64::from(least * 3_600);
            let is_over = periods > 0;
            assert_eq!(waited > 0.0, is_over, "{digest} {periods}: {waited}");
            assert!(waited >= least, "{digest} {periods}: {waited}");
        }
    }
    run(conn, "UPDATE connections SET time_zone = 'Mars/Olympus'").await;
    assert!(seconds(conn).await > 86_400.0);
    run(conn, "UPDATE connections SET state = 'DISABLED'").await;
    assert!(seconds(conn).await < 1.0);
    let enable =
        "UPDATE connections SET state = 'ACTIVE', update_time = now() - interval '90 seconds'";
    run(conn, enable).await;
    let waited = seconds(conn).await;
    assert!((90.0..3_600.0).contains(&waited), "{waited}");
    // Its owner has ended the digests.
    run(
        conn,
        "UPDATE connections SET digest = NULL, update_time = now() - interval '90 seconds'",
    )
    .await;
    let waited = seconds(conn).await;
    assert!((90.0..3_600.0).contains(&waited), "{waited}");
    run(
        conn,
        "INSERT INTO leases (kind, key, next_time) \
         SELECT 'digest', connection_id::text, now() + interval '15 minutes' FROM digest_scans",
    )
    .await;
    assert!(seconds(conn).await < 1.0);
}
