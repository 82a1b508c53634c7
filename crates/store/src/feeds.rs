//! Feeds: leased to one scanner at a time, and polled once for all Managers that watch them.
//!
//! [`lease_due`] and [`release`] start and end a poll; [`health_of`] returns the health of a Manager's feeds for the
//! customer.

use std::{cmp::Reverse, collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz,
        Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, Timestamp};
use uuid::Uuid;

use crate::{
    QueryResult,
    prepared::query,
    words,
    work::{
        self, Candidate, Claim, Claimed, Leased, MAX_CANDIDATES, MAX_OF_RESTING, Room, Setback,
        candidates::{self, CandidateRow},
    },
};

mod account;
mod days;
mod health;
mod quarantine;
mod unwatched;

pub(crate) use account::record_watch;
pub use account::{AccountFeed, forget_left};
pub use days::{
    DayCounts, FeedDay, FeedGap, FeedIds, IdCounts, OpenGap, days_of, fill_gaps, open_gaps,
    purge_days, record_day,
};
pub use health::{
    FeedHealth, FeedState, PlatformFeeds, ROWS_OF_HEALTH, by_platform, follow_clock, health_of,
};
pub use quarantine::{QuarantineKind, Quarantined, purge_quarantine, quarantine};
pub use unwatched::{UNWATCHED_FOR, purge_unwatched};

/// A feed that is leased to one scanner.
#[derive(Debug, Clone, PartialEq)]
pub struct LeasedFeed {
    pub name: FeedName,
    /// Cursor in the format of the platform's adapter; `None` before the first poll.
    pub cursor: Option<serde_json::Value>,
    /// When a Manager first watched the feed; `None` once the feed has a cursor.
    pub first_watch_time: Option<Timestamp>,
    /// When a Manager began to watch the feed again, after none had; `None` once a poll has caught up.
    pub rewatch_time: Option<Timestamp>,
    /// Number of failed polls in a row.
    pub failure_count: u32,
    /// How long after its due time the lease was taken.
    pub late: Duration,
    /// Estimated posts per day, after the last successful poll.
    pub posts_per_day: Option<f64>,
    /// Time since the last successful poll.
    pub unread: Option<Duration>,
    /// True if it is time to look for late posts. `None` if no poll has scheduled it yet.
    pub late_due: Option<bool>,
}

#[derive(QueryableByName)]
struct LeasedFeedRow {
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Nullable<Jsonb>)]
    cursor: Option<serde_json::Value>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    first_watch_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    rewatch_time: Option<DateTime<Utc>>,
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
    #[diesel(sql_type = SmallInt)]
    crash_count: i16,
    #[diesel(sql_type = Bool)]
    is_suspect: bool,
}

/// Maximum number of due feeds that a claim finds regardless of their accounts, and that it finds in a sample.
const MAX_DUE: usize = 200;
/// Maximum number of rows that a claim reads to find them. Leased feeds, and slow feeds without capacity for them, may
/// come first. The same as in `feeds/next_due`.
const MAX_ROWS: usize = 1_000;
/// Number of feeds that a claim samples, the same number from each Namespace. At least one for each of
/// `MAX_CANDIDATES`.
const SAMPLE: usize = 2_000;
/// Number of due feeds that a claim takes from the sample of one Namespace, so that others get their share.
const DUE_OF_ONE: usize = 10;

/// Condition that the replica `$2`, which has `$3` open and may take over if `$4`, can lease a feed. A replica
/// never expires its own leases: a poll in progress keeps its lease, even if the database was away for long.
fn free() -> String {
    let free = work::is_free("leased_by", "$2", "$4");
    format!("watched AND name <> ALL ($3) AND {free}")
}

/// Leases due feeds of `platform`, up to the capacity of the claim's room, and takes that capacity. A feed that
/// several accounts watch counts for the one that comes first.
///
/// Reads the feeds that have been due the longest. If there are [`MAX_DUE`], all may be of one account that may not
/// start another poll. So half of them give way to those that became due last, such as new ones, and the feeds of each
/// account are sampled as well ([`sample`]). Served by `feeds_due_idx` and `feed_watchers_sample_idx`. The cost does
/// not grow with the number of due feeds; for each feed that is found, the Namespaces that watch it are read.
pub async fn lease_due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    claim: &mut Claim<'_>,
) -> QueryResult<Claimed<LeasedFeed>> {
    // Read first, because feeds that are due by then are found below.
    let next_due = next_due(conn, platform, claim).await?;
    let candidates = candidates(conn, platform, claim).await?;
    let chosen: HashMap<String, Id> = { claim.room.choose(candidates, claim.turns) }
        .into_iter()
        .collect();
    let mut items = Vec::new();
    let mut is_contended = false;
    if !chosen.is_empty() {
        let names: Vec<&str> = chosen.keys().map(String::as_str).collect();
        let rows = take(conn, claim, &names).await?;
        is_contended = rows.len() < chosen.len();
        items.extend(rows.into_iter().filter_map(|row| {
            // Names were parsed before they were stored. A feed with an unreadable name is not polled.
            Some(Leased {
                account: *chosen.get(&row.name)?,
                is_slow: row.slow,
                crashes: work::count(row.crash_count),
                is_suspect: row.is_suspect,
                item: LeasedFeed {
                    name: row.name.parse().ok()?,
                    cursor: row.cursor,
                    first_watch_time: row.first_watch_time.map(Timestamp::from),
                    rewatch_time: row.rewatch_time.map(Timestamp::from),
                    failure_count: row.failure_count.try_into().unwrap_or(0),
                    late: Duration::try_from_secs_f64(row.late_seconds).unwrap_or_default(),
                    posts_per_day: row.posts_per_day,
                    unread: row
                        .unread_seconds
                        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()),
                    late_due: row.late_due,
                },
                key: row.name,
            })
        }));
    }
    // UPDATE returns its rows in no particular order.
    items.sort_by_key(|feed| Reverse(feed.item.late));
    Ok(Claimed {
        is_contended,
        items,
        next_due,
    })
}

/// Selects feeds that `due` selects, from a sample of the feeds of `$1`: the same number from each Namespace that watches
/// any. Left out are feeds of accounts that may not start another poll. Accounts come in random order, each with one
/// Namespace before any second. The feeds of a Namespace are in the order of their hashes, from a random one on, so that
/// each has its turn.
fn sample(due: &str, room: &Room) -> String {
    // Compared as rows, which only `feed_watchers_sample_idx` serves. Before the planner knows that a table grew, it takes
    // any index that finds the Namespace, and would read all of its feeds for each step.
    const PLACE: &str = "split_part(feed, ':', 1), namespace_id";
    const HASH: &str = "hashtextextended(feed, 0)";
    let from = format!("({PLACE}) >= ($1, n.id)");
    let to = format!("({PLACE}) <= ($1, n.id)");
    let first = |range: &str| {
        format!(
            "SELECT {HASH} AS key, feed AS first FROM feed_watchers WHERE {range} ORDER BY {PLACE}, {HASH}, feed LIMIT 1"
        )
    };
    let feeds = |from: &str, to: &str| {
        let next = format!("({PLACE}, {HASH}) > ($1, n.id, one.key) AND {to}");
        candidates::walk(&first(&format!("{from} AND {to}")), &first(&next))
    };
    let start = format!("({PLACE}, {HASH}) >= ($1, n.id, n.start)");
    let later = feeds(&start, &to);
    let before = format!("({PLACE}, {HASH}) < ($1, n.id, n.start)");
    let earlier = feeds(&from, &before);
    let watched = first(&format!("{from} AND {to}"));
    let slow = candidates::refused(room, true);
    let quick = candidates::refused(room, false);
    format!(
        "SELECT one.* FROM ( \
             SELECT n.*, {SAMPLE} / count(*) OVER () AS share FROM ( \
                 SELECT id, account_id, start FROM ( \
                     SELECT n.id, n.account_id, ((random() - 0.5) * 1.8e19)::bigint AS start, \
                         row_number() OVER (PARTITION BY a.id ORDER BY random()) AS rank \
                     FROM ( \
                         SELECT id FROM accounts WHERE id <> ALL ({slow}) OR id <> ALL ({quick}) \
                         ORDER BY random() LIMIT {MAX_CANDIDATES} \
                     ) AS a JOIN namespaces AS n ON n.account_id = a.id \
                 ) AS n ORDER BY rank, random() LIMIT {MAX_CANDIDATES} \
             ) AS n CROSS JOIN LATERAL ({watched}) AS watched \
         ) AS n CROSS JOIN LATERAL ( \
             SELECT f.* FROM ( \
                 SELECT first AS feed FROM ({later}) AS later UNION ALL SELECT first FROM ({earlier}) AS earlier \
                 LIMIT n.share \
             ) AS sample CROSS JOIN LATERAL ( \
                 {due} AND name = sample.feed AND n.account_id <> ALL (CASE WHEN slow THEN {slow} ELSE {quick} END) OFFSET 0 \
             ) AS f LIMIT {DUE_OF_ONE} \
         ) AS one LIMIT {MAX_DUE}"
    )
}

/// Returns true if there may be more due feeds than `due` selects from the rows of `front`.
async fn is_crowded(
    conn: &mut AsyncPgConnection,
    platform: &str,
    claim: &Claim<'_>,
    front: &str,
    due: &str,
) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Crowd {
        #[diesel(sql_type = Bool)]
        is_crowded: bool,
    }
    let crowd: Crowd = sql_query(format!(
        "SELECT (SELECT count(*) FROM ({due}) AS due) = {MAX_DUE} \
             OR (SELECT count(*) FROM ({front}) AS front) = {MAX_ROWS} AS is_crowded"
    ))
    .bind::<Text, _>(platform)
    .bind::<SqlUuid, _>(claim.replica)
    .bind::<Array<Text>, _>(claim.known)
    .bind::<Bool, _>(claim.take_over)
    .get_result(conn)
    .await?;
    Ok(crowd.is_crowded)
}

/// Returns the due feeds to choose from: of those that were found, the longest due ones of each account that may start
/// another poll.
async fn candidates(
    conn: &mut AsyncPgConnection,
    platform: &str,
    claim: &Claim<'_>,
) -> QueryResult<Vec<Candidate<String>>> {
    let (free, room) = (free(), &*claim.room);
    let suspect = work::remembered("", "leased_by", "$2", MAX_OF_RESTING).is_suspect;
    let is_due = "watched AND platform = $1 AND next_poll_time <= statement_timestamp()";
    // Where no suspect may be started, suspects do not count as due: they must not hide others.
    let may = format!(
        "{free} AND CASE WHEN slow THEN {} ELSE {} END > 0 AND (NOT {suspect} OR {} > 0)",
        room.free(true),
        room.free(false),
        room.suspects()
    );
    // Many Managers may watch one feed, so their Namespaces are found one by one through the index; and OFFSET keeps the
    // planner, which expects many of them, from reading all Namespaces for each feed.
    let watching = candidates::first_of_each(
        "namespace_id",
        "manager_id",
        "feed_watchers",
        "feed = found.key",
    );
    let feed = format!("name AS key, next_poll_time AS time, slow, {suspect} AS is_suspect");
    let front = |order: &str| {
        format!(
            "SELECT * FROM feeds WHERE {is_due} ORDER BY next_poll_time {order} LIMIT {MAX_ROWS}"
        )
    };
    let due = |order: &str, most: usize| {
        format!(
            "SELECT {feed} FROM ({}) AS feeds WHERE {may} ORDER BY next_poll_time {order} LIMIT {most}",
            front(order)
        )
    };
    let longest = due("ASC", MAX_DUE);
    // A separate statement, because one that may sample takes long to plan.
    let found = if is_crowded(conn, platform, claim, &front("ASC"), &longest).await? {
        let half = MAX_DUE / 2;
        format!(
            "({}) UNION ({}) UNION ({})",
            due("ASC", half),
            due("DESC", half),
            sample(
                &format!("SELECT {feed} FROM feeds WHERE {is_due} AND {may}"),
                room
            )
        )
    } else {
        longest
    };
    let items = format!(
        "WITH found AS MATERIALIZED ({found}) \
         SELECT found.*, coalesce(watching.account_id, '00000000-0000-0000-0000-000000000000') AS account_id \
         FROM found LEFT JOIN LATERAL ( \
             SELECT DISTINCT n.account_id FROM ({watching}) AS one CROSS JOIN LATERAL ( \
                 SELECT account_id FROM namespaces WHERE id = one.key OFFSET 0) AS n) AS watching ON true"
    );
    let due: Vec<CandidateRow> = sql_query(candidates::by_account(&items, room))
        .bind::<Text, _>(platform)
        .bind::<SqlUuid, _>(claim.replica)
        .bind::<Array<Text>, _>(claim.known)
        .bind::<Bool, _>(claim.take_over)
        .load(conn)
        .await?;
    let candidates = due.into_iter().map(|row| {
        let name = row.key.clone();
        row.with_key(name)
    });
    Ok(candidates.collect())
}

/// Leases these feeds if they are still due and free. Rows that another scanner is leasing are skipped.
async fn take(
    conn: &mut AsyncPgConnection,
    claim: &Claim<'_>,
    names: &[&str],
) -> QueryResult<Vec<LeasedFeedRow>> {
    query!(
        "feeds/take",
        Array<Text>: names,
        SqlUuid: claim.replica,
        Array<Text>: claim.known,
        Bool: claim.take_over,
    )
    .load(conn)
    .await
}

/// Returns the time until the next feed is due that there is capacity for; `None` if there is none. Leases that the
/// replica has forgotten are not worth waking up for: the next claim finds them.
pub async fn next_due(
    conn: &mut AsyncPgConnection,
    platform: &str,
    claim: &Claim<'_>,
) -> QueryResult<Option<Duration>> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
    }
    let due: Due = query!(
        "feeds/next_due",
        Text: platform,
        SqlUuid: claim.replica,
        Array<Text>: claim.known,
        Bool: claim.take_over,
        BigInt: claim.room.free(false),
        BigInt: claim.room.free(true),
    )
    .get_result(conn)
    .await?;
    Ok(due
        .seconds
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}

/// State of a feed that a search for late posts starts from.
#[derive(Debug, QueryableByName)]
pub struct LateState {
    /// State of the last search of a week.
    #[diesel(sql_type = Nullable<Jsonb>)]
    pub reading: Option<serde_json::Value>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    known_since: Option<DateTime<Utc>>,
}

impl LateState {
    /// Returns the time since which it is known which posts were read.
    pub fn known_since(&self) -> Option<Timestamp> {
        self.known_since.map(Timestamp::from)
    }
}

/// Returns what a search for late posts of `feed` starts from. By primary key.
pub async fn late_state(conn: &mut AsyncPgConnection, feed: &FeedName) -> QueryResult<LateState> {
    query!(
        "feeds/late_state",
        Text: feed.as_str(),
    )
    .get_result(conn)
    .await
}

/// Locks a feed for the rest of the transaction. Returns true if `replica` still holds its lease and the cursor is
/// still the one that it read from. After a failover the database may be older than what a replica knows, and the
/// lost posts must be read again.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    cursor: Option<&serde_json::Value>,
) -> QueryResult<bool> {
    let held = query!(
        "feeds/lock",
        Text: feed.as_str(),
        SqlUuid: replica,
        Nullable<Jsonb>: cursor.cloned().map(words::json),
    )
    .execute(conn)
    .await?;
    Ok(held > 0)
}

/// Why a poll brought nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A temporary failure, of the platform or ours.
    Failing,
    /// The platform refuses until someone changes something.
    Blocked,
    /// No requests are allowed at present, which is not a failure of the feed.
    BudgetSpent,
}

impl Trouble {
    /// Word in the database, in logs and in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "FAILING",
            Self::Blocked => "BLOCKED",
            Self::BudgetSpent => "BUDGET_SPENT",
        }
    }
}

/// Result of a poll.
#[derive(Debug, Clone, PartialEq)]
pub enum PollOutcome {
    Read(Reading),
    /// The cursor does not move.
    Failed {
        error: String,
        trouble: Trouble,
    },
}

/// Result of a successful poll.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// The new position. `None` keeps the stored one and avoids rewriting it.
    pub cursor: Option<serde_json::Value>,
    /// Posts may be missing from before this time or, if it is unknown, from before now.
    pub gap: Option<Option<Timestamp>>,
    /// New estimate of posts per day.
    pub posts_per_day: Option<f64>,
    /// Time of the newest post read.
    pub newest_post: Option<Timestamp>,
    /// Start of the period whose posts are stored, if this is the feed's first reading.
    pub kept_since: Option<Timestamp>,
    /// Start of the period whose posts are still stored, if older ones had to go.
    pub kept_cut: Option<Timestamp>,
    /// Time until the next search for late posts, if the poll scheduled one.
    pub late_in: Option<Duration>,
    /// State of the last search for late posts of a week. `None` keeps the stored one.
    pub late_reading: Option<serde_json::Value>,
    /// True if the ids of the feed's posts are recorded in [`crate::feed_post_ids`].
    pub notes_ids: bool,
    /// True if the poll read all posts that there are.
    pub caught_up: bool,
    /// Oddity of the feed in words for customers. The outer `None` keeps the stored one.
    pub notice: Option<Option<&'static str>>,
}

/// When a feed is due again, and how it is then polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Next {
    pub poll_in: Duration,
    /// True if this poll took long.
    pub slow: bool,
    /// The next poll follows at once under the same lease, as long as a Manager watches the feed.
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

/// Ends a lease: moves the cursor, and sets when the feed is due again. Does nothing if `replica` has lost the
/// lease. Returns true if the lease continues, as `next` may request. One statement, by primary key.
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
    let released: Option<Released> = query!(
        "feeds/release_read",
        Text: feed.as_str(),
        SqlUuid: replica,
        Double: next.poll_in.as_secs_f64(),
        Bool: next.slow,
        Nullable<Jsonb>: reading.cursor.clone().map(words::json),
        Bool: reading.gap.is_some(),
        Nullable<Timestamptz>: reading.gap.flatten().map(Timestamp::to_chrono),
        Nullable<Double>: reading.posts_per_day,
        Nullable<Timestamptz>: reading.kept_since.map(Timestamp::to_chrono),
        Nullable<Timestamptz>: reading.newest_post.map(Timestamp::to_chrono),
        Nullable<Timestamptz>: reading.kept_cut.map(Timestamp::to_chrono),
        Bool: next.keeps_lease,
        Nullable<Double>: reading.late_in.map(|wait| wait.as_secs_f64()),
        Bool: reading.notes_ids,
        Nullable<Jsonb>: reading.late_reading.clone().map(words::json),
        Bool: reading.notice.is_some(),
        Nullable<Text>: reading.notice.flatten(),
        Bool: reading.caught_up,
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
    query!(
        "feeds/release_failed",
        Text: feed.as_str(),
        SqlUuid: replica,
        Double: next.poll_in.as_secs_f64(),
        Bool: next.slow,
        Integer: failed,
        Text: words::text(error),
        Text: trouble.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a lease whose feed is set aside for a while. By primary key.
pub async fn set_aside(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    replica: Uuid,
    setback: &Setback,
) -> QueryResult<()> {
    query!(
        "feeds/set_aside",
        Text: feed.as_str(),
        SqlUuid: replica,
        Double: setback.retry_in.as_secs_f64(),
        Text: words::text(&setback.reason),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks all feeds of a platform as not pollable, with the reason. Returns their number.
pub async fn block_platform(
    conn: &mut AsyncPgConnection,
    platform: &str,
    error: &str,
) -> QueryResult<usize> {
    query!(
        "feeds/block_platform",
        Text: platform,
        Text: words::text(error),
    )
    .execute(conn)
    .await
}

/// Waits until all transactions that had a feed locked have ended, so that what their polls read is visible.
pub async fn wait_for_polls(conn: &mut AsyncPgConnection, feed: &str) -> QueryResult<()> {
    query!("feeds/wait_for_polls", Text: feed)
        .execute(conn)
        .await?;
    Ok(())
}
