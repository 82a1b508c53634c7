//! Deliveries that will never be finished, because they are too old or have nothing left to send.

use chrono::{DateTime, Utc};
use diesel::{
    sql_query,
    sql_types::{BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// Marks up to `limit` waiting deliveries from before `before` as `expired`, and returns their number. Leaves out
/// deliveries that a dispatcher is sending. Served by `deliveries_due_by_connection_idx` of these partitions.
pub async fn exhaust_expired(
    conn: &mut AsyncPgConnection,
    before: DateTime<Utc>,
    limit: i64,
) -> QueryResult<usize> {
    sql_query(
        "UPDATE deliveries AS d SET state = 'EXHAUSTED', last_error = 'expired', next_attempt_time = NULL, \
             urgent = false, update_time = clock_timestamp() \
         FROM (SELECT namespace_id, connection_id, create_time, id FROM deliveries \
               WHERE state IN ('PENDING', 'RETRYING') AND create_time < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) AS old \
         WHERE d.namespace_id = old.namespace_id AND d.connection_id = old.connection_id \
           AND d.create_time = old.create_time AND d.id = old.id",
    )
    .bind::<Timestamptz, _>(before)
    .bind::<BigInt, _>(limit)
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
    sql_query(
        "UPDATE deliveries AS d SET state = 'EXHAUSTED', last_error = 'scan_expired', next_attempt_time = NULL, \
             urgent = false, update_time = clock_timestamp() \
         FROM (SELECT namespace_id, connection_id, create_time, id FROM deliveries \
               WHERE state IN ('PENDING', 'RETRYING') AND scan_id < $1 LIMIT $2 FOR UPDATE SKIP LOCKED) AS old \
         WHERE d.namespace_id = old.namespace_id AND d.connection_id = old.connection_id \
           AND d.create_time = old.create_time AND d.id = old.id",
    )
    .bind::<SqlUuid, _>(super::keys::first_id_of(scans_from))
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}
