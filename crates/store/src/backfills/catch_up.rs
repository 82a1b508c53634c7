//! Backfills of posts that Managers missed because their account had used up its daily quota of Scans.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Double, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, refused_posts::MAX_AGE};

/// Maximum number of Managers per call.
const AT_ONCE: i64 = 500;
/// Rest of a failed catch-up, which may have crashed the processes that worked on it.
const REST: Duration = Duration::from_hours(24);

/// Requests backfills for Managers whose posts were refused and whose account has Scans left today, from the oldest
/// refused post on. `window` is how far back the backfill at a first apply reaches. Returns the number of Managers.
///
/// Two statements, each a transaction: in the order of locks, backfills come before clocks, but a deletion locks
/// the clock before the Manager. A crash between them repeats the request. A post that is refused between them
/// keeps the mark on the clock, by `refused_time`. Served by `scan_clocks_refused_idx`.
///
/// # Errors
/// If the database does not answer, or a Manager is deleted meanwhile; the next call leaves it out.
pub async fn catch_up(
    conn: &mut AsyncPgConnection,
    window: Duration,
    scans_per_day: u32,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        refused_since: DateTime<Utc>,
        #[diesel(sql_type = Timestamptz)]
        refused_time: DateTime<Utc>,
    }
    // A disabled Manager has no feeds: it waits until it is enabled.
    let rows: Vec<Row> = query!(
        "backfills/find_refused",
        BigInt: i64::from(scans_per_day),
        BigInt: AT_ONCE,
    )
    .load(conn)
    .await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let namespaces: Vec<Uuid> = rows.iter().map(|row| row.namespace_id).collect();
    let managers: Vec<Uuid> = rows.iter().map(|row| row.manager_id).collect();
    query!(
        "backfills/catch_up",
        Array<SqlUuid>: &namespaces,
        Array<SqlUuid>: &managers,
        Array<Timestamptz>: rows.iter().map(|row| row.refused_since).collect::<Vec<_>>(),
        Double: window.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    query!(
        "backfills/clear_refused",
        Array<SqlUuid>: &namespaces,
        Array<SqlUuid>: &managers,
        Array<Timestamptz>: rows.iter().map(|row| row.refused_time).collect::<Vec<_>>(),
    )
    .execute(conn)
    .await
}

/// Starts failed catch-ups again, once a day and as long as refused posts are kept. Returns their number. Served by
/// `backfills_ended_idx`.
///
/// [`catch_up`] has removed the mark from the clock. If it were set again, the posts would be requested again within a
/// second.
pub async fn retry_failed(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!(
        "backfills/retry_failed",
        Double: REST.as_secs_f64(),
        Double: MAX_AGE.as_secs_f64(),
    )
    .execute(conn)
    .await
}
