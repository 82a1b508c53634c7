//! Feeds that no Manager watches go after a week, with their rows, and never under a Manager that comes.

use domain::ManagerName;
use store::{AsyncConnection, AsyncPgConnection, feeds::purge_unwatched};
use test_support::{TestDatabase, eventually, instructions};

use crate::support::{Start, number, run, start, watch};

const OLD: &str = "INSERT INTO feeds (name, platform, watched, cursor, next_poll_time, create_time) VALUES \
     ('forum:old', 'forum', false, '{\"after\": 1}', now() - interval '8 days', now() - interval '9 days')";
const OWN_ROWS: [&str; 7] = [
    "recent_posts (post_key, feed, time, url_key, post) VALUES (gen_random_uuid(), 'forum:old', now(), gen_random_uuid(), '{}')",
    "feed_post_ids (feed, hour, ids) VALUES ('forum:old', now(), '\\x00')",
    "feed_days (feed, day, posts, late, gone, quarantined, gaps) VALUES ('forum:old', now(), 1, 0, 0, 0, 0)",
    "feed_gaps (feed, find_time, end_time, reason) VALUES ('forum:old', now(), now(), 'a')",
    "feed_missing_ids (feed, id, miss_time) VALUES ('forum:old', 1, now())",
    "quarantined_posts (feed, quarantine_time, kind, reason) VALUES ('forum:old', now(), 'UNFIT', 'a')",
    "feed_stats (feed, interval_seconds, time, posts) VALUES ('forum:old', 60, date_trunc('minute', now()), 1)",
];

/// A database with a feed that no one has watched for a week, and a Manager without feeds.
async fn with_old_feed() -> (Start, ManagerName) {
    let mut at = start().await;
    let instructions = instructions("a");
    let manager = at.fixture.manager(&mut at.conn, &instructions, &[]).await;
    run(&mut at.conn, OLD).await;
    (at, manager)
}

async fn until_waiting(database: &TestDatabase, count: i64) {
    let waits = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("transactions wait for locks", async || {
        database.count(waits).await == count
    })
    .await;
}

/// Returns how many feeds have this cursor and are watched.
async fn watched(conn: &mut AsyncPgConnection, cursor: &str) -> i64 {
    let sql = format!(
        "SELECT count(*) AS number FROM feeds JOIN feed_watchers ON feed = name \
         WHERE name = 'forum:old' AND watched AND cursor {cursor}"
    );
    number(conn, &sql).await
}

#[tokio::test]
async fn feed_goes_a_week_after_its_last_watcher_with_all_its_rows() {
    let (mut at, manager) = with_old_feed().await;
    let conn = &mut at.conn;
    for row in OWN_ROWS {
        run(conn, format!("INSERT INTO {row}")).await;
    }
    watch(conn, manager, &["forum:left", "forum:stays"]).await;
    run(
        conn,
        "UPDATE feeds SET next_poll_time = now() - interval '9 days' WHERE watched",
    )
    .await;
    watch(conn, manager, &["forum:stays"]).await;
    assert_eq!(purge_unwatched(conn, 10).await.unwrap(), 1);
    let left = "SELECT count(*) AS number FROM feeds WHERE name <> 'forum:old'";
    assert_eq!(number(conn, left).await, 2, "one was left just now");
    for row in OWN_ROWS {
        let table = row.split_whitespace().next().unwrap();
        let rows = format!("SELECT count(*) AS number FROM {table} WHERE feed = 'forum:old'");
        assert_eq!(number(conn, &rows).await, 0, "{table}");
    }
    run(
        conn,
        "UPDATE feeds SET next_poll_time = now() - interval '8 days'",
    )
    .await;
    assert_eq!(purge_unwatched(conn, 10).await.unwrap(), 1);
    assert_eq!(purge_unwatched(conn, 10).await.unwrap(), 0);
    assert_eq!(watched_names(conn).await, 1);
}

async fn watched_names(conn: &mut AsyncPgConnection) -> i64 {
    number(conn, "SELECT count(*) AS number FROM feeds WHERE watched").await
}

#[tokio::test]
async fn unwatched_feeds_go_in_bounded_batches_and_not_while_a_backfill_reads_them() {
    let (mut at, _) = with_old_feed().await;
    let conn = &mut at.conn;
    run(
        conn,
        "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) \
         SELECT 'forum:' || n, 'forum', false, now() - interval '8 days', now() FROM generate_series(1, 5) AS n",
    )
    .await;
    run(
        conn,
        "INSERT INTO look_backs (feed, notify, since) VALUES ('forum:old', true, now())",
    )
    .await;
    let mut purged = Vec::new();
    for _ in 0..4 {
        purged.push(purge_unwatched(conn, 2).await.unwrap());
    }
    assert_eq!(purged, [2, 2, 1, 0]);
    run(conn, "DELETE FROM look_backs").await;
    assert_eq!(purge_unwatched(conn, 2).await.unwrap(), 1);
}

#[tokio::test]
async fn feed_that_a_manager_begins_to_watch_is_not_deleted() {
    let (mut at, manager) = with_old_feed().await;
    let mut open = at.database.begin(&[]).await;
    watch(&mut open, manager, &["forum:old"]).await;
    assert_eq!(purge_unwatched(&mut at.conn, 10).await.unwrap(), 0);
    run(&mut open, "COMMIT").await;
    assert_eq!(purge_unwatched(&mut at.conn, 10).await.unwrap(), 0);
    assert_eq!(watched(&mut at.conn, "IS NOT NULL").await, 1);
}

#[tokio::test]
async fn feed_is_not_deleted_between_the_statements_of_a_manager_that_comes() {
    let (mut at, manager) = with_old_feed().await;
    // The Manager's change waits after it has found the old feed, for another one that is being created.
    let other = at
        .database
        .begin(&[
            "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) \
             VALUES ('forum:other', 'forum', true, now(), now())",
        ])
        .await;
    let pool = at.database.pool();
    let changing = tokio::spawn(async move {
        let mut conn = pool.get().await.unwrap();
        conn.transaction(async |conn| {
            watch(conn, manager, &["forum:old", "forum:other"]).await;
            Ok::<_, store::Error>(())
        })
        .await
    });
    until_waiting(&at.database, 1).await;
    assert_eq!(purge_unwatched(&mut at.conn, 10).await.unwrap(), 0);
    drop(other);
    changing.await.unwrap().unwrap();
    assert_eq!(watched(&mut at.conn, "IS NOT NULL").await, 1);
}

#[tokio::test]
async fn manager_that_comes_during_the_deletion_gets_the_feed_anew() {
    let (mut at, manager) = with_old_feed().await;
    run(&mut at.conn, format!("INSERT INTO {}", OWN_ROWS[2])).await;
    let held = at
        .database
        .begin(&["SELECT FROM feed_days FOR UPDATE"])
        .await;
    let pool = at.database.pool();
    let purging = tokio::spawn(async move {
        let mut conn = pool.get().await.unwrap();
        purge_unwatched(&mut conn, 10).await
    });
    until_waiting(&at.database, 1).await;
    let pool = at.database.pool();
    let changing = tokio::spawn(async move {
        let mut conn = pool.get().await.unwrap();
        conn.transaction(async |conn| {
            watch(conn, manager, &["forum:old"]).await;
            Ok::<_, store::Error>(())
        })
        .await
    });
    until_waiting(&at.database, 2).await;
    drop(held);
    assert_eq!(purging.await.unwrap().unwrap(), 1);
    changing.await.unwrap().unwrap();
    assert_eq!(watched(&mut at.conn, "IS NULL").await, 1);
}
