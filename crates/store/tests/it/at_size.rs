//! Measures what repeated statements of the services read in a large installation: a table for `docs/benchmarks.md`.

use std::{future::poll_fn, time::Instant};

use diesel::{QueryableByName, sql_query, sql_types::Double};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, list::MANAGER_FIELDS, manager::Mode};
use store::{backfills, deliveries, erasure, feeds, managers, plans, waiting, work::Room};
use test_support::TestDatabase;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_postgres::{AsyncMessage, NoTls};
use uuid::Uuid;

use crate::support::{Look, Reads, list_query, reads, run};

/// One of the Namespaces, md5('ns2'). Its Managers are applied and have 60 Scans each.
const BUSY: &str = "7b3f4e5e-8a4b-2346-05eb-5c242254ab09";

/// Runs a statement three times on a new connection each, and once to read its plan, takes it back, and prints a row of
/// the table.
async fn measure(
    database: &TestDatabase,
    name: &str,
    statement: impl AsyncFn(&mut AsyncPgConnection),
) {
    let mut times = Vec::new();
    for _ in 0..3 {
        let mut conn = database.connect().await;
        run(&mut conn, "BEGIN").await;
        let begin = Instant::now();
        statement(&mut conn).await;
        times.push(begin.elapsed());
        run(&mut conn, "ROLLBACK").await;
    }
    times.sort();
    let (mut conn, plans) = explaining(database.url()).await;
    run(&mut conn, "BEGIN").await;
    statement(&mut conn).await;
    // The server sends the plan of a SELECT at the next statement.
    let Reads {
        blocks,
        rows,
        whole,
    } = reads(&mut conn).await;
    let nodes = nodes(plans);
    run(&mut conn, "ROLLBACK").await;
    let ms = times[1].as_secs_f64() * 1_000.0;
    println!("| {name} | {whole} | {rows} | {blocks} | {ms:.1} | {nodes} |");
}

/// Returns a connection whose server sends the plan of each statement.
async fn explaining(url: &str) -> (AsyncPgConnection, UnboundedReceiver<String>) {
    let (client, mut connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let (sender, plans) = unbounded_channel();
    tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
            if let AsyncMessage::Notice(notice) = message {
                let _ = sender.send(notice.message().to_owned());
            }
        }
    });
    let mut conn = AsyncPgConnection::try_from(client).await.unwrap();
    for sql in [
        "LOAD 'auto_explain'",
        "SET auto_explain.log_level = notice",
        "SET auto_explain.log_min_duration = 0",
    ] {
        run(&mut conn, sql).await;
    }
    (conn, plans)
}

const TELLING: [&str; 3] = ["Sort", "Join", "Nested Loop"];

/// Names the nodes of plans that read, sort or join, each once: of an index its name, and of several partitions one.
fn nodes(mut plans: UnboundedReceiver<String>) -> String {
    let mut nodes: Vec<String> = Vec::new();
    while let Ok(plan) = plans.try_recv() {
        for line in plan.lines() {
            let Some((node, _)) = line.split_once("  (cost=") else {
                continue;
            };
            let node = node.trim_start().trim_start_matches("->").trim_start();
            let name_after = |words: &str| {
                let (_, rest) = node.split_once(words)?;
                rest.split(' ').next()
            };
            let index = name_after(" using ").or_else(|| name_after("Bitmap Index Scan on "));
            let node = match (index, name_after("Seq Scan on ")) {
                (Some(index), _) => index.to_owned(),
                (None, Some(table)) => format!("Seq Scan on {table}"),
                _ if TELLING.iter().any(|words| node.contains(words)) => node.to_owned(),
                _ => continue,
            };
            let is_week = |part: &&str| part.len() == 8 && part.parse::<u32>().is_ok();
            let parts = node.split('_').filter(|part| !is_week(part));
            let node = parts.collect::<Vec<_>>().join("_");
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
    }
    nodes.join(", ")
}

/// A hundredth as many accounts, each with a Namespace and a Connection; a tenth as many feeds, all due; a tenth of the
/// Managers waits for a backfill, a hundredth for the compiler; ten Scans each, and 50 more in one Namespace; as many posts,
/// a tenth of them of one platform.
async fn fill(conn: &mut AsyncPgConnection, count: u64) {
    run(conn, "SET session_replication_role = replica").await;
    for table in ["scans", "posts"] {
        let partitions =
            format!("SELECT ensure_partitions('{table}', now() - interval '21 days', 4)");
        run(conn, partitions).await;
    }
    let (accounts, of) = (count / 100, "md5('ns' || n % ");
    let namespace = format!("{of}{accounts})::uuid");
    let managers = format!("FROM generate_series(1, {count}) AS n");
    let owners = format!("FROM generate_series(1, {accounts}) AS n");
    for sql in [
        format!(
            "accounts (id, name, create_time) SELECT md5('ns' || n % {accounts})::uuid, 'account-' || n, now() {owners}"
        ),
        format!(
            "namespaces (id, account_id, nickname, create_time, update_time) SELECT {namespace}, {namespace}, 'n', now(), now() {owners}"
        ),
        format!(
            "connections (namespace_id, id, nickname, url, method, headers_sealed, state, create_time, update_time) \
             SELECT {namespace}, {namespace}, 'c', '', 'POST', '', CASE WHEN n % 2 = 0 THEN 'ACTIVE' ELSE 'DISABLED' END, now(), now() {owners}"
        ),
        format!(
            "connection_lanes (namespace_id, connection_id, account_id, next_due_time) SELECT {namespace}, {namespace}, {namespace}, now() {owners} ON CONFLICT DO NOTHING"
        ),
        format!(
            "deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state, next_attempt_time) \
             SELECT {namespace}, {namespace}, gen_random_uuid(), now(), now(), gen_random_uuid(), gen_random_uuid(), 'PENDING', now() {owners}"
        ),
        format!(
            "managers (namespace_id, id, nickname, enable, mode, source, state, input, instructions, submit_time, apply_time, create_time, update_time) \
             SELECT {namespace}, md5('m' || n)::uuid, 'Watch ' || n, true, 'AUTOMATIC', 'FORUM', \
                 CASE WHEN n % 100 = 0 THEN 'PENDING_APPLY' WHEN n % 100 = 1 THEN 'APPLY_FAILED' ELSE 'APPLIED' END, '{{}}', \
                 jsonb_build_object('brief', repeat('x', 500)), now(), now(), now() - n * interval '1 second', now() {managers}"
        ),
        format!(
            "feeds (name, platform, watched, next_poll_time, create_time, last_poll_time) \
             SELECT 'lemmy:c' || n || '@forum.example', 'lemmy', true, now() - n * interval '1 ms', now(), now() FROM generate_series(0, {count} / 10 - 1) AS n"
        ),
        format!(
            "feed_watchers SELECT 'lemmy:c' || n % ({count} / 10) || '@forum.example', {namespace}, md5('m' || n)::uuid {managers}"
        ),
        format!(
            "backfills (namespace_id, manager_id, feed, notify) \
             SELECT {namespace}, md5('m' || n)::uuid, 'lemmy:c' || n % ({count} / 10) || '@forum.example', true {managers} WHERE n % 10 = 0"
        ),
        format!(
            "look_backs (feed, notify, since) SELECT 'lemmy:c' || n || '@forum.example', true, now() {owners}"
        ),
        format!(
            "backfills (namespace_id, manager_id, feed, notify, state, look_back_id) \
             SELECT {namespace}, md5('m' || n)::uuid, 'lemmy:c' || n || '@forum.example', false, 'READING', n {owners}"
        ),
        format!(
            "scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched, fanned_out) \
             SELECT {namespace}, md5('m' || n)::uuid, gen_random_uuid(), at, at, gen_random_uuid(), at, true, '{{}}', true \
             {managers}, generate_series(1, 10) AS s, LATERAL (SELECT now() - s * interval '1 day' AS at) AS t"
        ),
        format!(
            "scans (namespace_id, manager_id, id, create_time, update_time, post_id, post_receive_time, value, matched, fanned_out) \
             SELECT namespace_id, id, gen_random_uuid(), at, at, gen_random_uuid(), at, true, '{{}}', true \
             FROM managers, generate_series(1, 50) AS s, LATERAL (SELECT now() - s * interval '1 minute' AS at) AS t \
             WHERE namespace_id = '{BUSY}'"
        ),
        format!(
            "posts (id, receive_time, post_key, feed, type, time, post_id, title, text, url, user_id, user_name, user_url) \
             SELECT gen_random_uuid(), at, gen_random_uuid(), CASE WHEN n % 10 = 0 THEN 'lemmy:all' ELSE 'bluesky:jetstream' END, \
                 'FORUM_LINK', at, 'post:' || n, 'A kettle', repeat('x', 300), '', 'u', 'u', '' \
             {managers}, LATERAL (SELECT now() - n * interval '10 days' / {count} AS at) AS t"
        ),
    ] {
        let begin = Instant::now();
        run(conn, format!("INSERT INTO {sql}")).await;
        eprintln!("{:.0?}: {}", begin.elapsed(), &sql[..30]);
    }
    let input = r#"{"type": "STRUCTURED", "urls": [], "focus": {"type": "SALES"}}"#;
    let readable = format!("UPDATE managers SET input = '{input}' WHERE namespace_id = '{BUSY}'");
    run(conn, readable).await;
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
    println!("| Statement | Tables read whole | Rows | Blocks | ms | Plan |");
    println!("|---|---|---|---|---|---|");
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
            let mut look = Look::with(Uuid::new_v4(), Room::new(4, 0, 4));
            backfills::waiting(conn, &platforms, &look.claim(), 1_000)
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
        "Managers by state: `managers::count_by_state`",
        async |conn| {
            managers::count_by_state(conn, 100_000).await.unwrap();
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
        "counts of deliveries: `deliveries::count_unfinished`",
        async |conn| {
            deliveries::count_unfinished(conn, 10_000).await.unwrap();
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
        "state of lanes: `deliveries::lane_totals`",
        async |conn| {
            deliveries::lane_totals(conn).await.unwrap();
        },
    )
    .await;
    measure(&database, "oldest work: `waiting::oldest`", async |conn| {
        waiting::oldest(conn).await.unwrap();
    })
    .await;
    measure(
        &database,
        "a page of 100 Managers: `managers::list`",
        async |conn| {
            let namespace = Id::from_uuid(BUSY.parse().unwrap());
            let list = list_query(MANAGER_FIELDS, 100, None, "", "");
            managers::list(conn, namespace, &list).await.unwrap();
        },
    )
    .await;
    measure(
        &database,
        "posts to check for deletion: `erasure::read`",
        async |conn| {
            let mut look = Look::of(Uuid::new_v4());
            let leased = erasure::lease(conn, "lemmy", &look.claim()).await.unwrap();
            let place = &leased.items[0].item;
            erasure::read(conn, "lemmy", place).await.unwrap();
        },
    )
    .await;
    measure(&database, "all plans: `plans::load_page`", async |conn| {
        let mut after = None;
        while let Some(last) =
            { plans::load_page(conn, after, 1_000, 1 << 20).await.unwrap() }.pop()
        {
            after = Some(last.manager);
        }
    })
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
