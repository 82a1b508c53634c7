//! Feeds: leased to one scanner at a time, polled once for all Managers that watch them.
//!
//! [`lease_due`] and [`release`] are the two ends of a poll; [`room`] shares the polls among accounts;
//! [`health_of`] tells a customer how the feeds of a Manager do.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, Timestamp};
use uuid::Uuid;

use crate::{QueryResult, fair::Turns, prepared::Prepared, replicas, words};

mod days;
mod health;
mod quarantine;
mod room;

pub use days::{
    DayCounts, FeedDay, FeedGap, FeedIds, IdCounts, OpenGap, days_of, fill_gaps, open_gaps,
    purge_days, record_day,
};
pub use health::{FeedHealth, FeedState, PlatformFeeds, by_platform, health_of};
pub use quarantine::{QuarantineKind, Quarantined, purge_quarantine, quarantine};
pub use room::Room;

use room::Candidate;

/// A feed in the hands of one scanner.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedFeed {
    pub name: FeedName,
    /// The account, among those that watch it, that the poll counts for.
    pub account: Id,
    /// In the form of the platform's adapter; `None` before the first poll.
    pub cursor: Option<serde_json::Value>,
    /// How many polls have failed in a row.
    pub failure_count: u32,
    /// How long after its due time the lease was taken.
    pub late: Duration,
    /// Cursor of the last successful poll.
    pub posts_per_day: Option<f64>,
    /// How long ago that was.
    pub unread: Option<Duration>,
    /// True if the last poll took long.
    pub slow: bool,
    /// True if it is time to look for late posts. `None` if no poll has scheduled it yet.
    pub late_due: Option<bool>,
}

/// Result of [`lease_due`].
#[derive(Debug, Clone, PartialEq)]
pub struct Leased {
    /// The longest due first.
    pub feeds: Vec<LeasedFeed>,
    /// True if other replicas were quicker with some of what was chosen: another look finds others.
    pub is_contended: bool,
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
    #[diesel(sql_type = Nullable<Double>)]
    posts_per_day: Option<f64>,
    #[diesel(sql_type = Nullable<Double>)]
    unread_seconds: Option<f64>,
    #[diesel(sql_type = Bool)]
    slow: bool,
    #[diesel(sql_type = Nullable<Bool>)]
    late_due: Option<bool>,
}

/// The condition that a feed can be leased: to the replica `$2`, which has `$3` open and may take over
/// if `$4`. By its own heartbeat no one judges its own leases: a poll that it has open is its own
/// however long the database was away.
fn free() -> String {
    let alive = replicas::ALIVE;
    format!(
        "watched AND name <> ALL ($3) \
         AND (leased_by IS NULL OR leased_by = $2 OR $4 AND NOT leased_by {alive})"
    )
}

/// The most feeds that one look chooses from. Each account's longest due are looked at before any account's second.
const MAX_CANDIDATES: i64 = 1_000;

/// Leases due feeds of `platform` to `replica`, as many as there is `room` for, and takes their places in it.
///
/// Accounts that have the fewest polls in hand come first, then those that were served the longest ago; of one
/// account, the longest due feed. A feed that several accounts watch counts for the one that comes first.
///
/// A lease lives as long as the replica knows of it: `open` are the polls that it has in hand, so that one which
/// could not be released, or panicked, is leased again. It ends with its replica's heartbeat for those that may
/// `take_over`. Served by the partial index `feeds_due_idx`; costs what is due, and for each of these feeds the
/// Namespaces that watch it.
///
/// # Errors
/// When the database does not answer.
pub async fn lease_due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    open: &[String],
    take_over: bool,
    room: &mut Room,
    turns: &mut Turns,
) -> QueryResult<Leased> {
    let candidates = candidates(conn, platform, replica, open, take_over, room).await?;
    let chosen: HashMap<String, Id> = room.choose(candidates, turns).collect();
    let mut feeds = Vec::new();
    if !chosen.is_empty() {
        let names: Vec<&str> = chosen.keys().map(String::as_str).collect();
        let rows = take(conn, replica, open, take_over, &names).await?;
        feeds.extend(rows.into_iter().filter_map(|row| {
            let account = chosen.get(&row.name).copied()?;
            // Names are parsed before they are stored; one that is not is no one's to poll.
            Some(LeasedFeed {
                name: row.name.parse().ok()?,
                account,
                cursor: row.cursor,
                failure_count: row.failure_count.try_into().unwrap_or(0),
                late: Duration::try_from_secs_f64(row.late_seconds).unwrap_or_default(),
                posts_per_day: row.posts_per_day,
                unread: row
                    .unread_seconds
                    .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
                slow: row.slow,
                late_due: row.late_due,
            })
        }));
    }
    // An UPDATE returns its rows in no order.
    feeds.sort_by_key(|feed| Reverse(feed.late));
    Ok(Leased {
        is_contended: feeds.len() < chosen.len(),
        feeds,
    })
}

/// The due feeds to choose from: of each account that may begin another poll, the longest due.
async fn candidates(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    open: &[String],
    take_over: bool,
    room: &Room,
) -> QueryResult<Vec<Candidate>> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = Text)]
        name: String,
        #[diesel(sql_type = Bool)]
        slow: bool,
        #[diesel(sql_type = Array<SqlUuid>)]
        accounts: Vec<Uuid>,
    }
    let free = free();
    // Many Managers may watch one feed: their Namespaces are found one by one, by the index.
    let due: Vec<Due> = sql_query(format!(
        "WITH due AS MATERIALIZED ( \
             SELECT name, slow, next_poll_time FROM feeds WHERE platform = $1 AND {free} \
                 AND next_poll_time <= clock_timestamp() AND CASE WHEN slow THEN $6 ELSE $5 END > 0 \
         ), ranked AS ( \
             SELECT due.*, watching.account_id, row_number() OVER ( \
                 PARTITION BY watching.account_id, due.slow ORDER BY due.next_poll_time, due.name) AS rank \
             FROM due LEFT JOIN LATERAL ( \
                 WITH RECURSIVE one AS ( \
                     (SELECT namespace_id FROM feed_watchers WHERE feed = due.name ORDER BY namespace_id LIMIT 1) \
                     UNION ALL \
                     SELECT (SELECT w.namespace_id FROM feed_watchers AS w \
                             WHERE w.feed = due.name AND w.namespace_id > one.namespace_id \
                             ORDER BY w.namespace_id LIMIT 1) \
                     FROM one WHERE one.namespace_id IS NOT NULL \
                 ) SELECT DISTINCT n.account_id FROM one JOIN namespaces AS n ON n.id = one.namespace_id \
             ) AS watching ON true \
             WHERE coalesce(watching.account_id <> ALL (CASE WHEN due.slow THEN $8 ELSE $7 END), true) \
         ) \
         SELECT name, slow, \
             array_agg(coalesce(account_id, '00000000-0000-0000-0000-000000000000')) AS accounts \
         FROM ranked WHERE rank <= CASE WHEN slow THEN $6 ELSE $5 END \
         GROUP BY name, slow, next_poll_time ORDER BY min(rank), next_poll_time LIMIT $9"
    ))
    .bind::<Text, _>(platform)
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<Text>, _>(open)
    .bind::<Bool, _>(take_over)
    .bind::<BigInt, _>(room.free(false))
    .bind::<BigInt, _>(room.free(true))
    .bind::<Array<SqlUuid>, _>(room.refused(false))
    .bind::<Array<SqlUuid>, _>(room.refused(true))
    .bind::<BigInt, _>(MAX_CANDIDATES)
    .load(conn)
    .await?;
    Ok(due
        .into_iter()
        .map(|due| Candidate {
            name: due.name,
            slow: due.slow,
            accounts: due.accounts.into_iter().map(Id::from_uuid).collect(),
        })
        .collect())
}

/// Leases these feeds, as far as they are still due and free. Rows that another scanner is leasing are skipped.
async fn take(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    open: &[String],
    take_over: bool,
    names: &[&str],
) -> QueryResult<Vec<Row>> {
    let free = free();
    sql_query(format!(
        "WITH due AS ( \
             SELECT name FROM feeds WHERE name = ANY ($1) AND {free} AND next_poll_time <= clock_timestamp() \
             FOR UPDATE SKIP LOCKED \
         ) UPDATE feeds SET leased_by = $2 FROM due WHERE feeds.name = due.name \
         RETURNING feeds.name, cursor, failure_count, feeds.slow, posts_per_day, \
             late_time <= clock_timestamp() AS late_due, \
             extract(epoch FROM clock_timestamp() - read_time)::float8 AS unread_seconds, \
             extract(epoch FROM clock_timestamp() - next_poll_time)::float8 AS late_seconds"
    ))
    .bind::<Array<Text>, _>(names)
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<Text>, _>(open)
    .bind::<Bool, _>(take_over)
    .load(conn)
    .await
}

/// How long until the next feed becomes due that [`lease_due`] would lease, of those that there is `room` for; `None`
/// without one. Call it before [`lease_due`], which finds what is due by then.
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
    room: &Room,
) -> QueryResult<Option<Duration>> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
    }
    let free = free();
    let due: Due = sql_query(format!(
        "SELECT extract(epoch FROM min(next_poll_time) - clock_timestamp())::float8 AS seconds FROM feeds \
         WHERE platform = $1 AND {free} AND leased_by IS DISTINCT FROM $2 \
             AND next_poll_time > statement_timestamp() AND CASE WHEN slow THEN $6 ELSE $5 END > 0"
    ))
    .bind::<Text, _>(platform)
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<Text>, _>(open)
    .bind::<Bool, _>(take_over)
    .bind::<BigInt, _>(room.free(false))
    .bind::<BigInt, _>(room.free(true))
    .get_result(conn)
    .await?;
    Ok(due
        .seconds
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}

/// Locks a feed for the rest of the transaction; whether `replica` still holds its lease, and the cursor is still
/// the one that it read from. After a failover the database may be older than what a replica knows: what was
/// lost with it must be read again.
///
/// # Errors
/// When the database does not answer.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    cursor: Option<&serde_json::Value>,
) -> QueryResult<bool> {
    let held = Prepared(
        sql_query(
            "SELECT FROM feeds WHERE name = $1 AND leased_by = $2 AND cursor IS NOT DISTINCT FROM $3 \
             FOR UPDATE",
        )
        .bind::<Text, _>(feed.as_str())
        .bind::<SqlUuid, _>(replica)
        .bind::<Nullable<Jsonb>, _>(cursor.cloned().map(words::json)),
    )
    .execute(conn)
    .await?;
    Ok(held > 0)
}

/// Why a poll gave nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A failure that may pass: the platform's, or ours.
    Failing,
    /// The platform refuses until someone changes something.
    Blocked,
    /// No requests are allowed at present, which is not a failure of the feed.
    BudgetSpent,
}

impl Trouble {
    /// The word for it in the database, in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "FAILING",
            Self::Blocked => "BLOCKED",
            Self::BudgetSpent => "BUDGET_SPENT",
        }
    }
}

/// How a poll went.
#[derive(Debug, Clone, PartialEq)]
pub enum PollOutcome {
    Read(Reading),
    /// The cursor stays where it is.
    Failed {
        error: String,
        trouble: Trouble,
    },
}

/// Result of a successful poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The new position; `None` to leave the stored one, which then costs no write of its text.
    pub cursor: Option<serde_json::Value>,
    /// Posts may be missing, from before then; where that is not known, from before now.
    pub gap: Option<Option<Timestamp>>,
    /// The new estimate.
    pub posts_per_day: Option<f64>,
    /// Number of the posts read.
    pub newest_post: Option<Timestamp>,
    /// Start of the period whose posts are kept, if this is the feed's first reading.
    pub kept_since: Option<Timestamp>,
    /// Start of the period whose posts are still kept, if older ones had to go.
    pub kept_cut: Option<Timestamp>,
    /// How long until late posts are looked for again, where the poll decided on it.
    pub late_in: Option<Duration>,
}

/// When a feed is due again, and how it is treated then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub poll_in: Duration,
    /// True if this poll took long.
    pub slow: bool,
    /// The next poll follows at once under the same lease, while anybody watches the feed.
    pub keeps_lease: bool,
}

impl From<Duration> for Next {
    fn from(poll_in: Duration) -> Self {
        Self {
            poll_in,
            slow: false,
            keeps_lease: false,
        }
    }
}

/// Ends a lease: moves the cursor, says when the feed is due again. Does nothing when `replica` has
/// lost the lease. Whether the lease goes on, as `next` may ask for. One statement, by primary key.
///
/// # Errors
/// When the database does not answer.
pub async fn release(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    outcome: &PollOutcome,
    next: Next,
) -> QueryResult<bool> {
    match outcome {
        PollOutcome::Read(reading) => release_read(conn, feed, replica, reading, next).await,
        PollOutcome::Failed { error, trouble } => {
            release_failed(conn, feed, replica, error, *trouble, next).await?;
            Ok(false)
        }
    }
}

async fn release_read(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    reading: &Reading,
    next: Next,
) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Released {
        #[diesel(sql_type = Bool)]
        kept: bool,
    }
    // What was never kept is not kept from its first reading on, but from now on.
    let released: Option<Released> = Prepared(sql_query(
        "UPDATE feeds SET leased_by = CASE WHEN $12 AND watched THEN leased_by END, last_poll_time = clock_timestamp(), read_time = clock_timestamp(), \
             next_poll_time = clock_timestamp() + $3 * interval '1 second', slow = $4, \
             kept_since = CASE WHEN $9 IS NULL THEN NULL ELSE greatest($11, CASE \
                 WHEN $6 THEN coalesce($7, clock_timestamp()) \
                 WHEN cursor IS NULL THEN $9 \
                 ELSE coalesce(kept_since, clock_timestamp()) END) END, \
             cursor = coalesce($5, cursor), gap_count = gap_count + $6::integer, \
             posts_per_day = coalesce($8, posts_per_day), \
             last_post_time = greatest(last_post_time, $10), \
             late_time = coalesce(clock_timestamp() + $13 * interval '1 second', late_time), \
             failure_count = 0, last_error = NULL, trouble = NULL \
         WHERE name = $1 AND leased_by = $2 RETURNING leased_by IS NOT NULL AS kept",
    )
    .bind::<Text, _>(feed.as_str())
    .bind::<SqlUuid, _>(replica)
    .bind::<Double, _>(next.poll_in.as_secs_f64())
    .bind::<Bool, _>(next.slow)
    .bind::<Nullable<Jsonb>, _>(reading.cursor.clone().map(words::json))
    .bind::<Bool, _>(reading.gap.is_some())
    .bind::<Nullable<Timestamptz>, _>(reading.gap.flatten().map(Timestamp::to_chrono))
    .bind::<Nullable<Double>, _>(reading.posts_per_day)
    .bind::<Nullable<Timestamptz>, _>(reading.kept_since.map(Timestamp::to_chrono))
    .bind::<Nullable<Timestamptz>, _>(reading.newest_post.map(Timestamp::to_chrono))
    .bind::<Nullable<Timestamptz>, _>(reading.kept_cut.map(Timestamp::to_chrono))
    .bind::<Bool, _>(next.keeps_lease)
    .bind::<Nullable<Double>, _>(reading.late_in.map(|wait| wait.as_secs_f64())),
)
    .get_result(conn)
    .await
    .optional()?;
    Ok(released.is_some_and(|released| released.kept))
}

async fn release_failed(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    error: &str,
    trouble: Trouble,
    next: Next,
) -> QueryResult<()> {
    let failed = i32::from(trouble != Trouble::BudgetSpent);
    sql_query(
        "UPDATE feeds SET leased_by = NULL, last_poll_time = clock_timestamp(), \
             next_poll_time = clock_timestamp() + $3 * interval '1 second', slow = $4, \
             failure_count = failure_count + $5, last_error = $6, trouble = $7 \
         WHERE name = $1 AND leased_by = $2",
    )
    .bind::<Text, _>(feed.as_str())
    .bind::<SqlUuid, _>(replica)
    .bind::<Double, _>(next.poll_in.as_secs_f64())
    .bind::<Bool, _>(next.slow)
    .bind::<Integer, _>(failed)
    .bind::<Text, _>(words::text(error))
    .bind::<Text, _>(trouble.as_str())
    .execute(conn)
    .await?;
    Ok(())
}

/// Says of all feeds of a platform that no one can poll them, and why. Returns how many that is.
///
/// # Errors
/// When the database does not answer.
pub async fn block_platform(
    conn: &mut AsyncPgConnection,
    platform: &str,
    error: &str,
) -> QueryResult<usize> {
    sql_query(
        "UPDATE feeds SET trouble = 'BLOCKED', last_error = $2, failure_count = greatest(failure_count, 1) \
         WHERE platform = $1 AND watched AND (trouble IS DISTINCT FROM 'BLOCKED' OR last_error IS DISTINCT FROM $2)",
    )
    .bind::<Text, _>(platform)
    .bind::<Text, _>(words::text(error))
    .execute(conn)
    .await
}

/// Waits until no transaction that had a feed locked is open any more: what such a poll read before is
/// then to be seen.
///
/// # Errors
/// When the database does not answer.
pub async fn wait_for_polls(conn: &mut AsyncPgConnection, feed: &str) -> QueryResult<()> {
    sql_query("SELECT FROM feeds WHERE name = $1 FOR SHARE")
        .bind::<Text, _>(feed)
        .execute(conn)
        .await?;
    Ok(())
}
