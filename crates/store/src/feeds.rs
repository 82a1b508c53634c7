//! Feeds: leased to one scanner at a time, polled once for all Managers that watch them.

use std::{cmp::Reverse, time::Duration};

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::FeedName;
use uuid::Uuid;

use crate::{QueryResult, replicas, words};

/// A feed in the hands of one scanner.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedFeed {
    pub name: FeedName,
    /// In the form of the platform's adapter; `None` before the first poll.
    pub cursor: Option<serde_json::Value>,
    /// How many polls have failed in a row.
    pub failure_count: u32,
    /// How long after its due time the lease was taken.
    pub late: Duration,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<Jsonb>)]
    cursor: Option<serde_json::Value>,
    #[diesel(sql_type = Integer)]
    failure_count: i32,
    #[diesel(sql_type = Double)]
    late_seconds: f64,
}

/// The condition that a feed can be leased: to the replica `$2`, which has `$3` open and may take over
/// if `$4`. By its own heartbeat nobody judges its own leases: a poll that it has open is its own
/// however long the database was away.
fn free() -> String {
    let alive = replicas::ALIVE;
    format!(
        "watched AND name <> ALL ($3) \
         AND (leased_by IS NULL OR leased_by = $2 OR $4 AND NOT leased_by {alive})"
    )
}

/// Leases up to `limit` due feeds of `platform` to `replica`, oldest first.
///
/// Rows that another scanner is leasing are skipped. A lease lives as long as the replica knows of it:
/// `open` are the polls that it has in hand, so that one which could not be released, or panicked, is
/// taken up again. It ends with its replica's heartbeat for those that may `take_over`.
/// Served by the partial index `feeds_due_idx`.
///
/// # Errors
/// When the database does not answer.
pub async fn lease_due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    open: &[String],
    take_over: bool,
    limit: i64,
) -> QueryResult<Vec<LeasedFeed>> {
    let free = free();
    let rows: Vec<Row> = sql_query(format!(
        "WITH due AS ( \
             SELECT name FROM feeds \
             WHERE platform = $1 AND {free} AND next_poll_time <= clock_timestamp() \
             ORDER BY next_poll_time LIMIT $5 FOR UPDATE SKIP LOCKED \
         ) UPDATE feeds SET leased_by = $2 FROM due WHERE feeds.name = due.name \
         RETURNING feeds.name, cursor, failure_count, \
             extract(epoch FROM clock_timestamp() - next_poll_time)::float8 AS late_seconds"
    ))
    .bind::<Text, _>(platform)
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<Text>, _>(open)
    .bind::<Bool, _>(take_over)
    .bind::<BigInt, _>(limit)
    .load(conn)
    .await?;
    let mut leased: Vec<LeasedFeed> = rows
        .into_iter()
        .filter_map(|row| {
            // Names are parsed before they are stored; one that is not is nobody's to poll.
            Some(LeasedFeed {
                name: row.name.parse().ok()?,
                cursor: row.cursor,
                failure_count: row.failure_count.try_into().unwrap_or(0),
                late: Duration::try_from_secs_f64(row.late_seconds).unwrap_or_default(),
            })
        })
        .collect();
    // An UPDATE returns its rows in no order.
    leased.sort_by_key(|feed| Reverse(feed.late));
    Ok(leased)
}

/// How long until the next feed that [`lease_due`] would lease falls due; `None` when there is none.
/// What `replica` has leased and forgotten is not worth waking for: the next look finds it.
///
/// # Errors
/// When the database does not answer.
pub async fn next_due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    open: &[String],
    take_over: bool,
) -> QueryResult<Option<Duration>> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
    }
    let free = free();
    let due: Due = sql_query(format!(
        "SELECT extract(epoch FROM min(next_poll_time) - clock_timestamp())::float8 AS seconds FROM feeds \
         WHERE platform = $1 AND {free} AND leased_by IS DISTINCT FROM $2"
    ))
    .bind::<Text, _>(platform)
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<Text>, _>(open)
    .bind::<Bool, _>(take_over)
    .get_result(conn)
    .await?;
    Ok(due
        .seconds
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}

/// Locks a feed for the rest of the transaction; whether `replica` still holds its lease.
///
/// # Errors
/// When the database does not answer.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
) -> QueryResult<bool> {
    let held = sql_query("SELECT FROM feeds WHERE name = $1 AND leased_by = $2 FOR UPDATE")
        .bind::<Text, _>(feed.as_str())
        .bind::<SqlUuid, _>(replica)
        .execute(conn)
        .await?;
    Ok(held > 0)
}

/// How a poll went.
#[derive(Debug, Clone, PartialEq)]
pub enum PollOutcome {
    Read {
        cursor: serde_json::Value,
        gap: bool,
    },
    /// The cursor stays where it is.
    Failed { error: String },
}

/// Ends a lease: moves the cursor, says when the feed is due again. Does nothing when `replica` has
/// lost the lease.
///
/// # Errors
/// When the database does not answer.
pub async fn release(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    outcome: &PollOutcome,
    next_poll_in: Duration,
) -> QueryResult<()> {
    let (cursor, gap, error) = match outcome {
        PollOutcome::Read { cursor, gap } => (Some(words::json(cursor.clone())), *gap, None),
        PollOutcome::Failed { error } => (None, false, Some(words::text(error))),
    };
    sql_query(
        "UPDATE feeds SET leased_by = NULL, last_poll_time = clock_timestamp(), \
             next_poll_time = clock_timestamp() + $3 * interval '1 second', \
             cursor = coalesce($4, cursor), \
             gap_count = gap_count + $5, \
             failure_count = CASE WHEN $6 IS NULL THEN 0 ELSE failure_count + 1 END, \
             last_error = $6 \
         WHERE name = $1 AND leased_by = $2",
    )
    .bind::<Text, _>(feed.as_str())
    .bind::<SqlUuid, _>(replica)
    .bind::<Double, _>(next_poll_in.as_secs_f64())
    .bind::<Nullable<Jsonb>, _>(cursor)
    .bind::<Integer, _>(i32::from(gap))
    .bind::<Nullable<Text>, _>(error.as_deref())
    .execute(conn)
    .await?;
    Ok(())
}
