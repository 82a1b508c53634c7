//! Removes points that are too old, and those of deleted Namespaces.
//!
//! The caller bounds each batch, so that no statement locks many rows.

use diesel::sql_types::{BigInt, Integer, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, Timestamp, stats::Interval};

use super::seconds;
use crate::{QueryResult, prepared::query};

/// Deletes up to `limit` points of each kind that are older than [`Interval::retention`]; returns how
/// many there were. Served by `stats_retention_idx` and `feed_stats_retention_idx`.
pub async fn purge_old(
    conn: &mut AsyncPgConnection,
    now: Timestamp,
    limit: i64,
) -> QueryResult<usize> {
    let mut purged = 0;
    for interval in Interval::ALL {
        let before = now.minus(interval.retention()).to_chrono();
        let stats = query!(
            "stats/purge_stats",
            Integer: seconds(interval),
            Timestamptz: before,
            BigInt: limit,
        );
        let feed_stats = query!(
            "stats/purge_feed_stats",
            Integer: seconds(interval),
            Timestamptz: before,
            BigInt: limit,
        );
        purged += stats.execute(conn).await? + feed_stats.execute(conn).await?;
    }
    Ok(purged)
}

/// Deletes up to `limit` points of `namespace`; returns how many there were. Served by `stats_pkey`.
pub async fn purge_namespace(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    limit: i64,
) -> QueryResult<usize> {
    query!(
        "stats/purge_namespace",
        SqlUuid: namespace.to_uuid(),
        BigInt: limit,
    )
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
    query!(
        "stats/purge_subject",
        SqlUuid: namespace.to_uuid(),
        SqlUuid: subject.to_uuid(),
        BigInt: limit,
    )
    .execute(conn)
    .await
}

/// Deletes up to `limit` points whose Namespace is gone: a delta may be folded after its Namespace was
/// deleted. Returns how many there were. Looks up each Namespace that has points once, in `stats_pkey`.
pub async fn purge_orphans(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
    query!(
        "stats/purge_orphans",
        BigInt: limit,
    )
    .execute(conn)
    .await
}
