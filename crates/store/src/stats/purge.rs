//! Removes points that are too old, and those of deleted Namespaces.
//!
//! The caller bounds each batch, so that no statement locks many rows.

use diesel::{
    sql_query,
    sql_types::{BigInt, Integer, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, Timestamp, stats::Interval};

use super::seconds;
use crate::QueryResult;

/// Deletes up to `limit` points of each kind that are older than [`Interval::retention`]; returns how
/// many there were. Served by `stats_retention_idx` and `feed_stats_retention_idx`.
pub async fn purge_old(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    limit: i64,
) -> QueryResult<usize> {
    let mut purged = 0;
    for interval in Interval::ALL {
        for table in ["stats", "feed_stats"] {
            purged += sql_query(format!(
                "DELETE FROM {table} WHERE ctid = ANY (ARRAY(SELECT ctid FROM {table} \
                 WHERE interval_seconds = $1 AND time < $2 ORDER BY time LIMIT $3))"
            ))
            .bind::<Integer, _>(seconds(interval))
            .bind::<Timestamptz, _>(now.minus(interval.retention()).to_chrono())
            .bind::<BigInt, _>(limit)
            .execute(conn)
            .await?;
        }
    }
    Ok(purged)
}

/// Deletes up to `limit` points of `namespace`; returns how many there were. Served by `stats_pkey`.
pub async fn purge_namespace(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    limit: i64,
) -> QueryResult<usize> {
    sql_query(
        "DELETE FROM stats WHERE ctid = ANY (ARRAY(SELECT ctid FROM stats WHERE namespace_id = $1 LIMIT $2))",
    )
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}

/// Deletes up to `limit` points of a Manager or Connection of `namespace`. The Namespace's own points keep their
/// sums. Served by `stats_pkey`.
pub async fn purge_subject(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    subject: Id,
    limit: i64,
) -> QueryResult<usize> {
    sql_query(
        "DELETE FROM stats WHERE ctid = ANY (ARRAY( \
             SELECT ctid FROM stats WHERE namespace_id = $1 AND subject_id = $2 LIMIT $3))",
    )
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .bind::<SqlUuid, _>(subject.to_uuid())
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}

/// Deletes up to `limit` points whose Namespace is gone: a delta may be folded after its Namespace was
/// deleted. Returns how many there were. Looks up each Namespace that has points once, in `stats_pkey`.
pub async fn purge_orphans(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
    sql_query(
        "WITH RECURSIVE known AS ( \
             (SELECT namespace_id FROM stats ORDER BY namespace_id LIMIT 1) \
             UNION ALL \
             SELECT (SELECT s.namespace_id FROM stats AS s WHERE s.namespace_id > known.namespace_id \
                     ORDER BY s.namespace_id LIMIT 1) \
             FROM known WHERE known.namespace_id IS NOT NULL \
         ) \
         DELETE FROM stats WHERE ctid = ANY (ARRAY( \
             SELECT s.ctid FROM known CROSS JOIN LATERAL ( \
                 SELECT ctid FROM stats WHERE namespace_id = known.namespace_id LIMIT $1 \
             ) AS s \
             WHERE NOT EXISTS (SELECT FROM namespaces AS n WHERE n.id = known.namespace_id) LIMIT $1))",
    )
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}
