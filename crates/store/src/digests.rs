//! Digests: Scans that are gathered for one mail of an hour or a day.
//!
//! The fan-out gathers a Scan in the transaction that marks it, and [`make`] takes all of a period in the statement that
//! inserts their delivery. So a Scan is in exactly one digest, wherever a process dies. A digest is sent, retried and
//! logged like any other delivery.

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, ScanName};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, work::table};

/// Kind of the work that makes digests.
pub const KIND: &str = "digest";
/// Maximum number of ended digests that one call of [`settle`] handles.
const SETTLED: i64 = 100;

/// Returns the enabled Connections with Scans of a period that is over, of each account the longest due first, without those with
/// the keys `known`. Served by `digest_scans_gathered_idx`.
pub async fn due(
    conn: &mut AsyncPgConnection,
    known: &[String],
) -> QueryResult<Vec<table::Due<ConnectionName>>> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        account_id: Uuid,
    }
    let found: Vec<Found> = query!(
        "digests/due",
        Array<Text>: known,
    )
    .load(conn)
    .await?;
    let due = found.into_iter().map(|one| table::Due {
        key: one.connection_id.to_string(),
        accounts: vec![Id::from_uuid(one.account_id)],
        item: ConnectionName {
            namespace: Id::from_uuid(one.namespace_id),
            connection: Id::from_uuid(one.connection_id),
        },
    });
    Ok(due.collect())
}

/// Makes the delivery of the oldest 20,000 Scans of all periods that are over; others stay due. Returns false if there are
/// none, none that still exists, or no Connection. Call [`crate::lanes::mark_due`] afterwards.
pub async fn make(conn: &mut AsyncPgConnection, name: ConnectionName) -> QueryResult<bool> {
    let delivery = Id::generate();
    let made = query!(
        "digests/make",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.connection.to_uuid(),
        SqlUuid: delivery.to_uuid(),
        Timestamptz: delivery.time().to_chrono(),
    )
    .execute(conn)
    .await?;
    Ok(made > 0)
}

/// Forgets digests whose deliveries have ended. A delivery that was cancelled because its newest Scan or post was deleted
/// continues with the others. Returns the Connections of these, for [`crate::lanes::mark_due`].
pub async fn settle(conn: &mut AsyncPgConnection) -> QueryResult<Vec<ConnectionName>> {
    #[derive(QueryableByName)]
    struct Continued {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
    }
    let continued: Vec<Continued> = query!(
        "digests/settle",
        BigInt: SETTLED,
    )
    .load(conn)
    .await?;
    let names = continued.into_iter().map(|one| ConnectionName {
        namespace: Id::from_uuid(one.namespace_id),
        connection: Id::from_uuid(one.connection_id),
    });
    Ok(names.collect())
}

/// Returns the newest Scans of a digest, up to `limit`, and the number of all. Empty for any other delivery. Served by
/// `digest_scans_delivery_idx`.
pub async fn scans(
    conn: &mut AsyncPgConnection,
    delivery: Id,
    limit: i64,
) -> QueryResult<(Vec<ScanName>, i64)> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        scan_id: Uuid,
        #[diesel(sql_type = BigInt)]
        total: i64,
    }
    let found: Vec<Found> = query!(
        "digests/scans",
        SqlUuid: delivery.to_uuid(),
        BigInt: limit,
    )
    .load(conn)
    .await?;
    // Each row has it.
    let total = found.last().map_or(0, |one| one.total);
    let scans = found.iter().map(|one| ScanName {
        namespace: Id::from_uuid(one.namespace_id),
        manager: Id::from_uuid(one.manager_id),
        scan: Id::from_uuid(one.scan_id),
    });
    Ok((scans.collect(), total))
}
