//! Measures what repeated statements of the services read in a large installation: a table for `docs/benchmarks.md`.

use std::{collections::BTreeSet, time::Instant};

use diesel::{QueryableByName, sql_query, sql_types::Double};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::manager::Mode;
use store::{backfills, deliveries, feeds, managers, outbox, waiting, work::Room};
use test_support::TestDatabase;
use uuid::Uuid;

use crate::support::{Look, Reads, reads, run};

/// Runs a statement three times on a new connection each, takes it back, and prints a row of the table.
async fn measure(
    database: &TestDatabase,
    name: &str,
    statement: impl AsyncFn(&mut AsyncPgConnection),
) {
    let (mut times, mut last) = (Vec::new(), None);
    for _ in 0..3 {
        let mut conn = database.connect().await;
        run(&mut conn, "BEGIN").await;
        let begin = Instant::now();
        statement(&mut conn).await;
        times.push(begin.elapsed());
        last = Some(reads(&mut conn).await);
        run(&mut conn, "ROLLBACK").await;
    }
    times.sort();
    let Reads {
        blocks,
        rows,
        whole,
    } = last.unwrap();
    let ms = times[1].as_secs_f64() * 1_000.0;
    println!("| {name} | {whole} | {rows} | {blocks} | {ms:.1} |");
}

/// A hundredth as many accounts, each with a Namespace and a Connection; a tenth as many feeds, all due; a tenth of the
/// Managers waits for a backfill, a hundredth for the compiler; ten Scans each.
async fn fill(conn: &mut AsyncPgConnection, count: u64) {
    run(conn, "SET session_replication_role = replica").await;
    run(
        conn,
        "SELECT ensure_partitions('scans', now() - interval '21 days', 4)",
    )
    .await;
    let (accounts, of) = (count / 100, "md5('ns' || n % ");
    let namespace = format!("{of}{accounts})::uuid");
    let managers = format!("FROM generate_series(1, {count}) AS n");
    let owners = format!("FROM generate_series(1, {accounts}) AS n");
    for sql in [
        format!("accounts (id, name, create_time) SELECT md5('ns' || n % {accounts})::uuid, 'account-' || n, now() {owners}"),
        format!("namespaces (id, account_id, nickname, create_time, update_time) SELECT {namespace}, {namespace}, 'n', now(), now() {owners}"),
        format!("connections (namespace_id, id, nickname, url, method, headers_sealed, state, create_time, update_time) \
             SELECT {namespace}, {namespace}, 'c', '', 'POST', '', CASE WHEN n % 2 = 0 THEN 'ACTIVE' ELSE 'DISABLED' END, now(), now() {owners}"),
        format!("connection_lanes (namespace_id, connection_id, account_id, next_due_time) SELECT {namespace}, {namespace}, {namespace}, now() {owners} ON CONFLICT DO NOTHING"),
        format!("deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, next_attempt_time) \
             SELECT {namespace}, {namespace}, gen_random_uuid(), now(), now(), gen_random_uuid(), gen_random_uuid(), 'PENDING', now() {owners}"),
        format!("managers (namespace_id, id, nickname, enable, mode, source, state, input, instructions, submit_time, apply_time, create_time, update_time) \
             SELECT {namespace}, md5('m' || n)::uuid, 'Watch ' || n, true, 'AUTOMATIC', 'FORUM', \
                 CASE WHEN n % 100 = 0 THEN 'PENDING_APPLY' WHEN n % 100 = 1 THEN 'APPLY_FAILED' ELSE 'APPLIED' END, '{{}}', \
                 jsonb_build_object('brief', repeat('x', 500)), now(), now(), now() - n * interval '1 second', now() {managers}"),
        format!("feeds (name, platform, watched, next_poll_time, create_time, last_poll_time) \
             SELECT 'lemmy:c' || n || '@forum.example', 'lemmy', true, now() - n * interval '1 ms', now(), now() FROM generate_series(0, {count} / 10 - 1) AS n"),
        format!("feed_watchers SELECT 'lemmy:c' || n % ({count} / 10) || '@forum.example', {namespace}, md5('m' || n)::uuid {managers}"),
        format!("backfills (namespace_id, manager_id, feed, notify) \
             SELECT {namespace}, md5('m' || n)::uuid, 'lemmy:c' || n % ({count} / 10) || '@forum.example', true {managers} WHERE n % 10 = 0"),
        format!("look_backs (feed, notify, since) SELECT 'lemmy:c' || n || '@forum.example', true, now() {owners}"),
        format!("backfills (namespace_id, manager_id, feed, notify, state, look_back_id) \
             SELECT {namespace}, md5('m' || n)::uuid, 'lemmy:c' || n || '@forum.example', false, 'READING', n {owners}"),
        format!("scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched, fanned_out) \
             SELECT {namespace}, md5('m' || n)::uuid, gen_random_uuid(), at, at, gen_random_uuid(), at, true, '{{}}', true \
             {managers}, generate_series(1, 10) AS s, LATERAL (SELECT now() - s * interval '1 day' AS at) AS t"),
        "outbox (event, message_id, payload) SELECT 'scan.created', gen_random_uuid(), '' FROM generate_series(1, 100000)".to_owned(),
    ] {
        let begin = Instant::now();
        run(conn, format!("INSERT INTO {sql}")).await;
        eprintln!("{:.0?}: {}", begin.elapsed(), &sql[..30]);
    }
    run(conn, "VACUUM ANALYZE").await;
}

/// `cargo xtask test -p store -- --run-ignored only --no-capture at_size`; takes minutes and some GB.
/// `EARSHOT_MANAGERS` makes it smaller.
#[tokio::test]
#[ignore = "fills a database with ten million Scans"]
async fn statements_of_services_at_size() {
    #[expect(clippy::disallowed_methods, reason = "a test is no service")]
    let count: u64 = std::env::var("EARSHOT_MANAGERS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1_000_000);
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    fill(&mut conn, count).await;
    let platforms = ["lemmy"];
    println!("{count} Managers");
    println!("| Statement | Tables read whole | Rows | Blocks | ms |");
    println!("|---|---|---|---|---|");
    measure(&database, "due feeds: `feeds::lease_due`", async |conn| {
        let mut look = Look::of(Uuid::new_v4());
        feeds::lease_due(conn, "lemmy", &mut look.claim())
            .await
            .unwrap();
    })
    .await;
    measure(
        &database,
        "state of feeds: `feeds::by_platform`",
        async |conn| {
            feeds::by_platform(conn).await.unwrap();
        },
    )
    .await;
    measure(
        &database,
        "waiting backfills: `backfills::waiting`",
        async |conn| {
            let room = Room::new(4, 0, 4);
            backfills::waiting(conn, &platforms, &room, 1_000)
                .await
                .unwrap();
        },
    )
    .await;
    measure(
        &database,
        "due look-backs: `look_backs::lease`",
        async |conn| {
            let mut look = Look::of(Uuid::new_v4());
            let mut claim = look.claim();
            backfills::look_backs::lease(conn, &platforms, &mut claim)
                .await
                .unwrap();
        },
    )
    .await;
    measure(
        &database,
        "Managers to compile: `managers::claim`",
        async |conn| {
            let mut look = Look::of(Uuid::new_v4());
            managers::claim(conn, Mode::Automatic, &mut look.claim())
                .await
                .unwrap();
        },
    )
    .await;
    measure(
        &database,
        "Managers by state: `managers::standings`",
        async |conn| {
            managers::standings(conn, 100_000).await.unwrap();
        },
    )
    .await;
    measure(
        &database,
        "waiting Connections: `deliveries::find_waiting`",
        async |conn| {
            deliveries::find_waiting(conn, None, 2_000).await.unwrap();
        },
    )
    .await;
    measure(
        &database,
        "counts of deliveries: `deliveries::standings`",
        async |conn| {
            deliveries::standings(conn, 10_000).await.unwrap();
        },
    )
    .await;
    measure(
        &database,
        "counts of Connections: `deliveries::endpoints`",
        async |conn| {
            deliveries::endpoints(conn).await.unwrap();
        },
    )
    .await;
    measure(
        &database,
        "state of lanes: `deliveries::standing`",
        async |conn| {
            deliveries::standing(conn).await.unwrap();
        },
    )
    .await;
    measure(&database, "oldest work: `waiting::oldest`", async |conn| {
        waiting::oldest(conn).await.unwrap();
    })
    .await;
    measure(
        &database,
        "events to publish: `outbox::take`",
        async |conn| {
            outbox::take(conn, 0, 500, &BTreeSet::new()).await.unwrap();
        },
    )
    .await;
    #[derive(QueryableByName)]
    struct Size {
        #[diesel(sql_type = Double)]
        gigabytes: f64,
    }
    let size: Size =
        sql_query("SELECT (pg_database_size(current_database()) / 1e9)::float8 AS gigabytes")
            .get_result(&mut conn)
            .await
            .unwrap();
    println!("{:.1} GB", size.gigabytes);
}
