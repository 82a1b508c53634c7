//! Health of a Manager's feeds, for the customer: it distinguishes a quiet feed from one that is not read.

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Bool, Double, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, ManagerName, Timestamp};

use crate::{QueryResult, replicas::ALIVE};

/// A poll that starts so long after its due time is late.
const GRACE_SECONDS: f64 = 30.0;
/// Number of days that the estimate of Scans per day covers.
const DAYS: i32 = 7;
/// Maximum number of the newest Scans that the estimate reads.
const LOOKED_AT: i64 = 1_000;
/// Number of rows that [`health_of`] reads for each feed, at most.
pub const ROWS_OF_HEALTH: u64 = LOOKED_AT.unsigned_abs();

/// A feed that a Manager watches.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedHealth {
    pub feed: FeedName,
    pub state: FeedState,
    /// Time of the last poll, successful or not; `None` before the first.
    pub last_poll_time: Option<Timestamp>,
    /// Time when it is due, which may have passed.
    pub next_poll_time: Timestamp,
    /// Time of the newest post that was ever read.
    pub last_post_time: Option<Timestamp>,
    /// Posts per day of the feed, for all watchers. An estimate that gives recent days more weight. `None` before
    /// the first successful poll.
    pub posts_per_day: Option<f64>,
    /// Scans per day that this Manager gets from the feed's posts, estimated from the last days.
    pub scans_per_day: f64,
    /// Total number of polls after which posts may be missing, because the platform returned no more.
    pub gaps: u64,
    /// Total number of posts that were skipped because they could not be read or stored.
    pub quarantined_posts: u64,
    /// When the last of them was skipped, and why.
    pub last_quarantine: Option<(Timestamp, String)>,
    /// Why the last poll failed, in our words or the platform's. `None` if it succeeded.
    pub error: Option<String>,
    /// Oddity of a feed that can be read, such as one without entries.
    pub notice: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeedState {
    Ok,
    /// The feed has no failure, but its poll is overdue.
    Late,
    /// The last poll failed, for a temporary reason.
    Failing,
    /// The platform refuses until someone changes something.
    Blocked,
    /// The operator's budget for the platform, or the platform's own limit, is used up.
    BudgetSpent,
}

impl FeedState {
    /// Name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Late => "LATE",
            Self::Failing => "FAILING",
            Self::Blocked => "BLOCKED",
            Self::BudgetSpent => "BUDGET_SPENT",
        }
    }
}

#[derive(QueryableByName)]
struct FeedHealthRow {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<Text>)]
    trouble: Option<String>,
    #[diesel(sql_type = Bool)]
    late: bool,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    last_poll_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Timestamptz)]
    next_poll_time: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    last_post_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Double>)]
    posts_per_day: Option<f64>,
    #[diesel(sql_type = Double)]
    scans_per_day: f64,
    #[diesel(sql_type = BigInt)]
    gap_count: i64,
    #[diesel(sql_type = BigInt)]
    quarantine_count: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    quarantine_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    quarantine_reason: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    error: Option<String>,
    #[diesel(sql_type = Nullable<Text>)]
    notice: Option<String>,
}

/// Returns the feeds that a Manager watches now, by name; none if it is disabled or was never applied. Shows nothing
/// from before its account watched a feed. One statement, by `feed_watchers_manager_idx` and primary keys.
pub async fn health_of(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
) -> QueryResult<Vec<FeedHealth>> {
    // A failure to store is ours, so customers do not see the database's message. A feed that was never polled may be
    // in trouble with its whole platform.
    let rows: Vec<FeedHealthRow> = sql_query(
        "WITH lately AS MATERIALIZED ( \
             SELECT s.create_time, p.feed FROM ( \
                 SELECT create_time, post_id, post_receive_time FROM scans \
                 WHERE namespace_id = $1 AND manager_id = $2 \
                   AND create_time > clock_timestamp() - $3 * interval '1 day' \
                 ORDER BY create_time DESC LIMIT $4 \
             ) AS s CROSS JOIN LATERAL ( \
                 SELECT feed FROM posts WHERE receive_time = s.post_receive_time AND id = s.post_id LIMIT 1 \
             ) AS p \
         ), span AS ( \
             SELECT greatest(extract(epoch FROM clock_timestamp() - CASE \
                 WHEN (SELECT count(*) FROM lately) = $4 THEN (SELECT min(create_time) FROM lately) \
                 ELSE greatest(m.create_time, clock_timestamp() - $3 * interval '1 day') END) / 86400, 1)::float8 AS days \
             FROM managers AS m WHERE m.namespace_id = $1 AND m.id = $2 \
         ) \
         SELECT f.name, CASE WHEN polled THEN f.trouble END AS trouble, \
             CASE WHEN polled THEN f.last_poll_time END AS last_poll_time, \
             CASE WHEN polled OR a.feed IS NULL THEN f.next_poll_time ELSE least(f.next_poll_time, since) END AS next_poll_time, \
             CASE WHEN was_read AND f.last_post_time > since - interval '1 day' THEN f.last_post_time END AS last_post_time, \
             CASE WHEN was_read THEN f.posts_per_day END AS posts_per_day, \
             f.next_poll_time < clock_timestamp() - $5 * interval '1 second' AS late, \
             f.gap_count - coalesce((a.before->>'gaps')::bigint, 0) AS gap_count, \
             f.quarantine_count - coalesce((a.before->>'quarantined')::bigint, 0) AS quarantine_count, \
             CASE WHEN f.quarantine_time >= since THEN f.quarantine_time END AS quarantine_time, \
             f.quarantine_reason, CASE WHEN was_read THEN f.notice END AS notice, \
             CASE WHEN NOT polled THEN NULL \
                 WHEN f.last_error LIKE 'cannot store a poll%' THEN 'cannot store a poll' ELSE f.last_error END AS error, \
             (SELECT count(*) FROM lately WHERE lately.feed = f.name) / span.days AS scans_per_day \
         FROM feed_watchers AS w JOIN feeds AS f ON f.name = w.feed CROSS JOIN span \
         JOIN namespaces AS n ON n.id = $1 LEFT JOIN account_feeds AS a ON a.account_id = n.account_id AND a.feed = f.name \
         CROSS JOIN LATERAL (SELECT coalesce(a.watch_time, '-infinity') AS since) AS watched \
         CROSS JOIN LATERAL (SELECT coalesce(f.last_poll_time >= since, true) AS polled, \
             coalesce(coalesce(f.read_time, f.last_poll_time) >= since, false) AS was_read) AS seen \
         WHERE w.namespace_id = $1 AND w.manager_id = $2 ORDER BY f.name",
    )
    .bind::<SqlUuid, _>(manager.namespace.to_uuid())
    .bind::<SqlUuid, _>(manager.manager.to_uuid())
    .bind::<Integer, _>(DAYS)
    .bind::<BigInt, _>(LOOKED_AT)
    .bind::<Double, _>(GRACE_SECONDS)
    .load(conn)
    .await?;
    Ok(rows.into_iter().filter_map(read).collect())
}

fn read(row: FeedHealthRow) -> Option<FeedHealth> {
    let state = match row.trouble.as_deref() {
        Some("BLOCKED") => FeedState::Blocked,
        Some("BUDGET_SPENT") => FeedState::BudgetSpent,
        Some(_) => FeedState::Failing,
        None if row.late => FeedState::Late,
        None => FeedState::Ok,
    };
    Some(FeedHealth {
        // Names were parsed before they were stored.
        feed: row.name.parse().ok()?,
        state,
        last_poll_time: row.last_poll_time.map(Into::into),
        next_poll_time: row.next_poll_time.into(),
        last_post_time: row.last_post_time.map(Into::into),
        posts_per_day: row.posts_per_day,
        scans_per_day: row.scans_per_day,
        gaps: u64::try_from(row.gap_count).unwrap_or_default(),
        quarantined_posts: u64::try_from(row.quarantine_count).unwrap_or_default(),
        last_quarantine: row
            .quarantine_time
            .map(Timestamp::from)
            .zip(row.quarantine_reason),
        error: row.error,
        notice: row.notice,
    })
}

/// Summary of the watched feeds of one platform.
#[derive(Debug, Clone, PartialEq, Eq, QueryableByName)]
pub struct PlatformFeeds {
    #[diesel(sql_type = Text)]
    pub platform: String,
    #[diesel(sql_type = BigInt)]
    pub ok: i64,
    #[diesel(sql_type = BigInt)]
    pub failing: i64,
    #[diesel(sql_type = BigInt)]
    pub blocked: i64,
    #[diesel(sql_type = BigInt)]
    pub budget_spent: i64,
    /// Feeds that can be read and have a notice.
    #[diesel(sql_type = BigInt)]
    pub odd: i64,
    /// Feeds that wait for a scanner.
    #[diesel(sql_type = BigInt)]
    pub due: i64,
    /// Feeds whose last poll is in the future, because the database's clock went back.
    #[diesel(sql_type = BigInt)]
    pub ahead: i64,
    /// Message of a feed that is not ok.
    #[diesel(sql_type = Nullable<Text>)]
    pub error: Option<String>,
}

/// Summarises the watched feeds by platform. Reads all of them, some thousands, so call it rarely.
pub async fn by_platform(conn: &mut AsyncPgConnection) -> QueryResult<Vec<PlatformFeeds>> {
    sql_query(format!(
        "SELECT platform, count(*) FILTER (WHERE trouble IS NULL) AS ok, \
             count(*) FILTER (WHERE trouble = 'FAILING') AS failing, \
             count(*) FILTER (WHERE trouble = 'BLOCKED') AS blocked, \
             count(*) FILTER (WHERE trouble = 'BUDGET_SPENT') AS budget_spent, \
             count(*) FILTER (WHERE trouble IS NULL AND notice IS NOT NULL) AS odd, \
             count(*) FILTER (WHERE (leased_by IS NULL OR NOT leased_by {ALIVE}) \
                 AND next_poll_time <= clock_timestamp()) AS due, \
             count(*) FILTER (WHERE {AHEAD}) AS ahead, \
             max(last_error) FILTER (WHERE trouble IS NOT NULL) AS error \
         FROM feeds WHERE watched GROUP BY platform"
    ))
    .load(conn)
    .await
}

/// Condition of a feed whose times the database's clock has not reached yet.
const AHEAD: &str =
    "coalesce(last_poll_time, create_time) > clock_timestamp() + interval '1 minute'";

/// Makes feeds due after the database's clock went back: otherwise their next polls would be late by the
/// difference. Returns the number of feeds.
pub async fn follow_clock(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    // `least` would replace NULL.
    let not_ahead = ["next_poll_time", "last_poll_time", "read_time", "late_time"]
        .map(|time| format!("{time} = CASE WHEN {time} > clock_timestamp() THEN clock_timestamp() ELSE {time} END"))
        .join(", ");
    sql_query(format!(
        "UPDATE feeds SET {not_ahead} WHERE watched AND {AHEAD}"
    ))
    .execute(conn)
    .await
}
