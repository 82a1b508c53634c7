//! Statistics over time, as counters.
//!
//! Code that changes a count appends [`Deltas`] in the same transaction, with one INSERT of one row per subject,
//! which never waits for others. [`fold()`] adds them to the points that [`of_namespace`] and the other readers
//! return. Each delta counts exactly once, because the transaction that counts it deletes it. Points lag by the
//! pause between two folds, a few seconds.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_query,
    sql_types::{Array, BigInt, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, FeedName, Id, ManagerName, Timestamp,
    stats::{DeliveryCounts, Interval, Point, Quantiles, Stats, StatsQuery},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Error, QueryError, QueryResult, prepared::query, schema::stats};

mod fold;
mod histogram;
mod purge;

pub use fold::fold;
use histogram::Histogram;
pub use purge::{purge_namespace, purge_old, purge_orphans, purge_subject};

/// The counters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "snake_case")]
pub struct Counts {
    #[serde(skip_serializing_if = "is_zero")]
    posts: u64,
    #[serde(skip_serializing_if = "is_zero")]
    scans: u64,
    #[serde(skip_serializing_if = "is_zero")]
    suppressed: u64,
    #[serde(skip_serializing_if = "is_zero")]
    succeeded: u64,
    #[serde(skip_serializing_if = "is_zero")]
    failed_attempts: u64,
    #[serde(skip_serializing_if = "is_zero")]
    exhausted: u64,
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    scan_delays: Histogram,
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    delivery_delays: Histogram,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Counts {
    fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.posts, other.posts),
            (&mut self.scans, other.scans),
            (&mut self.suppressed, other.suppressed),
            (&mut self.succeeded, other.succeeded),
            (&mut self.failed_attempts, other.failed_attempts),
            (&mut self.exhausted, other.exhausted),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.scan_delays.add(&other.scan_delays);
        self.delivery_delays.add(&other.delivery_delays);
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Feed(String),
    /// A Manager or a Connection of this Namespace.
    Resource(Uuid, Uuid),
}

/// Counts of one transaction, summed up by subject and minute.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deltas(BTreeMap<(Subject, Timestamp), Counts>);

impl Deltas {
    /// `count` posts read from `feed`.
    pub fn posts(&mut self, feed: &FeedName, time: Timestamp, count: u64) {
        if count > 0 {
            self.at(Subject::Feed(feed.as_str().to_owned()), time).posts += count;
        }
    }

    /// A Scan made `delay` after its post.
    pub fn scan(&mut self, manager: ManagerName, time: Timestamp, delay: Duration) {
        let counts = self.of_manager(manager, time);
        counts.scans += 1;
        counts.scan_delays.record(delay);
    }

    /// A Scan of a past post, whose age says nothing about the speed of Scans.
    pub fn past_scan(&mut self, manager: ManagerName, time: Timestamp) {
        self.of_manager(manager, time).scans += 1;
    }

    /// Matches without a Scan, because there were too many.
    pub fn suppressed(&mut self, manager: ManagerName, time: Timestamp, count: u64) {
        if count > 0 {
            self.of_manager(manager, time).suppressed += count;
        }
    }

    /// A delivery acknowledged `delay` after its Scan was made.
    pub fn succeeded(&mut self, connection: ConnectionName, time: Timestamp, delay: Duration) {
        let counts = self.of_connection(connection, time);
        counts.succeeded += 1;
        counts.delivery_delays.record(delay);
    }

    pub fn failed_attempt(&mut self, connection: ConnectionName, time: Timestamp) {
        self.of_connection(connection, time).failed_attempts += 1;
    }

    /// A delivery given up.
    pub fn exhausted(&mut self, connection: ConnectionName, time: Timestamp) {
        self.of_connection(connection, time).exhausted += 1;
    }

    fn of_manager(&mut self, name: ManagerName, time: Timestamp) -> &mut Counts {
        let subject = Subject::Resource(name.namespace.to_uuid(), name.manager.to_uuid());
        self.at(subject, time)
    }

    fn of_connection(&mut self, name: ConnectionName, time: Timestamp) -> &mut Counts {
        let subject = Subject::Resource(name.namespace.to_uuid(), name.connection.to_uuid());
        self.at(subject, time)
    }

    fn at(&mut self, subject: Subject, time: Timestamp) -> &mut Counts {
        let minute = Interval::Minute.floor(time);
        self.0.entry((subject, minute)).or_default()
    }
}

/// Appends the counts of the transaction. One INSERT, which takes no lock that others wait for; none if there is
/// nothing to count.
pub async fn append(conn: &mut AsyncPgConnection, deltas: &Deltas) -> QueryResult<()> {
    if deltas.0.is_empty() {
        return Ok(());
    }
    let (mut feeds, mut namespaces, mut subjects) = (Vec::new(), Vec::new(), Vec::new());
    let (mut times, mut counts) = (Vec::new(), Vec::new());
    for ((subject, time), count) in &deltas.0 {
        let (feed, namespace, id) = match subject {
            Subject::Feed(feed) => (Some(feed.as_str()), None, None),
            Subject::Resource(namespace, id) => (None, Some(*namespace), Some(*id)),
        };
        feeds.push(feed);
        namespaces.push(namespace);
        subjects.push(id);
        times.push(time.to_chrono());
        let count = serde_json::to_value(count);
        counts.push(count.map_err(|error| QueryError::SerializationError(error.into()))?);
    }
    query!(
        "stats/append",
        Array<Nullable<Text>>: feeds,
        Array<Nullable<SqlUuid>>: namespaces,
        Array<Nullable<SqlUuid>>: subjects,
        Array<Timestamptz>: times,
        Array<Jsonb>: counts,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the statistics of all Managers and Connections that the Namespace has or had, and of its current feeds.
/// Served by `stats_pkey` and `feed_stats_pkey`.
pub async fn of_namespace(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    query: StatsQuery,
) -> Result<Stats, Error> {
    let counts = points(conn, namespace, namespace, query).await?;
    let (posts, rows) = posts(conn, namespace, None, query).await?;
    Ok(answer(query, counts, rows, |counts, time| Point {
        posts: Some(posts.get(&time).copied().unwrap_or_default()),
        ..both(counts, time)
    }))
}

/// Returns the statistics of one Manager and its current feeds. Served like [`of_namespace`].
pub async fn of_manager(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    query: StatsQuery,
) -> Result<Stats, Error> {
    let counts = points(conn, name.namespace, name.manager, query).await?;
    let (posts, rows) = posts(conn, name.namespace, Some(name.manager), query).await?;
    Ok(answer(query, counts, rows, |counts, time| Point {
        posts: Some(posts.get(&time).copied().unwrap_or_default()),
        deliveries: None,
        delivery_delay_ms: None,
        ..both(counts, time)
    }))
}

/// Returns the statistics of one Connection. Served by `stats_pkey`.
pub async fn of_connection(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    query: StatsQuery,
) -> Result<Stats, Error> {
    let counts = points(conn, name.namespace, name.connection, query).await?;
    Ok(answer(query, counts, 0, |counts, time| Point {
        scans: None,
        suppressed: None,
        scan_delay_ms: None,
        ..both(counts, time)
    }))
}

fn answer(
    query: StatsQuery,
    mut counts: HashMap<Timestamp, Counts>,
    rows: u64,
    point: impl Fn(Counts, Timestamp) -> Point,
) -> Stats {
    let rows = rows.saturating_add(counts.len() as u64);
    let points = query
        .times()
        .map(|time| point(counts.remove(&time).unwrap_or_default(), time))
        .collect();
    Stats {
        interval: query.interval,
        points,
        rows,
    }
}

fn both(counts: Counts, time: Timestamp) -> Point {
    let quantiles = |delays: &Histogram| Quantiles {
        p50: delays.quantile(50),
        p99: delays.quantile(99),
    };
    Point {
        time,
        posts: None,
        scans: Some(counts.scans),
        suppressed: Some(counts.suppressed),
        deliveries: Some(DeliveryCounts {
            succeeded: counts.succeeded,
            failed_attempts: counts.failed_attempts,
            exhausted: counts.exhausted,
        }),
        scan_delay_ms: Some(quantiles(&counts.scan_delays)),
        delivery_delay_ms: Some(quantiles(&counts.delivery_delays)),
    }
}

async fn points(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    subject: Id,
    query: StatsQuery,
) -> Result<HashMap<Timestamp, Counts>, Error> {
    let rows: Vec<(DateTime<Utc>, serde_json::Value)> = stats::table
        .filter(stats::namespace_id.eq(namespace.to_uuid()))
        .filter(stats::subject_id.eq(subject.to_uuid()))
        .filter(stats::interval_seconds.eq(seconds(query.interval)))
        .filter(stats::time.ge(query.start().to_chrono()))
        .filter(stats::time.lt(query.end().to_chrono()))
        .select((stats::time, stats::counts))
        .load(conn)
        .await?;
    rows.into_iter()
        .map(|(time, counts)| {
            let counts = serde_json::from_value(counts).map_err(Error::Json)?;
            Ok((time.into(), counts))
        })
        .collect()
}

/// Returns the posts of the feeds that a Manager, or any of the Namespace, watches, each feed once and without posts from
/// before the account watched it; and the number of rows that were read.
async fn posts(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    manager: Option<Id>,
    query: StatsQuery,
) -> QueryResult<(HashMap<Timestamp, u64>, u64)> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Timestamptz)]
        time: DateTime<Utc>,
        #[diesel(sql_type = BigInt)]
        posts: i64,
        #[diesel(sql_type = BigInt)]
        rows: i64,
    }
    // Planned at each call: one plan cannot serve both a Manager and all of them.
    let rows: Vec<Row> = sql_query(
        "SELECT s.time, least(sum(s.posts - CASE WHEN s.time <= a.watch_time \
                 THEN least(coalesce((a.before->'posts'->>$3::text)::bigint, 0), s.posts) ELSE 0 END), \
             9223372036854775807)::bigint AS posts, count(*) AS rows \
         FROM feed_stats AS s LEFT JOIN account_feeds AS a ON a.feed = s.feed \
             AND a.account_id = (SELECT account_id FROM namespaces WHERE id = $1) \
         WHERE s.feed IN (SELECT feed FROM feed_watchers \
                          WHERE namespace_id = $1 AND ($2 IS NULL OR manager_id = $2)) \
           AND s.interval_seconds = $3 AND s.time >= $4 AND s.time < $5 \
           AND (a.feed IS NULL OR s.time > a.watch_time - $3 * interval '1 second') GROUP BY s.time",
    )
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .bind::<Nullable<SqlUuid>, _>(manager.map(Id::to_uuid))
    .bind::<Integer, _>(seconds(query.interval))
    .bind::<Timestamptz, _>(query.start().to_chrono())
    .bind::<Timestamptz, _>(query.end().to_chrono())
    .load(conn)
    .await?;
    let number = |posts| u64::try_from(posts).unwrap_or_default();
    let count = rows.iter().map(|row| number(row.rows)).sum();
    let posts = rows
        .into_iter()
        .map(|row| (row.time.into(), number(row.posts)));
    Ok((posts.collect(), count))
}

fn seconds(interval: Interval) -> i32 {
    i32::try_from(interval.duration().as_secs()).unwrap_or(i32::MAX)
}
