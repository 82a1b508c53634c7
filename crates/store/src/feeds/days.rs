//! Daily record of a feed: what its polls brought, and what may be missing.

use std::{collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, Timestamp};

use crate::{QueryResult, prepared::Prepared, words};

/// Days in an answer, including today.
const DAYS: i32 = 7;
/// Maximum number of gaps that are kept for one feed.
const MAX_GAPS: i64 = 100;
/// Maximum number of unexplained ids that are named for one day.
const MAX_NAMED: i32 = 100;
/// Time that a missing id counts as not visible yet. Then it is unexplained.
const NOT_VISIBLE: Duration = Duration::from_hours(1);

/// Counts that one poll adds to its feed's day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DayCounts {
    /// Posts read and stored, including late ones.
    pub posts: usize,
    pub late: usize,
    /// Stored posts that the platform reported as deleted.
    pub gone: usize,
    pub quarantined: usize,
    pub ids: IdCounts,
}

/// Counts that one poll adds to the account of its feed's ids.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IdCounts {
    /// Ids whose posts were read.
    pub read: u64,
    /// Ids of items that the feed does not have.
    pub other: u64,
    /// Ids of deleted and dead items.
    pub gone: u64,
    /// Ids without an item.
    pub missing: Vec<u64>,
    /// Earlier missing ids that are explained now.
    pub explained: Vec<u64>,
    /// Every id up to this one is accounted for or missing.
    pub up_to: Option<u64>,
}

/// A period whose posts may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedGap {
    /// `None` if the start is unknown.
    pub from: Option<Timestamp>,
    pub to: Timestamp,
    pub reason: String,
    /// True if a later reading has read the whole period.
    pub is_filled: bool,
}

/// A gap that a later reading may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenGap {
    pub id: i64,
    pub from: Timestamp,
}

/// Record of one UTC day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedDay {
    /// `2026-11-23`
    pub day: String,
    pub posts: u64,
    pub late: u64,
    pub gone: u64,
    pub quarantined: u64,
    pub gap_count: u64,
    /// The newest of them, newest first.
    pub gaps: Vec<FeedGap>,
    /// `None` if the feed's platform does not number its items without gaps.
    pub ids: Option<FeedIds>,
}

/// Account of the ids that were checked on one day.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedIds {
    /// Every id up to this one is accounted for or missing.
    pub up_to: u64,
    pub read: u64,
    pub other: u64,
    pub gone: u64,
    /// Ids that have been without an item for less than an hour.
    pub not_visible: u64,
    pub unexplained: u64,
    /// The lowest of the unexplained ids.
    pub unexplained_ids: Vec<u64>,
}

/// Adds to the feed's current day. Call in the transaction that moves the feed's cursor: then nothing counts twice. One
/// statement by primary key, or none if there is nothing to add; one more for a gap, and two for missing ids.
pub async fn record_day(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    counts: &DayCounts,
    gap: Option<&FeedGap>,
) -> QueryResult<()> {
    if *counts == DayCounts::default() && gap.is_none() {
        return Ok(());
    }
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let ids = &counts.ids;
    Prepared(
        sql_query(
            "INSERT INTO feed_days (feed, day, posts, late, gone, quarantined, gaps, ids_read, ids_other, ids_gone, \
                 ids_up_to) \
             VALUES ($1, (now() AT TIME ZONE 'UTC')::date, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (feed, day) DO UPDATE SET posts = feed_days.posts + excluded.posts, \
                 late = feed_days.late + excluded.late, gone = feed_days.gone + excluded.gone, \
                 quarantined = feed_days.quarantined + excluded.quarantined, \
                 gaps = feed_days.gaps + excluded.gaps, ids_read = feed_days.ids_read + excluded.ids_read, \
                 ids_other = feed_days.ids_other + excluded.ids_other, \
                 ids_gone = feed_days.ids_gone + excluded.ids_gone, \
                 ids_up_to = coalesce(excluded.ids_up_to, feed_days.ids_up_to)",
        )
        .bind::<Text, _>(feed.as_str())
        .bind::<BigInt, _>(number(counts.posts))
        .bind::<BigInt, _>(number(counts.late))
        .bind::<BigInt, _>(number(counts.gone))
        .bind::<BigInt, _>(number(counts.quarantined))
        .bind::<BigInt, _>(i64::from(gap.is_some()))
        .bind::<BigInt, _>(signed(ids.read))
        .bind::<BigInt, _>(signed(ids.other))
        .bind::<BigInt, _>(signed(ids.gone))
        .bind::<Nullable<BigInt>, _>(ids.up_to.map(signed)),
    )
    .execute(conn)
    .await?;
    if let Some(gap) = gap {
        record_gap(conn, feed, gap).await?;
    }
    for (ids, statement) in [
        (
            &ids.missing,
            "INSERT INTO feed_missing_ids (feed, id, miss_time) SELECT $1, id, now() FROM unnest($2) AS id \
             ON CONFLICT DO NOTHING",
        ),
        (
            &ids.explained,
            "DELETE FROM feed_missing_ids WHERE feed = $1 AND id = ANY ($2)",
        ),
    ] {
        if ids.is_empty() {
            continue;
        }
        let ids: Vec<i64> = ids.iter().copied().map(signed).collect();
        sql_query(statement)
            .bind::<Text, _>(feed.as_str())
            .bind::<Array<BigInt>, _>(ids)
            .execute(conn)
            .await?;
    }
    Ok(())
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Served by `feed_gaps_feed_idx`: at most [`MAX_GAPS`] entries are read.
async fn record_gap(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    gap: &FeedGap,
) -> QueryResult<()> {
    sql_query(
        "WITH forgotten AS ( \
             DELETE FROM feed_gaps WHERE feed = $1 AND id <= ( \
                 SELECT id FROM feed_gaps WHERE feed = $1 ORDER BY id DESC OFFSET $5 - 1 LIMIT 1) \
         ) INSERT INTO feed_gaps (feed, find_time, start_time, end_time, reason) \
         VALUES ($1, now(), $2, $3, $4)",
    )
    .bind::<Text, _>(feed.as_str())
    .bind::<Nullable<Timestamptz>, _>(gap.from.map(Timestamp::to_chrono))
    .bind::<Timestamptz, _>(gap.to.to_chrono())
    .bind::<Text, _>(words::text(&gap.reason))
    .bind::<BigInt, _>(MAX_GAPS)
    .execute(conn)
    .await?;
    Ok(())
}

/// Joins the row of `account_feeds` as `a`, for the account of a Namespace and the feed in `feed`, and `since`.
fn join_account(feed: &str, namespace: &str) -> String {
    format!(
        "LEFT JOIN account_feeds AS a ON a.feed = {feed} \
             AND a.account_id = (SELECT account_id FROM namespaces WHERE id = {namespace}) \
         CROSS JOIN LATERAL (SELECT coalesce(a.watch_time, '-infinity') AS since) AS watched"
    )
}

/// Returns the last days of these feeds, newest first, without what was before the Namespace's account watched them.
/// Three statements: by the primary keys of `feed_days`, `feed_missing_ids` and `account_feeds`, and by
/// `feed_gaps_feed_idx`. The caller decides who may see the feeds.
pub async fn days_of(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    feeds: &[&FeedName],
) -> QueryResult<HashMap<String, Vec<FeedDay>>> {
    #[derive(QueryableByName)]
    struct Day {
        #[diesel(sql_type = Text)]
        feed: String,
        #[diesel(sql_type = Text)]
        day: String,
        #[diesel(sql_type = BigInt)]
        posts: i64,
        #[diesel(sql_type = BigInt)]
        late: i64,
        #[diesel(sql_type = BigInt)]
        gone: i64,
        #[diesel(sql_type = BigInt)]
        quarantined: i64,
        #[diesel(sql_type = BigInt)]
        gaps: i64,
        #[diesel(sql_type = BigInt)]
        ids_read: i64,
        #[diesel(sql_type = BigInt)]
        ids_other: i64,
        #[diesel(sql_type = BigInt)]
        ids_gone: i64,
        #[diesel(sql_type = Nullable<BigInt>)]
        ids_up_to: Option<i64>,
    }
    let names: Vec<&str> = feeds.iter().map(|feed| feed.as_str()).collect();
    let own = [
        "posts",
        "late",
        "gone",
        "quarantined",
        "gaps",
        "ids_read",
        "ids_other",
        "ids_gone",
    ]
    .map(|sum| {
        format!("greatest(d.{sum} - coalesce((others.before->>'{sum}')::bigint, 0), 0) AS {sum}")
    })
    .join(", ");
    let account = join_account("d.feed", "$3");
    let days: Vec<Day> = sql_query(format!(
        "SELECT d.feed, to_char(d.day, 'YYYY-MM-DD') AS day, {own}, ids_up_to FROM feed_days AS d {account} \
         CROSS JOIN LATERAL (SELECT (since AT TIME ZONE 'UTC')::date AS first_day) AS first \
         CROSS JOIN LATERAL (SELECT CASE WHEN d.day = first_day THEN a.before->'day' END AS before) AS others \
         WHERE d.feed = ANY ($1) AND d.day > (clock_timestamp() AT TIME ZONE 'UTC')::date - $2 \
             AND d.day >= first_day AND to_jsonb(d) IS DISTINCT FROM others.before \
         ORDER BY d.feed, d.day DESC"
    ))
    .bind::<Array<Text>, _>(&names)
    .bind::<Integer, _>(DAYS)
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .load(conn)
    .await?;
    let mut gaps = gaps_of(conn, namespace, &names).await?;
    let mut missing = missing_of(conn, namespace, &names).await?;
    let mut found: HashMap<String, Vec<FeedDay>> = HashMap::new();
    for row in days {
        let key = (row.feed, row.day);
        let gaps = gaps.remove(&key).unwrap_or_default();
        let ids = row.ids_up_to.map(|up_to| FeedIds {
            up_to: count(up_to),
            read: count(row.ids_read),
            other: count(row.ids_other),
            gone: count(row.ids_gone),
            ..missing.remove(&key).unwrap_or_default()
        });
        let (feed, day) = key;
        found.entry(feed).or_default().push(FeedDay {
            day,
            posts: count(row.posts),
            late: count(row.late),
            gone: count(row.gone),
            quarantined: count(row.quarantined),
            gap_count: count(row.gaps),
            gaps,
            ids,
        });
    }
    Ok(found)
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// The missing ids of these feeds by feed and day.
async fn missing_of(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    feeds: &[&str],
) -> QueryResult<HashMap<(String, String), FeedIds>> {
    #[derive(QueryableByName)]
    struct Missing {
        #[diesel(sql_type = Text)]
        feed: String,
        #[diesel(sql_type = Text)]
        day: String,
        #[diesel(sql_type = BigInt)]
        not_visible: i64,
        #[diesel(sql_type = BigInt)]
        unexplained: i64,
        #[diesel(sql_type = Array<BigInt>)]
        ids: Vec<i64>,
    }
    let account = join_account("missing.feed", "$4");
    let rows: Vec<Missing> = sql_query(format!(
        "SELECT missing.feed, to_char(miss_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, \
             count(*) FILTER (WHERE NOT is_old) AS not_visible, count(*) FILTER (WHERE is_old) AS unexplained, \
             coalesce((array_agg(id ORDER BY id) FILTER (WHERE is_old))[:$3], ARRAY[]::bigint[]) AS ids \
         FROM feed_missing_ids AS missing {account} \
         CROSS JOIN LATERAL (SELECT miss_time < clock_timestamp() - $2 * interval '1 second' AS is_old) AS aged \
         WHERE missing.feed = ANY ($1) AND miss_time >= since GROUP BY 1, 2"
    ))
    .bind::<Array<Text>, _>(feeds)
    .bind::<Double, _>(NOT_VISIBLE.as_secs_f64())
    .bind::<Integer, _>(MAX_NAMED)
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .load(conn)
    .await?;
    let missing = rows.into_iter().map(|row| {
        let ids = FeedIds {
            not_visible: count(row.not_visible),
            unexplained: count(row.unexplained),
            unexplained_ids: row.ids.into_iter().map(count).collect(),
            ..FeedIds::default()
        };
        ((row.feed, row.day), ids)
    });
    Ok(missing.collect())
}

/// The gaps of these feeds by feed and day, newest first.
async fn gaps_of(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    feeds: &[&str],
) -> QueryResult<HashMap<(String, String), Vec<FeedGap>>> {
    #[derive(QueryableByName)]
    struct Gap {
        #[diesel(sql_type = Text)]
        feed: String,
        #[diesel(sql_type = Text)]
        day: String,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        start_time: Option<DateTime<Utc>>,
        #[diesel(sql_type = Timestamptz)]
        end_time: DateTime<Utc>,
        #[diesel(sql_type = Text)]
        reason: String,
        #[diesel(sql_type = Bool)]
        is_filled: bool,
    }
    let account = join_account("gap.feed", "$2");
    let rows: Vec<Gap> = sql_query(format!(
        "SELECT gap.feed, to_char(find_time AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, start_time, end_time, reason, \
             fill_time IS NOT NULL AS is_filled FROM feed_gaps AS gap {account} \
         WHERE gap.feed = ANY ($1) AND find_time >= since ORDER BY id DESC"
    ))
    .bind::<Array<Text>, _>(feeds)
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .load(conn)
    .await?;
    let mut gaps: HashMap<(String, String), Vec<FeedGap>> = HashMap::new();
    for row in rows {
        gaps.entry((row.feed, row.day)).or_default().push(FeedGap {
            from: row.start_time.map(Into::into),
            to: row.end_time.into(),
            reason: row.reason,
            is_filled: row.is_filled,
        });
    }
    Ok(gaps)
}

/// The open gaps of a feed that lie between `after` and `before`. Served by `feed_gaps_feed_idx`: at most [`MAX_GAPS`]
/// entries are read.
pub async fn open_gaps(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    after: Timestamp,
    before: Timestamp,
) -> QueryResult<Vec<OpenGap>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        id: i64,
        #[diesel(sql_type = Timestamptz)]
        start_time: DateTime<Utc>,
    }
    let rows: Vec<Row> = sql_query(
        "SELECT id, start_time FROM feed_gaps \
         WHERE feed = $1 AND fill_time IS NULL AND start_time > $2 AND end_time < $3",
    )
    .bind::<Text, _>(feed.as_str())
    .bind::<Timestamptz, _>(after.to_chrono())
    .bind::<Timestamptz, _>(before.to_chrono())
    .load(conn)
    .await?;
    let gaps = rows.into_iter().map(|row| OpenGap {
        id: row.id,
        from: row.start_time.into(),
    });
    Ok(gaps.collect())
}

/// Closes gaps of a feed. Call in the transaction that stores the posts read from them. One statement by primary
/// key, or none if `gaps` is empty.
pub async fn fill_gaps(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    gaps: &[OpenGap],
) -> QueryResult<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = gaps.iter().map(|gap| gap.id).collect();
    sql_query("UPDATE feed_gaps SET fill_time = now() WHERE feed = $1 AND id = ANY ($2)")
        .bind::<Text, _>(feed.as_str())
        .bind::<Array<BigInt>, _>(ids)
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes records of days that are older than `kept`. Reads the whole tables, which stay small, so call it rarely.
pub async fn purge_days(conn: &mut AsyncPgConnection, kept: Duration) -> QueryResult<usize> {
    let mut purged = 0;
    for statement in [
        "DELETE FROM feed_days WHERE day < (clock_timestamp() AT TIME ZONE 'UTC' - $1 * interval '1 second')::date",
        "DELETE FROM feed_gaps WHERE find_time < clock_timestamp() - $1 * interval '1 second'",
        "DELETE FROM feed_missing_ids WHERE miss_time < clock_timestamp() - $1 * interval '1 second'",
    ] {
        purged += sql_query(statement)
            .bind::<Double, _>(kept.as_secs_f64())
            .execute(conn)
            .await?;
    }
    Ok(purged)
}
