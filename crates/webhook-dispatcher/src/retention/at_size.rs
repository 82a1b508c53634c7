//! Retention and migrations with millions of Scans: their duration, and how long services wait for them.

use std::{
    future::Future,
    time::{Duration, Instant},
};

use test_support::{LATER_VERSION, TestDatabase, run_later_migration};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::clean;

const DAY: Duration = Duration::from_secs(86_400);
const KEPT_DAYS: u32 = 90;
/// Rows of each table that are past retention in each run.
const OLD: u64 = 100_000;
/// Longest wait of a service's statement.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Maximum ratio between the duration with all rows and with few.
const MAX_RATIO: u32 = 3;
/// Shorter durations count as this long.
const NOTHING: Duration = Duration::from_secs(2);

/// Scans with their posts, keys, deliveries and attempts, spread over the days from `first` to `last` days ago.
async fn fill(database: &TestDatabase, rows: u64, first: u32, last: u32) {
    let weeks = (first - last) / 7 + 2;
    for table in ["posts", "scans", "deliveries", "delivery_attempts"] {
        let make = format!(
            "SELECT ensure_partitions('{table}', now() - interval '{first} days', {weeks})"
        );
        database.run(&make).await;
    }
    let from = format!(
        "FROM (SELECT n, now() - interval '{last} days' - ({rows} - n) * interval '{} seconds' AS at \
               FROM generate_series(1, {rows}) AS n) AS t, \
         LATERAL (SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') \
                          || substr(md5(n::text || '{first}'), 1, 20))::uuid AS id, \
                         md5('owner' || n % 1000)::uuid AS owner) AS u",
        f64::from(first - last) * 86_400.0 / rows as f64
    );
    for into in [
        "posts (id, receive_time, post_key, feed, type, time, post_id, title, url, user_id, user_name, user_url) \
         SELECT id, at, id, 'forum:a', 'FORUM_LINK', at, 'forum:' || id, 'A kettle that listens', 'https://forum.example/', 'u', 'u', ''",
        "post_keys SELECT md5('key' || id)::uuid, id",
        "scan_keys SELECT owner, owner, id, at",
        "scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched, fanned_out) \
         SELECT owner, owner, id, at, at, id, at, true, '{}', true",
        "deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state) \
         SELECT owner, owner, id, at, at, owner, id, 'SUCCEEDED'",
        "delivery_attempts (delivery_id, number, time, latency_ms) SELECT id, 1, at, 1",
    ] {
        database.run(&format!("INSERT INTO {into} {from}")).await;
    }
}

/// Runs a service's statement repeatedly until stopped. Returns the longest time that one took.
async fn serve(database: &TestDatabase, statement: &str, stop: CancellationToken) -> Duration {
    let mut worst = Duration::ZERO;
    while !stop.is_cancelled() {
        let begin = Instant::now();
        database.run(statement).await;
        worst = worst.max(begin.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    println!("{worst:.0?} at most: {}", &statement[..60]);
    worst
}

/// Runs `work` while services run. Returns its duration, and the longest time of a service's statement.
async fn beside_services(
    database: &std::sync::Arc<TestDatabase>,
    work: impl Future<Output = ()>,
) -> (Duration, Duration) {
    let stop = CancellationToken::new();
    let mut services = JoinSet::new();
    for statement in [
        "INSERT INTO scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched, fanned_out) \
         SELECT id, id, id, now(), now(), id, now(), true, '{}', true FROM gen_random_uuid() AS id",
        "INSERT INTO posts (id, receive_time, post_key, feed, type, time, post_id, title, url, user_id, user_name, user_url) \
         SELECT id, now(), id, 'forum:a', 'FORUM_LINK', now(), id::text, 'A kettle', '', '', '', '' FROM gen_random_uuid() AS id",
        "INSERT INTO scan_keys SELECT id, id, id, now() FROM gen_random_uuid() AS id",
        "SELECT FROM scans WHERE namespace_id = md5('owner1')::uuid AND manager_id = md5('owner1')::uuid ORDER BY create_time DESC LIMIT 50",
        "UPDATE deliveries SET state = 'SUCCEEDED' WHERE id IN (SELECT id FROM deliveries WHERE connection_id = md5('owner2')::uuid \
         AND namespace_id = md5('owner2')::uuid ORDER BY create_time DESC LIMIT 1) AND create_time > now() - interval '1 day'",
        "SELECT FROM scans WHERE NOT fanned_out ORDER BY create_time LIMIT 100",
    ] {
        let (database, stop) = (std::sync::Arc::clone(database), stop.clone());
        services.spawn(async move { serve(&database, statement, stop).await });
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let begin = Instant::now();
    work.await;
    let took = begin.elapsed();
    tokio::time::sleep(Duration::from_millis(200)).await;
    stop.cancel();
    let worst = services.join_all().await.into_iter().max();
    (took, worst.unwrap_or_default())
}

/// Drops what is past retention, and asserts that all of it is gone.
async fn retention(database: &std::sync::Arc<TestDatabase>) -> (Duration, Duration) {
    fill(database, OLD, 200, 194).await;
    database.run("VACUUM ANALYZE").await;
    let kept = DAY * KEPT_DAYS;
    beside_services(database, async {
        let mut conn = database.connect().await;
        while !clean(&mut conn, kept, kept).await.unwrap() {}
    })
    .await
}

/// A migration that locks `deliveries`, and its reversal.
const MIGRATION: &str = "ALTER TABLE deliveries ADD COLUMN later smallint NOT NULL DEFAULT 0";
const REVERSAL: &str = "ALTER TABLE deliveries DROP COLUMN IF EXISTS later";

async fn migration(database: &std::sync::Arc<TestDatabase>) -> (Duration, Duration) {
    database.run(REVERSAL).await;
    let forget =
        format!("DELETE FROM __diesel_schema_migrations WHERE version = '{LATER_VERSION}'");
    database.run(&forget).await;
    beside_services(database, async {
        let ran = run_later_migration(database.url(), MIGRATION, true).await;
        assert_eq!(ran.unwrap(), [LATER_VERSION]);
        let mut conn = database.connect().await;
        store::migrations::ensure_partitions(&mut conn)
            .await
            .unwrap();
    })
    .await
}

/// `cargo test --release -p webhook-dispatcher --lib -- --ignored --nocapture at_size`; ten million rows take some 25 GB.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "fills a database with EARSHOT_RETENTION_ROWS rows, one million if that is not set"]
async fn retention_and_migrate_do_not_depend_on_the_rows_that_stay() {
    #[expect(clippy::disallowed_methods, reason = "a test is no service")]
    let rows: u64 = std::env::var("EARSHOT_RETENTION_ROWS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let database = std::sync::Arc::new(TestDatabase::create().await);
    fill(&database, 1_000, KEPT_DAYS - 7, 0).await;
    let few = [retention(&database).await, migration(&database).await];
    let begin = Instant::now();
    fill(&database, rows, KEPT_DAYS - 7, 0).await;
    println!("{rows} rows made in {:.0?}", begin.elapsed());
    let many = [retention(&database).await, migration(&database).await];
    let rows_of = || {
        ["retention", "migrate"]
            .into_iter()
            .zip(few.into_iter().zip(many))
    };
    for (name, (few, many)) in rows_of() {
        println!(
            "{name}: next to 1,000 rows {:.2?}, next to {rows} {:.2?}; longest statement of a service {:.0?} and {:.0?}",
            few.0, many.0, few.1, many.1
        );
    }
    for (name, (few, many)) in rows_of() {
        assert!(many.0 <= few.0.max(NOTHING) * MAX_RATIO, "{name}");
        assert!(many.1 <= MAX_WAIT, "{name}");
    }
}
