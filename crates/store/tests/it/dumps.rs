//! Retention and migrations next to `pg_dump`, which keeps one snapshot and a lock on each table until it ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use diesel_async::AsyncPgConnection;
use domain::{Id, ManagerName, Timestamp};
use store::{
    Pool,
    migrations::{self, Schema},
    retention::{self, Dropped, Table},
};
use test_support::{LATER_VERSION, eventually, run_later_migration};

use crate::{
    rows,
    support::{number, run, start},
};

const OLD: &str =
    "date_trunc('week', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' - interval '60 days'";
const KEPT: Duration = Duration::from_secs(30 * 86_400);
const PAUSE: Duration = Duration::from_millis(100);

/// A migration that locks a table with rows.
const MIGRATION: &str = "ALTER TABLE api_keys ADD COLUMN later text";

/// Partitioned tables, in the order in which retention drops their old weeks.
const PARTITIONED: [Table; 4] = [
    Table::Deliveries,
    Table::DeliveryAttempts,
    Table::Scans,
    Table::Posts,
];

/// Locks every table as `pg_dump` does.
const DUMP: &str = "DO $$ DECLARE one regclass; BEGIN \
    FOR one IN SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') LOOP \
        EXECUTE 'LOCK TABLE ONLY ' || one || ' IN ACCESS SHARE MODE'; END LOOP; END $$";

const ALL_SCANS: &str = "SELECT count(*) AS number FROM scans";
/// The migration's wait for its lock.
const MIGRATION_WAITS: &str = "SELECT count(*) AS number FROM pg_locks WHERE NOT granted \
    AND relation = 'api_keys'::regclass AND mode = 'AccessExclusiveLock' \
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";

/// Reads and writes each table in turn, like services: every statement must get its lock in time. Counts rounds.
async fn serve(pool: Pool, rounds: Arc<AtomicUsize>) {
    let tables = PARTITIONED.map(Table::as_str);
    loop {
        let mut conn = pool.get().await.unwrap();
        for table in tables.into_iter().chain(["api_keys"]) {
            run(&mut conn, format!("SELECT FROM {table} LIMIT 1")).await;
            // Locks the partitions too, because the time is known only when it runs.
            let none = format!("DELETE FROM {table} WHERE now() < '2000-01-01'");
            assert_eq!(run(&mut conn, none).await, 0);
        }
        rounds.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE / 10).await;
    }
}

/// Drops all old partitions, and tries again when others use a table. Counts these times.
async fn drop_old(mut conn: AsyncPgConnection, busy: Arc<AtomicUsize>) {
    for table in PARTITIONED {
        let old = retention::older_than(&mut conn, table, KEPT, Timestamp::now()).await;
        let old = old.unwrap();
        assert_eq!(old.len(), 1, "{table:?}");
        loop {
            match retention::drop_partition(&mut conn, &old[0]).await.unwrap() {
                Dropped::Dropped => break,
                Dropped::Busy => busy.fetch_add(1, Ordering::Relaxed),
                other => panic!("{table:?}: {other:?}"),
            };
            tokio::time::sleep(PAUSE).await;
        }
    }
}

#[tokio::test]
async fn retention_and_migrations_wait_for_a_dump_and_keep_no_one_waiting() {
    let mut at = start().await;
    for table in PARTITIONED {
        rows::partition(&mut at.conn, table.as_str(), OLD).await;
    }
    let connection = at.fixture.connection(&mut at.conn, "https://a.example/");
    let connection = connection.await;
    let manager = ManagerName {
        namespace: at.fixture.namespace,
        manager: Id::generate(),
    };
    for newest in [OLD, "now()"] {
        let (state, step) = ("'SUCCEEDED'", "1 minute");
        rows::deliveries(&mut at.conn, connection, manager, 30, newest, step, state).await;
    }

    let isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ";
    let mut dump = at.database.begin(&[isolation, DUMP]).await;
    assert_eq!(number(&mut dump, ALL_SCANS).await, 60);
    let url = at.database.url().to_owned();
    let migrating = tokio::spawn(async move { run_later_migration(&url, MIGRATION, true).await });
    let busy = Arc::<AtomicUsize>::default();
    let dropping = drop_old(at.database.connect().await, Arc::clone(&busy));
    let dropping = tokio::spawn(dropping);
    let rounds = Arc::<AtomicUsize>::default();
    let services = tokio::spawn(serve(at.database.pool(), Arc::clone(&rounds)));

    // The migration waits for its lock, gives way, and tries again.
    for waits in [1, 0, 1, 0] {
        eventually("the wait begins and ends", async || {
            number(&mut at.conn, MIGRATION_WAITS).await == waits
        })
        .await;
    }
    let tries = busy.load(Ordering::Relaxed);
    let done = rounds.load(Ordering::Relaxed);
    eventually("all go on during the dump", async || {
        assert!(!services.is_finished(), "a statement got no lock in time");
        busy.load(Ordering::Relaxed) >= tries + 2 && rounds.load(Ordering::Relaxed) >= done + 20
    })
    .await;
    assert!(!migrating.is_finished() && !dropping.is_finished());
    // What is past retention is still there, also for others.
    assert_eq!(number(&mut dump, ALL_SCANS).await, 60);
    assert_eq!(number(&mut at.conn, ALL_SCANS).await, 60);

    run(&mut dump, "COMMIT").await;
    assert_eq!(migrating.await.unwrap().unwrap(), [LATER_VERSION]);
    let found = migrations::schema(&mut at.conn).await.unwrap();
    assert_eq!(found, Schema::Suits);
    dropping.await.unwrap();
    assert_eq!(number(&mut at.conn, ALL_SCANS).await, 30);
    let done = rounds.load(Ordering::Relaxed);
    eventually("services go on afterwards", async || {
        assert!(!services.is_finished(), "a statement got no lock in time");
        rounds.load(Ordering::Relaxed) > done
    })
    .await;
    services.abort();
}
