//! Daily record of a feed: what its polls brought, and what may be missing.

use std::{collections::HashMap, time::Duration};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Id, ServiceEventType, Timestamp,
    service_event::{CoverageGap, Details},
};

use crate::{QueryResult, prepared::query, service_events, words};

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
    /// The newest gaps, newest first.
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
    query!(
        "feeds/record_day",
        Text: feed.as_str(),
        BigInt: number(counts.posts),
        BigInt: number(counts.late),
        BigInt: number(counts.gone),
        BigInt: number(counts.quarantined),
        BigInt: i64::from(gap.is_some()),
        BigInt: signed(ids.read),
        BigInt: signed(ids.other),
        BigInt: signed(ids.gone),
        Nullable<BigInt>: ids.up_to.map(signed),
    )
    .execute(conn)
    .await?;
    if let Some(gap) = gap {
        record_gap(conn, feed, gap).await?;
    }
    if !ids.missing.is_empty() {
        query!(
            "feeds/record_missing_ids",
            Text: feed.as_str(),
            Array<BigInt>: all_signed(&ids.missing),
        )
        .execute(conn)
        .await?;
    }
    if !ids.explained.is_empty() {
        query!(
            "feeds/forget_missing_ids",
            Text: feed.as_str(),
            Array<BigInt>: all_signed(&ids.explained),
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn all_signed(ids: &[u64]) -> Vec<i64> {
    ids.iter().copied().map(signed).collect()
}

/// Stores a service event too, unless the feed had another gap within the last hour. Served by `feed_gaps_feed_idx`: at most
/// [`MAX_GAPS`] entries are read.
async fn record_gap(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    gap: &FeedGap,
) -> QueryResult<()> {
    #[derive(QueryableByName)]
    struct Recorded {
        #[diesel(sql_type = Bool)]
        is_repeated: bool,
    }
    let recorded: Recorded = query!(
        "feeds/record_gap",
        Text: feed.as_str(),
        Nullable<Timestamptz>: gap.from.map(Timestamp::to_chrono),
        Timestamptz: gap.to.to_chrono(),
        Text: words::text(&gap.reason),
        BigInt: MAX_GAPS,
    )
    .get_result(conn)
    .await?;
    if recorded.is_repeated {
        return Ok(());
    }
    let details = Details {
        gap: Some(CoverageGap {
            feed: feed.masked().into_owned(),
            from: gap.from,
            to: gap.to,
            reason: gap.reason.clone(),
        }),
        ..Details::default()
    };
    service_events::record_of_feed(conn, feed, ServiceEventType::CoverageGap, &details).await
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
    let days: Vec<Day> = query!(
        "feeds/days",
        Array<Text>: &names,
        Integer: DAYS,
        SqlUuid: namespace.to_uuid(),
    )
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
    let rows: Vec<Missing> = query!(
        "feeds/missing_ids",
        Array<Text>: feeds,
        Double: NOT_VISIBLE.as_secs_f64(),
        Integer: MAX_NAMED,
        SqlUuid: namespace.to_uuid(),
    )
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

/// The gaps of these feeds by feed and day, newest first. They start no earlier than the account's first watch.
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
    let rows: Vec<Gap> = query!(
        "feeds/gaps",
        Array<Text>: feeds,
        SqlUuid: namespace.to_uuid(),
    )
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
    let rows: Vec<Row> = query!(
        "feeds/open_gaps",
        Text: feed.as_str(),
        Timestamptz: after.to_chrono(),
        Timestamptz: before.to_chrono(),
    )
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
    query!(
        "feeds/fill_gaps",
        Text: feed.as_str(),
        Array<BigInt>: ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes records of days that are older than `kept`. Reads the whole tables, which stay small, so call it rarely.
pub async fn purge_days(conn: &mut AsyncPgConnection, kept: Duration) -> QueryResult<usize> {
    let seconds = kept.as_secs_f64();
    let days = query!("feeds/purge_days", Double: seconds)
        .execute(conn)
        .await?;
    let gaps = query!("feeds/purge_gaps", Double: seconds)
        .execute(conn)
        .await?;
    let ids = query!("feeds/purge_missing_ids", Double: seconds)
        .execute(conn)
        .await?;
    Ok(days + gaps + ids)
}
