use std::{fs, path::Path, time::Duration};

use store::migrations::{self, REQUIRED_VERSION, Schema, ensure_partitions, migrate, revert_all};
use test_support::TestDatabase;

use crate::{
    support::{number, run},
    tables,
};

async fn emptied() -> TestDatabase {
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
async fn migrations_go_up_down_and_up_again() {
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

#[tokio::test(flavor = "multi_thread")]
async fn two_at_once_migrate_once() {
    let database = emptied().await;
    let (one, two) = tokio::join!(migrate(database.url()), migrate(database.url()));
    let mut counts = [one.unwrap().len(), two.unwrap().len()];
    counts.sort_unstable();
    assert_eq!(counts[0], 0);
    assert!(counts[1] > 0);
}

#[tokio::test]
async fn an_older_schema_is_told_from_a_newer() {
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
async fn the_schema_in_rust_is_that_of_a_migrated_database() {
    let database = TestDatabase::create().await;
    let written = tables::write(&mut database.connect().await).await.unwrap();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema.rs");
    assert!(
        fs::read_to_string(file).unwrap() == written,
        "src/schema.rs is not up to date, run `cargo xtask generate`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_are_made_once_by_many_at_once() {
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
            tokio::spawn(async move { ensure_partitions(&mut pool.get().await.unwrap()).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(number(&mut conn, count).await, 24);
    ensure_partitions(&mut conn).await.unwrap();
    assert_eq!(number(&mut conn, count).await, 24);
}

#[tokio::test]
async fn a_migration_that_cannot_lock_a_table_lets_others_through_and_is_run_again() {
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
        test_support::eventually(
            "the wait begins and ends",
            Duration::from_secs(30),
            async || number(&mut other, waits).await == wanted,
        )
        .await;
    }
    run(&mut holder, "COMMIT").await;
    assert!(!migrating.await.unwrap().unwrap().is_empty());
    let mut conn = database.connect().await;
    assert_eq!(migrations::schema(&mut conn).await.unwrap(), Schema::Suits);
}
