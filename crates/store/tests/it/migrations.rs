use std::{fs, path::Path};

use diesel::sql_query;
use diesel_async::RunQueryDsl;
use store::migrations::{self, REQUIRED_VERSION, Schema, ensure_partitions, migrate, revert_all};
use test_support::{TestDatabase, run_later_migration};

use crate::{
    support::{number, run},
    tables,
};

pub(crate) async fn emptied() -> TestDatabase {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    run(&mut conn, "DROP SCHEMA public CASCADE").await;
    run(&mut conn, "CREATE SCHEMA public").await;
    database
}

const OBJECTS: &str = "SELECT \
    (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace \
        AND relname NOT LIKE '\\_\\_diesel%') \
    + (SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace \
        AND proname NOT LIKE 'diesel%') AS number";

#[tokio::test]
async fn migrations_can_be_reverted_and_run_again() {
    let database = emptied().await;
    let mut conn = database.connect().await;
    let none = Schema::TooOld { found: None };
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), none);

    let run_first = migrate(database.url()).await.unwrap();
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), Schema::Suits);
    assert!(run_first.last().unwrap().contains(REQUIRED_VERSION));
    let whole = tables::write(&mut conn).await.unwrap();
    let objects = number(&mut conn, OBJECTS).await;
    assert!(migrate(database.url()).await.unwrap().is_empty());

    revert_all(database.url()).await.unwrap();
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), none);
    assert_eq!(
        number(&mut conn, OBJECTS).await,
        0,
        "down.sql leaves things behind"
    );

    assert_eq!(migrate(database.url()).await.unwrap(), run_first);
    assert_eq!(tables::write(&mut conn).await.unwrap(), whole);
    assert_eq!(number(&mut conn, OBJECTS).await, objects);
}

#[tokio::test]
async fn an_index_whose_migration_was_interrupted_is_built_again() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let rows = "INSERT INTO scan_keys SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), now() \
                FROM generate_series(1, 2)";
    run(&mut conn, rows).await;
    // Fails, because the rows have the same time, and leaves an invalid index.
    let unique = "CREATE UNIQUE INDEX CONCURRENTLY later_idx ON scan_keys (create_time)";
    assert!(sql_query(unique).execute(&mut conn).await.is_err());

    let up = "CREATE INDEX CONCURRENTLY IF NOT EXISTS later_idx ON scan_keys (create_time)";
    run_later_migration(database.url(), up, false)
        .await
        .unwrap();

    let valid = "SELECT count(*) AS number FROM pg_index WHERE indexrelid = 'later_idx'::regclass \
                 AND indisvalid AND NOT indisunique";
    assert_eq!(number(&mut conn, valid).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_concurrent_migrations_run_once() {
    let database = emptied().await;
    let (one, two) = tokio::join!(migrate(database.url()), migrate(database.url()));
    let mut counts = [one.unwrap().len(), two.unwrap().len()];
    counts.sort_unstable();
    assert_eq!(counts[0], 0);
    assert!(counts[1] > 0);
}

#[tokio::test]
async fn a_newer_schema_suits_and_an_older_one_does_not() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let version = "INSERT INTO __diesel_schema_migrations (version) VALUES";
    run(&mut conn, format!("{version} ('99991231000000')")).await;
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), Schema::Suits);

    run(
        &mut conn,
        format!("DELETE FROM __diesel_schema_migrations WHERE version >= '{REQUIRED_VERSION}'"),
    )
    .await;
    let found = migrations::schema(&mut conn).await.unwrap();
    assert!(
        matches!(&found, Schema::TooOld { found: Some(version) } if version.as_str() < REQUIRED_VERSION),
        "{found:?}"
    );
}

#[tokio::test]
async fn schema_rs_equals_the_migrated_schema() {
    let database = TestDatabase::create().await;
    let written = tables::write(&mut database.connect().await).await.unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema.rs");
    assert!(
        fs::read_to_string(file).unwrap() == written,
        "src/schema.rs is not up to date, run `cargo xtask generate`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_create_each_partition_once() {
    let database = TestDatabase::create().await;
    let mut conn = database.connect().await;
    let count = "SELECT count(*) AS number FROM pg_class WHERE relispartition AND relkind = 'r'";
    // Last week, this one, and four to come, of four tables.
    assert_eq!(number(&mut conn, count).await, 24);
    for table in ["posts", "scans", "deliveries", "delivery_attempts"] {
        let sql = format!(
            "DO $$ DECLARE one regclass; BEGIN \
             FOR one IN SELECT inhrelid FROM pg_inherits WHERE inhparent = '{table}'::regclass LOOP \
                 EXECUTE 'DROP TABLE ' || one; END LOOP; END $$"
        );
        run(&mut conn, sql).await;
    }
    assert_eq!(number(&mut conn, count).await, 0);

    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let pool = database.pool();
            tokio::spawn(async move {
                let mut conn = pool.get().await.unwrap();
                // A call that waits too long for a lock gives way and is made again, as services do.
                while let Err(error) = ensure_partitions(&mut conn).await {
                    let error = error.to_string();
                    assert!(error.contains("lock timeout"), "{error}");
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(number(&mut conn, count).await, 24);
    ensure_partitions(&mut conn).await.unwrap();
    assert_eq!(number(&mut conn, count).await, 24);
}

#[tokio::test]
async fn a_migration_that_cannot_lock_a_table_gives_way_and_is_retried() {
    let database = TestDatabase::create().await;
    revert_all(database.url()).await.unwrap();
    let mut holder = database.connect().await;
    run(&mut holder, "BEGIN").await;
    run(
        &mut holder,
        "LOCK TABLE __diesel_schema_migrations IN SHARE MODE",
    )
    .await;
    let url = database.url().to_owned();
    let migrating = tokio::spawn(async move { migrate(&url).await });
    let mut other = database.connect().await;
    let waits = "SELECT count(*) AS number FROM pg_locks WHERE NOT granted AND locktype = 'relation' \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    // It waits for the lock, and gives up waiting while the lock is still held.
    for wanted in [1, 0] {
        test_support::eventually("the wait begins and ends", async || {
            number(&mut other, waits).await == wanted
        })
        .await;
    }
    run(&mut holder, "COMMIT").await;
    assert!(!migrating.await.unwrap().unwrap().is_empty());
    let mut conn = database.connect().await;
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), Schema::Suits);
}
