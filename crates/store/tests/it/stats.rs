//! Counters count exactly what was committed, for any replica that folds, at any time.

use std::time::Duration;

use diesel_async::{AsyncConnection, AsyncPgConnection};
use domain::{
    ConnectionName, Id, ManagerName, Timestamp,
    stats::{Interval, Point, StatsQuery},
};
use store::{
    scans::{self, Origin, ScanCounter},
    stats::{self, Deltas},
};
use test_support::{eventually, instructions, post};

use crate::support::{feed, new_scan, number, record_past, run, start};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn query(interval: Interval, start: &str, end: &str) -> StatsQuery {
    StatsQuery::parse(Some(start), Some(end), Some(interval.as_str()), at(end)).unwrap()
}

async fn fold_all(conn: &mut AsyncPgConnection) -> usize {
    let mut all = 0;
    while let Some(count) = stats::fold(conn, 0, 3).await.unwrap() {
        all += count;
        if count == 0 {
            break;
        }
    }
    all
}

fn names() -> (ManagerName, ConnectionName) {
    let namespace = Id::generate();
    let manager = Id::generate();
    let connection = Id::generate();
    (
        ManagerName { namespace, manager },
        ConnectionName {
            namespace,
            connection,
        },
    )
}

fn scans_of(points: &[Point]) -> Vec<u64> {
    points.iter().map(|point| point.scans.unwrap()).collect()
}

#[tokio::test]
async fn deltas_become_points_of_all_three_intervals() {
    let mut at_ = start().await;
    let conn = &mut at_.conn;
    let (manager, connection) = names();
    let mut deltas = Deltas::default();
    for (time, delay) in [
        ("2026-11-20T23:59:59.999999Z", 10),
        ("2026-11-21T00:00:00Z", 1_000),
        ("2026-11-21T00:00:59Z", 100_000),
        ("2026-11-21T01:00:00Z", 5),
    ] {
        deltas.scan(manager, at(time), Duration::from_millis(delay));
    }
    deltas.suppressed(manager, at("2026-11-21T00:00:30Z"), 7);
    let noon = at("2026-11-21T12:00:00Z");
    deltas.succeeded(connection, noon, Duration::from_millis(3));
    deltas.failed_attempt(connection, noon);
    deltas.failed_attempt(connection, noon);
    deltas.exhausted(connection, noon);
    stats::append(conn, &deltas).await.unwrap();
    assert!(fold_all(conn).await > 0);
    assert_eq!(fold_all(conn).await, 0, "counted once");

    let span = ("2026-11-20T23:59:00Z", "2026-11-21T00:02:00Z");
    let minutes = query(Interval::Minute, span.0, span.1);
    let points = stats::of_manager(conn, manager, minutes)
        .await
        .unwrap()
        .points;
    assert_eq!(scans_of(&points), [1, 2, 0]);
    assert_eq!(points[1].suppressed, Some(7));
    let delays = points[1].scan_delay_ms.unwrap();
    assert_eq!((delays.p50, delays.p99), (1_023, 106_495));
    assert_eq!(points[0].scan_delay_ms.unwrap().p99, 10);
    assert_eq!(points[2].scan_delay_ms.unwrap().p50, 0);
    assert!(points[0].deliveries.is_none() && points[0].delivery_delay_ms.is_none());

    let hours = query(
        Interval::Hour,
        "2026-11-20T23:30:00Z",
        "2026-11-21T01:00:01Z",
    );
    let points = stats::of_manager(conn, manager, hours)
        .await
        .unwrap()
        .points;
    assert_eq!(scans_of(&points), [1, 2, 1]);

    let days = query(
        Interval::Day,
        "2026-11-20T00:00:00Z",
        "2026-11-22T00:00:00Z",
    );
    let whole = stats::of_namespace(conn, manager.namespace, days)
        .await
        .unwrap();
    assert_eq!(scans_of(&whole.points), [1, 3]);
    let deliveries = whole.points[1].deliveries.unwrap();
    assert_eq!(
        (
            deliveries.succeeded,
            deliveries.failed_attempts,
            deliveries.exhausted
        ),
        (1, 2, 1)
    );
    let points = stats::of_connection(conn, connection, days)
        .await
        .unwrap()
        .points;
    assert_eq!(points[1].deliveries, Some(deliveries));
    assert_eq!(points[1].delivery_delay_ms.unwrap().p50, 3);
    assert!(points[1].scans.is_none() && points[1].posts.is_none());

    // Added to, not overwritten.
    stats::append(conn, &deltas).await.unwrap();
    fold_all(conn).await;
    let points = stats::of_manager(conn, manager, hours)
        .await
        .unwrap()
        .points;
    assert_eq!(scans_of(&points), [2, 4, 2]);
}

#[tokio::test]
async fn rolled_back_and_interrupted_transactions_are_not_counted() {
    let mut at_ = start().await;
    let (manager, _) = names();
    let mut deltas = Deltas::default();
    deltas.scan(manager, at("2026-11-21T00:00:00Z"), Duration::ZERO);
    let rolled_back = at_
        .conn
        .transaction(async |conn| {
            stats::append(conn, &deltas).await?;
            Err::<(), _>(store::QueryError::RollbackTransaction)
        })
        .await;
    assert!(rolled_back.is_err());
    assert_eq!(stats::fold(&mut at_.conn, 0, 10).await.unwrap(), Some(0));

    stats::append(&mut at_.conn, &deltas).await.unwrap();
    // A replica that dies while folding: the transaction is not committed.
    let mut dying = at_.database.connect().await;
    run(&mut dying, "BEGIN").await;
    let folded = dying
        .transaction(async |conn| {
            let folded = stats::fold(conn, 0, 10).await;
            assert!(matches!(folded, Ok(Some(1))));
            // Another replica does not wait for it.
            let other = stats::fold(&mut at_.conn, 0, 10).await;
            assert!(matches!(other, Ok(None)));
            Err::<(), _>(store::QueryError::RollbackTransaction)
        })
        .await;
    assert!(folded.is_err());
    drop(dying);
    let hours = query(
        Interval::Hour,
        "2026-11-21T00:00:00Z",
        "2026-11-21T01:00:00Z",
    );
    let counted = async |conn: &mut AsyncPgConnection| {
        let found = stats::of_manager(conn, manager, hours).await.unwrap();
        scans_of(&found.points)
    };
    assert_eq!(counted(&mut at_.conn).await, [0]);
    eventually("it is folded", async || {
        stats::fold(&mut at_.conn, 0, 10).await.unwrap() == Some(1)
    })
    .await;
    assert_eq!(counted(&mut at_.conn).await, [1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writers_and_folders_count_each_delta_once() {
    let at_ = start().await;
    let (manager, connection) = names();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let mut conn = at_.database.connect().await;
        tasks.spawn(async move {
            for _ in 0..50 {
                let mut deltas = Deltas::default();
                let now = at("2026-11-21T00:00:00Z");
                deltas.scan(manager, now, Duration::from_millis(7));
                deltas.succeeded(connection, now, Duration::from_millis(9));
                stats::append(&mut conn, &deltas).await.unwrap();
            }
        });
    }
    for _ in 0..3 {
        let mut conn = at_.database.connect().await;
        tasks.spawn(async move {
            for _ in 0..60 {
                stats::fold(&mut conn, 0, 4).await.unwrap();
                tokio::task::yield_now().await;
            }
        });
    }
    while let Some(ended) = tasks.join_next().await {
        ended.unwrap();
    }
    let mut conn = at_.database.connect().await;
    fold_all(&mut conn).await;
    let days = query(
        Interval::Day,
        "2026-11-21T00:00:00Z",
        "2026-11-22T00:00:00Z",
    );
    let found = stats::of_namespace(&mut conn, manager.namespace, days)
        .await
        .unwrap();
    assert_eq!(found.points[0].scans, Some(200));
    assert_eq!(found.points[0].deliveries.unwrap().succeeded, 200);
    let stored = "SELECT (counts -> 'scan_delays' ->> '7')::bigint AS number FROM stats \
                  WHERE interval_seconds = 60 AND counts ? 'scans' LIMIT 1";
    assert_eq!(number(&mut conn, stored).await, 200);
}

#[tokio::test]
async fn a_poll_counts_its_posts_for_each_watcher_and_its_scans() {
    let mut at_ = start().await;
    let conn = &mut at_.conn;
    let one = at_
        .fixture
        .applied_manager(conn, &instructions("a"), &[])
        .await;
    let two = at_
        .fixture
        .applied_manager(conn, &instructions("b"), &[])
        .await;
    let now = Timestamp::now();
    let mut old = post("forum:1", "a");
    old.time = now.minus(Duration::from_secs(60));
    let mut ahead = post("forum:2", "a");
    ahead.time = now.plus(Duration::from_secs(600));
    let matches = [new_scan(one, &old), new_scan(one, &ahead)];
    let mut counter = ScanCounter::new(u32::MAX);
    // The second poll creates no Scans, because they exist.
    for (posts, matches) in [(20, &matches[..]), (20, &matches), (0, &[])] {
        let origin = Origin::Poll;
        scans::record_from(conn, &feed(), posts, matches, now, origin, &mut counter)
            .await
            .unwrap();
    }
    // A Scan of a past post counts like any, but its post's age is not our delay.
    let mut past = post("forum:3", "a");
    past.time = now.minus(Duration::from_hours(24));
    let matches = [new_scan(one, &past)];
    for silently in [false, true] {
        record_past(conn, &matches, silently).await;
    }
    fold_all(conn).await;
    let span = StatsQuery::parse(
        Some(&now.to_string()),
        Some(&now.plus(Duration::from_micros(1)).to_string()),
        Some("1d"),
        now,
    )
    .unwrap();
    let point = stats::of_manager(conn, one, span)
        .await
        .unwrap()
        .points
        .remove(0);
    assert_eq!((point.posts, point.scans), (Some(40), Some(3)));
    let delays = point.scan_delay_ms.unwrap();
    assert_eq!(delays.p50, 0, "a post from the future has no delay");
    assert!((60_000..70_000).contains(&delays.p99));
    let point = stats::of_manager(conn, two, span)
        .await
        .unwrap()
        .points
        .remove(0);
    assert_eq!((point.posts, point.scans), (Some(40), Some(0)));
    // A feed that both watch counts once.
    let whole = stats::of_namespace(conn, one.namespace, span)
        .await
        .unwrap();
    assert_eq!(whole.points[0].posts, Some(40));
}

#[tokio::test]
async fn only_old_and_orphaned_points_are_deleted() {
    let mut at_ = start().await;
    let conn = &mut at_.conn;
    let ours = at_.fixture.manager(conn, &instructions("a"), &[]).await;
    let (gone, _) = names();
    let now = Timestamp::now();
    let mut deltas = Deltas::default();
    deltas.scan(ours, now, Duration::ZERO);
    deltas.scan(gone, now, Duration::ZERO);
    deltas.posts(&feed(), now, 3);
    const DAY: u64 = 86_400;
    for days in [3, 41, 401] {
        let then = now.minus(Duration::from_secs(days * DAY));
        deltas.scan(ours, then, Duration::ZERO);
        deltas.posts(&feed(), then, 3);
    }
    stats::append(conn, &deltas).await.unwrap();
    fold_all(conn).await;
    let count = async |conn: &mut AsyncPgConnection, table: &str| {
        number(conn, &format!("SELECT count(*) AS number FROM {table}")).await
    };
    assert_eq!(count(conn, "feed_stats").await, 4 * 3);

    // The orphan, under its own id and its Namespace's.
    let mut orphans = 0;
    loop {
        match stats::purge_orphans(conn, 4).await.unwrap() {
            0 => break,
            some => orphans += some,
        }
    }
    assert_eq!(orphans, 6);
    while stats::purge_old(conn, now, 1).await.unwrap() > 0 {}
    // Of four times, one is left as minutes, two as hours, and three as days.
    assert_eq!(count(conn, "feed_stats").await, 6);
    assert_eq!(count(conn, "stats").await, 12);
    let purged = stats::purge_namespace(conn, ours.namespace, 100)
        .await
        .unwrap();
    assert_eq!(purged, 12);
}
