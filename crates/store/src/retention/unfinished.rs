//! Deliveries that will never be finished, because they are too old or have nothing left to send.

use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

/// Marks up to `limit` waiting deliveries from before `before` as `expired`, and returns their number. Leaves out
/// deliveries that a dispatcher is sending. Served by `deliveries_due_by_connection_idx` of these partitions.
pub async fn exhaust_expired(
    conn: &mut AsyncPgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> QueryResult<usize> {
    query!(
        "retention/exhaust_expired",
        Timestamptz: before,
        BigInt: limit,
    )
    .execute(conn)
    .await
}

/// Ends up to `limit` waiting deliveries whose Scan is older than `scans_from` and therefore deleted: there is
/// nothing left to send, so they must not be retried for ever. Returns their number.
pub async fn exhaust_without_scan(
    conn: &mut AsyncPgConnection,
    scans_from: DateTime<Utc>,
    limit: i64,
) -> QueryResult<usize> {
    query!(
        "retention/exhaust_without_scan",
        SqlUuid: super::keys::first_id_of(scans_from),
        BigInt: limit,
    )
    .execute(conn)
    .await
}
