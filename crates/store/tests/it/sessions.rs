//! Names of sessions at PostgreSQL.

use std::time::Duration;

use diesel::{QueryableByName, sql_query, sql_types::Text};
use diesel_async::RunQueryDsl;
use private_servers::{Postgres, postgres::Options};
use test_support::{Proxy, TIMEOUT, TestDatabase, eventually};
use tokio::net::TcpListener;

use crate::support::{LOST_SERVER, run};

/// Number of statements of this process with this outcome.
fn count_of(operation: &str, error_type: &str) -> u64 {
    let families = prometheus::gather();
    let mut families = families.iter();
    let durations = families.find(|one| one.name() == "db_client_operation_duration_seconds");
    let metrics = durations.map_or(&[][..], |one| one.get_metric());
    let metric = metrics.iter().find(|metric| {
        let labels = metric.get_label();
        let has = |value: &str| labels.iter().any(|label| label.value() == value);
        has(operation) && has(error_type)
    });
    metric.map_or(0, |metric| metric.get_histogram().get_sample_count())
}

#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = Text)]
    name: String,
}

async fn name_at(url: &str) -> String {
    let mut conn = store::establish(url).await.unwrap();
    let named = sql_query("SELECT current_setting('application_name') AS name");
    named.get_result::<Named>(&mut conn).await.unwrap().name
}

#[tokio::test]
async fn a_session_has_the_programs_name_unless_the_url_gives_one() {
    let database = TestDatabase::create().await;
    let program = std::env::current_exe().unwrap();
    let program = program.file_stem().unwrap().to_str().unwrap();
    assert_eq!(name_at(database.url()).await, program);

    let url = database.url();
    let sign = if url.contains('?') { '&' } else { '?' };
    let url = format!("{url}{sign}application_name=of-mine");
    assert_eq!(name_at(&url).await, "of-mine");
}

#[tokio::test]
async fn a_pool_discards_connections_to_a_server_that_became_read_only() {
    let _alone = LOST_SERVER.lock().await;
    let database = TestDatabase::create().await;
    let pool = store::connect(database.url(), 2).unwrap();
    let write = "CREATE TABLE written ()";
    {
        let mut conns = [pool.get().await.unwrap(), pool.get().await.unwrap()];
        for conn in &mut conns {
            run(conn, "SET default_transaction_read_only = on").await;
        }
        let refused = sql_query(write).execute(&mut conns[0]).await;
        let error = refused.unwrap_err();
        assert!(store::is_passing(&error), "{error:?}");
        assert_eq!(count_of("OTHER", "refused"), 1);
        let unknown = sql_query("SELECT nobody").execute(&mut conns[1]).await;
        unknown.unwrap_err();
        assert_eq!(count_of("SELECT", "refused"), 0);
    }
    let mut conns = [pool.get().await.unwrap(), pool.get().await.unwrap()];
    run(&mut conns[0], write).await;
    run(&mut conns[1], "DROP TABLE written").await;
}

#[tokio::test]
async fn full_disk_and_missing_right_count_as_refusals() {
    let database = TestDatabase::create().await;
    let pool = store::connect(database.url(), 1).unwrap();
    let mut conn = pool.get().await.unwrap();
    for (code, refusals) in [("53100", 1), ("42501", 1), ("22012", 0)] {
        let before = count_of("OTHER", "refused");
        let raise = format!("DO $$ BEGIN RAISE 'Fehler {code}' USING ERRCODE = '{code}'; END $$");
        sql_query(raise).execute(&mut conn).await.unwrap_err();
        assert_eq!(count_of("OTHER", "refused") - before, refusals, "{code}");
    }
}

#[tokio::test]
async fn connections_to_a_server_that_never_answers_are_given_up() {
    let _alone = LOST_SERVER.lock().await;
    let database = TestDatabase::create().await;
    let proxy = Proxy::start(&database.server()).await;
    let url = proxy.url(database.url());
    let pool = store::connect_with_patience(&url, 3, Duration::from_secs(2)).unwrap();
    {
        let mut conns = Vec::new();
        for _ in 0..3 {
            conns.push(pool.get().await.unwrap());
        }
        for conn in &mut conns {
            run(conn, "SELECT 1").await;
        }
    }
    assert_eq!(proxy.accepted(), 3);

    proxy.silence();

    let mut conn = pool.get().await.unwrap();
    let asked = tokio::time::timeout(TIMEOUT, sql_query("SELECT 1").execute(&mut conn)).await;
    let error = asked.expect("an end without an answer").unwrap_err();
    assert!(store::is_passing(&error), "{error:?}");
    drop(conn);
    // The idle connections lead to the same server: none of them is used, so nothing waits for them.
    run(&mut pool.get().await.unwrap(), "SELECT 1").await;
    assert_eq!(proxy.accepted(), 4);
}

/// Returns the URL of `database`, with these servers before its server.
fn behind(database: &TestDatabase, others: &[&str]) -> String {
    let own = database.server();
    let all = [others, &[&own]].concat().join(",");
    database.url().replacen(&own, &all, 1)
}

#[tokio::test]
async fn servers_that_accept_connections_and_never_answer_are_skipped() {
    let database = TestDatabase::create().await;
    // The kernel accepts connections for them, as it does for a frozen server.
    let frozen = [
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
        TcpListener::bind("127.0.0.1:0").await.unwrap(),
    ];
    let frozen = frozen.each_ref().map(|one| one.local_addr().unwrap());
    let frozen = frozen.map(|address| address.to_string());
    let url = behind(&database, &[&frozen[0], &frozen[1]]);
    let pool = store::connect(&url, 1).unwrap();
    // On a slow machine the living server may not answer in time at first.
    eventually("the third server is found", async || {
        pool.get().await.is_ok()
    })
    .await;

    // No server listens on port 1.
    let nowhere = format!("postgres://user@{},127.0.0.1:1/d", frozen[0]);
    let reason = store::establish(&nowhere).await.err().unwrap().to_string();
    for part in [&*frozen[0], "no answer within 2s", "127.0.0.1:1", "refused"] {
        assert!(reason.contains(part), "{reason}");
    }
}

#[tokio::test]
async fn a_standby_is_skipped() {
    let home = tempfile::tempdir().unwrap();
    let servers = tokio::task::spawn_blocking(move || {
        let settings = ["wal_level=replica", "max_wal_senders=4"];
        let options = Options {
            settings: settings.map(str::to_owned).to_vec(),
            ..Options::throwaway()
        };
        let primary = Postgres::start(&home.path().join("primary"), &options).unwrap();
        let standby = primary.start_standby(&home.path().join("standby"), primary.port());
        (standby.unwrap(), primary, home)
    });
    let (standby, primary, _home) = servers.await.unwrap();
    let own = format!("127.0.0.1:{}", primary.port());
    let both = format!("127.0.0.1:{},{own}", standby.port());
    let pool = store::connect(&primary.url().replacen(&own, &both, 1), 1).unwrap();
    eventually("the primary is found", async || pool.get().await.is_ok()).await;
    run(&mut pool.get().await.unwrap(), "CREATE TABLE written ()").await;
}
