//! When digests are due, and how long their Scans are kept.

use std::time::Duration;

use domain::{ConnectionName, Id, ScanName, Timestamp};
use store::{
    AsyncConnection, AsyncPgConnection, connections,
    deliveries::{self, Want},
    digests, keyed, managers,
    namespaces::Deletion,
    retention,
    roles::Service,
};
use test_support::{TestDatabase, eventually, instructions, post};
use uuid::Uuid;

use crate::support::{Start, purge_step, record, start};

const DAY: Duration = Duration::from_secs(86_400);

/// A Connection that has gathered a Scan.
async fn gathered(at: &mut Start, zone: &str, create_time: &str) -> ConnectionName {
    let url = "https://receiver.example/";
    let name = at.fixture.connection(&mut at.conn, url).await;
    let (namespace, id) = (name.namespace.to_uuid(), name.connection.to_uuid());
    for sql in [
        format!("UPDATE connections SET digest = 'HOURLY', time_zone = '{zone}' WHERE id = '{id}'"),
        format!(
            "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time) \
             VALUES ('{namespace}', '{id}', gen_random_uuid(), gen_random_uuid(), '{create_time}')"
        ),
    ] {
        assert_eq!(at.database.run(&sql).await, 1);
    }
    name
}

/// A Connection that has gathered a Scan of each of two Managers; the newer Scan is the last.
async fn gathered_of_two(at: &mut Start) -> (ConnectionName, [ScanName; 2]) {
    let url = "https://receiver.example/";
    let name = at.fixture.connection(&mut at.conn, url).await;
    let mut scans = Vec::new();
    for number in ["1", "2"] {
        let manager = at
            .fixture
            .applied_manager(&mut at.conn, &instructions("rust"), &[name])
            .await;
        scans.extend(record(&mut at.conn, manager, &[post(number, "Rust")]).await);
    }
    scans.sort_by_key(|scan| scan.scan);
    at.database
        .run("UPDATE connections SET digest = 'HOURLY'")
        .await;
    let gather = format!(
        "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time) \
         SELECT namespace_id, '{}', manager_id, id, '2026-01-01 00:00Z' FROM scans",
        name.connection.to_uuid()
    );
    assert_eq!(at.database.run(&gather).await, 2);
    (name, scans.try_into().unwrap())
}

/// Sets the database's clock, for connections that are opened afterwards.
async fn set_clock(database: &TestDatabase, time: &str) {
    database.skew_clock("0 seconds").await;
    let clock = format!(
        "CREATE OR REPLACE FUNCTION skewed.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE \
         AS $$ SELECT timestamptz '{time}' $$"
    );
    database.run(&clock).await;
}

#[tokio::test]
async fn digest_waits_for_scans_that_are_committed_after_its_period() {
    let mut at = start().await;
    gathered(&mut at, "UTC", "2026-01-01 10:59:59Z").await;
    for (now, count) in [("2026-01-01 11:00:14Z", 0), ("2026-01-01 11:00:15Z", 1)] {
        set_clock(&at.database, now).await;
        let mut conn = at.database.connect().await;
        let due = digests::due(&mut conn, &[]).await.unwrap();
        assert_eq!(due.len(), count, "{now}");
    }
}

#[tokio::test]
async fn unknown_time_zone_counts_as_utc() {
    let mut at = start().await;
    let strange = gathered(&mut at, "Mars/Olympus", "2026-01-01 00:00Z").await;
    gathered(&mut at, "Europe/Berlin", "2026-01-01 00:00Z").await;
    let due = digests::due(&mut at.conn, &[]).await.unwrap();
    assert_eq!(due.len(), 2);
    // Its Scan does not exist.
    assert!(!digests::make(&mut at.conn, strange).await.unwrap());
    assert_eq!(digests::due(&mut at.conn, &[]).await.unwrap().len(), 1);
}

#[tokio::test]
async fn disabled_connection_gathers_for_one_digest() {
    let mut at = start().await;
    gathered(&mut at, "UTC", "2026-01-01 00:00Z").await;
    for (state, count) in [("DISABLED", 0), ("ACTIVE", 1)] {
        let sql = format!("UPDATE connections SET state = '{state}'");
        at.database.run(&sql).await;
        let due = digests::due(&mut at.conn, &[]).await.unwrap();
        assert_eq!(due.len(), count, "{state}");
    }
}

/// A digest's delivery names only its newest Scan.
#[tokio::test]
async fn digest_continues_without_the_scans_of_a_deleted_manager() {
    let mut at = start().await;
    let (name, [other, newest]) = gathered_of_two(&mut at).await;
    assert!(digests::make(&mut at.conn, name).await.unwrap());
    let now = Timestamp::now();
    managers::delete(&mut at.conn, newest.manager_name(), now)
        .await
        .unwrap();
    let url = at.database.url_of(Service::Compiler);
    let mut compiler = AsyncPgConnection::establish(&url).await.unwrap();
    while purge_step(&mut compiler).await.is_some() {}
    assert_eq!(at.database.count("scans").await, 1);

    let (replica, sealer) = (Uuid::new_v4(), &at.fixture.sealer);
    let want = Want {
        connection: name,
        count: 1,
    };
    let claimed = deliveries::claim(&mut at.conn, sealer, replica, &[want]).await;
    assert_eq!(claimed.unwrap().len(), 0);
    let freed = deliveries::free_orphans(&mut at.conn, replica, &[], Duration::ZERO, false).await;
    assert_eq!(freed.unwrap().len(), 1);
    assert_eq!(digests::settle(&mut at.conn).await.unwrap(), [name]);
    let left = at
        .database
        .texts("state || ' ' || scan_id", "deliveries")
        .await;
    assert_eq!(left, [format!("PENDING {}", other.scan.to_uuid())]);
    assert_eq!(at.database.count("digests").await, 1);
}

#[tokio::test]
async fn no_digest_is_made_while_its_connection_is_deleted() {
    let mut at = start().await;
    let (name, _) = gathered_of_two(&mut at).await;
    let database = &at.database;
    let mut other = database.connect().await;
    keyed::begin(&mut at.conn).await.unwrap();
    let deletion = connections::delete(&mut at.conn, name, true, Timestamp::now()).await;
    assert_eq!(deletion.unwrap(), Deletion::Done(vec![]));
    let digest = digests::make(&mut other, name);
    let committed = async {
        eventually("the digest waits", async || {
            let waits =
                "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            database.count(waits).await == 1
        })
        .await;
        let ended: Result<(), store::Error> = keyed::end(&mut at.conn, Ok(())).await;
        ended.unwrap();
    };
    let (made, ()) = tokio::join!(digest, committed);
    assert!(!made.unwrap());
    let with_delivery = "digest_scans WHERE delivery_id IS NOT NULL";
    assert_eq!(database.count(with_delivery).await, 0);
}

#[tokio::test]
async fn digest_does_not_name_a_scan_whose_post_was_deleted() {
    let mut at = start().await;
    let (name, [other, newest]) = gathered_of_two(&mut at).await;
    let erase = format!(
        "UPDATE posts SET erase_time = now() WHERE id = (SELECT post_id FROM scans WHERE id = '{}')",
        newest.scan.to_uuid()
    );
    assert_eq!(at.database.run(&erase).await, 1);
    assert!(digests::make(&mut at.conn, name).await.unwrap());
    let named = at.database.texts("scan_id", "deliveries").await;
    assert_eq!(named, [other.scan.to_uuid().to_string()]);
}

#[tokio::test]
async fn scans_that_are_too_many_for_one_digest_get_another() {
    let mut at = start().await;
    let (name, [_, newest]) = gathered_of_two(&mut at).await;
    // Scans that do not exist any more.
    let many = "INSERT INTO digest_scans (namespace_id, connection_id, manager_id, scan_id, create_time) \
                SELECT namespace_id, connection_id, manager_id, gen_random_uuid(), create_time - interval '1 hour' \
                FROM digest_scans, generate_series(1, 10000)";
    assert_eq!(at.database.run(many).await, 20_000);
    assert!(!digests::make(&mut at.conn, name).await.unwrap());
    assert_eq!(digests::due(&mut at.conn, &[]).await.unwrap().len(), 1);
    assert!(digests::make(&mut at.conn, name).await.unwrap());
    let named = at.database.texts("scan_id", "deliveries").await;
    assert_eq!(named, [newest.scan.to_uuid().to_string()]);
    assert_eq!(digests::due(&mut at.conn, &[]).await.unwrap().len(), 0);
}

/// Since when deliveries are kept.
fn before() -> Timestamp {
    Timestamp::now().minus(30 * DAY)
}

/// Deliveries are dropped by whole weeks.
#[tokio::test]
async fn scans_of_a_digest_are_kept_as_long_as_its_delivery() {
    let mut at = start().await;
    for _ in 0..3 {
        gathered(&mut at, "UTC", "2020-01-01 00:00Z").await;
    }
    for days in [38, 36] {
        let delivery = Id::at(Timestamp::now().minus(days * DAY)).to_uuid();
        let sql = format!(
            "UPDATE digest_scans SET delivery_id = '{delivery}' WHERE scan_id = ( \
             SELECT scan_id FROM digest_scans WHERE delivery_id IS NULL LIMIT 1)"
        );
        assert_eq!(at.database.run(&sql).await, 1);
    }
    let purged = retention::purge_digests(&mut at.conn, before(), 10).await;
    assert_eq!(purged.unwrap(), 1);
    let left = "count(delivery_id) || ' of ' || count(*)";
    let left = at.database.texts(left, "digest_scans").await;
    assert_eq!(left, ["1 of 2"]);
}

#[tokio::test]
async fn scans_of_a_disabled_or_deleted_connection_wait_as_long_as_deliveries_are_kept() {
    let mut at = start().await;
    let long_ago = "2020-01-01 00:00Z";
    gathered(&mut at, "UTC", long_ago).await;
    let recent = gathered(&mut at, "UTC", "now").await;
    at.database
        .run("UPDATE connections SET state = 'DISABLED'")
        .await;
    let active = gathered(&mut at, "UTC", long_ago).await;
    let gone = gathered(&mut at, "UTC", long_ago).await;
    let delete = format!(
        "DELETE FROM connections WHERE id = '{}'",
        gone.connection.to_uuid()
    );
    assert_eq!(at.database.run(&delete).await, 1);
    let purged = retention::purge_digests(&mut at.conn, before(), 10).await;
    assert_eq!(purged.unwrap(), 2);
    let left = "digest_scans ORDER BY create_time";
    let left = at.database.texts("connection_id", left).await;
    assert_eq!(
        left,
        [active, recent].map(|name| name.connection.to_uuid().to_string())
    );
}
