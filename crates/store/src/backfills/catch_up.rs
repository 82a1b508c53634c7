//! Backfills of posts that Managers missed because their account had used up its daily quota of Scans.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Double, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use super::{CATCH_UP, OPEN};
use crate::{
    QueryResult,
    quotas::{HAS_SCANS_LEFT, TODAY},
    refused_posts::MAX_AGE,
};

/// Maximum number of Managers per call.
const AT_ONCE: i64 = 500;
/// Rest of a failed catch-up. It may be what ended the processes that worked on it.
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
    let rows: Vec<Row> = sql_query(format!(
        "SELECT clock.namespace_id, clock.manager_id, clock.refused_since, clock.refused_time \
         FROM scan_clocks AS clock JOIN namespaces AS n ON n.id = clock.namespace_id \
         JOIN accounts AS a ON a.id = n.account_id {TODAY} \
         WHERE clock.refused_since IS NOT NULL AND {HAS_SCANS_LEFT} \
           AND EXISTS (SELECT FROM feed_watchers AS w \
                       WHERE w.namespace_id = clock.namespace_id AND w.manager_id = clock.manager_id) \
         ORDER BY clock.namespace_id, clock.manager_id LIMIT $2"
    ))
    .bind::<BigInt, _>(i64::from(scans_per_day))
    .bind::<BigInt, _>(AT_ONCE)
    .load(conn)
    .await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let namespaces: Vec<Uuid> = rows.iter().map(|row| row.namespace_id).collect();
    let managers: Vec<Uuid> = rows.iter().map(|row| row.manager_id).collect();
    sql_query(format!(
        "INSERT INTO backfills AS b (namespace_id, manager_id, feed, notify, since, catch_up_since) \
         SELECT w.namespace_id, w.manager_id, w.feed, true, given.since, given.since \
         FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, since) \
         JOIN feed_watchers AS w ON w.namespace_id = given.namespace_id AND w.manager_id = given.manager_id \
         ORDER BY w.namespace_id, w.manager_id, w.feed \
         ON CONFLICT (namespace_id, manager_id, feed, notify) DO UPDATE \
             SET since = least(excluded.since, CASE WHEN {OPEN} \
                     THEN coalesce(b.since, b.create_time - $4 * interval '1 second') END, {CATCH_UP}), \
                 catch_up_since = least(excluded.catch_up_since, {CATCH_UP}), \
                 state = 'WAITING', look_back_id = NULL, before = NULL, reach_time = NULL, \
                 failure_count = 0, error = NULL, next_time = NULL, \
                 create_time = clock_timestamp(), update_time = clock_timestamp()"
    ))
    .bind::<Array<SqlUuid>, _>(&namespaces)
    .bind::<Array<SqlUuid>, _>(&managers)
    .bind::<Array<Timestamptz>, _>(rows.iter().map(|row| row.refused_since).collect::<Vec<_>>())
    .bind::<Double, _>(window.as_secs_f64())
    .execute(conn)
    .await?;
    sql_query(
        "WITH locked AS ( \
             SELECT clock.namespace_id, clock.manager_id FROM scan_clocks AS clock \
             JOIN unnest($1, $2, $3) AS given (namespace_id, manager_id, refused_time) \
                 ON clock.namespace_id = given.namespace_id AND clock.manager_id = given.manager_id \
                    AND clock.refused_time = given.refused_time \
             ORDER BY clock.namespace_id, clock.manager_id FOR UPDATE OF clock) \
         UPDATE scan_clocks AS clock SET refused_since = NULL FROM locked \
         WHERE clock.namespace_id = locked.namespace_id AND clock.manager_id = locked.manager_id",
    )
    .bind::<Array<SqlUuid>, _>(&namespaces)
    .bind::<Array<SqlUuid>, _>(&managers)
    .bind::<Array<Timestamptz>, _>(rows.iter().map(|row| row.refused_time).collect::<Vec<_>>())
    .execute(conn)
    .await
}

/// Starts failed catch-ups again, once a day and as long as refused posts are kept. Returns their number. Served by
/// `backfills_ended_idx`.
///
/// [`catch_up`] has removed the note from the clock. Noted again, the posts would be requested again within a second.
pub async fn retry_failed(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    sql_query(
        "UPDATE backfills AS b SET state = 'WAITING', before = NULL, reach_time = NULL, \
             failure_count = 0, error = NULL, next_time = NULL, update_time = clock_timestamp() \
         FROM feed_watchers AS w \
         WHERE w.feed = b.feed AND w.namespace_id = b.namespace_id AND w.manager_id = b.manager_id \
           AND b.state = 'FAILED' AND b.update_time < clock_timestamp() - $1 * interval '1 second' \
           AND b.catch_up_since IS NOT NULL \
           AND b.create_time > clock_timestamp() - $2 * interval '1 second'",
    )
    .bind::<Double, _>(REST.as_secs_f64())
    .bind::<Double, _>(MAX_AGE.as_secs_f64())
    .execute(conn)
    .await
}
