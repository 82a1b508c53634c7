//! When digests are due, and how long their Scans are kept.

use domain::ConnectionName;
use store::digests;

use crate::support::{Start, start};

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
