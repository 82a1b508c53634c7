//! Folds deltas into points.
//!
//! One transaction takes deltas, adds them to their points of all three intervals, and deletes them. If a process
//! dies in the middle, nothing has been counted. Only one replica folds at a time, so that points are read and
//! written back without waiting. The others find the lock taken and try again later.
//!
//! Costs six statements per batch, and three more for each further [`POINTS_PER_STATEMENT`]; one if another replica
//! folds, and two if there is nothing to fold.

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Bool, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{Timestamp, stats::Interval};
use uuid::Uuid;

use super::{Counts, seconds};
use crate::{Error, QueryResult, prepared::query};

/// Number of points per statement. A point of a day may have two hundred buckets, and each pooled connection keeps
/// a buffer for the largest statement that it ever sent. Statements with thousands of points made every process
/// grow for hours.
const POINTS_PER_STATEMENT: usize = 50;

/// The key of a point of a Manager, a Connection or a Namespace.
type Key = (Uuid, Uuid, i32, DateTime<Utc>);

#[derive(QueryableByName)]
struct Delta {
    #[diesel(sql_type = Nullable<Text>)]
    feed: Option<String>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    namespace_id: Option<Uuid>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    subject_id: Option<Uuid>,
    #[diesel(sql_type = Timestamptz)]
    time: DateTime<Utc>,
    #[diesel(sql_type = Jsonb)]
    counts: serde_json::Value,
}

/// Folds up to `limit` deltas from the id `floor` on. Returns their number, or `None` if another replica folds.
///
/// # Errors
/// If the database does not answer; then nothing is counted.
pub async fn fold(
    conn: &mut AsyncPgConnection,
    floor: i64,
    limit: i64,
) -> Result<Option<usize>, Error> {
    conn.transaction(async |conn| {
        if !lock(conn).await? {
            return Ok(None);
        }
        // In no particular order, because sums do not depend on it.
        let deltas: Vec<Delta> = query!(
            "stats/take_deltas",
            BigInt: limit,
            BigInt: floor,
        )
        .load(conn)
        .await?;
        let count = deltas.len();
        let mut points: BTreeMap<Key, Counts> = BTreeMap::new();
        let mut feeds: BTreeMap<(String, i32, DateTime<Utc>), i64> = BTreeMap::new();
        for delta in deltas {
            let counts: Counts = match serde_json::from_value(delta.counts) {
                Ok(counts) => counts,
                Err(error) => {
                    // A delta that cannot be read would block all others permanently.
                    tracing::error!("dropping a count that cannot be read: {error}");
                    continue;
                }
            };
            for interval in Interval::ALL {
                let time = interval.floor(Timestamp::from(delta.time)).to_chrono();
                if let (Some(namespace), Some(subject)) = (delta.namespace_id, delta.subject_id) {
                    for subject in [subject, namespace] {
                        let key = (namespace, subject, seconds(interval), time);
                        points.entry(key).or_default().add(&counts);
                    }
                }
                if let Some(feed) = &delta.feed {
                    let key = (feed.clone(), seconds(interval), time);
                    let sum = feeds.entry(key).or_default();
                    *sum = sum.saturating_add_unsigned(counts.posts);
                }
            }
        }
        add_to_feeds(conn, feeds).await?;
        let mut points: Vec<(Key, Counts)> = points.into_iter().collect();
        for some in points.chunks_mut(POINTS_PER_STATEMENT) {
            add_to_points(conn, some).await?;
        }
        Ok(Some(count))
    })
    .await
}

/// Takes the lock of folds until the end of the transaction, unless another replica has it.
async fn lock(conn: &mut AsyncPgConnection) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Locked {
        #[diesel(sql_type = Bool)]
        locked: bool,
    }
    let row: Locked = query!("stats/lock_fold").get_result(conn).await?;
    Ok(row.locked)
}

async fn add_to_feeds(
    conn: &mut AsyncPgConnection,
    feeds: BTreeMap<(String, i32, DateTime<Utc>), i64>,
) -> QueryResult<()> {
    if feeds.is_empty() {
        return Ok(());
    }
    query!(
        "stats/add_to_feeds",
        Array<Text>: feeds.keys().map(|key| key.0.as_str()).collect::<Vec<_>>(),
        Array<Integer>: feeds.keys().map(|key| key.1).collect::<Vec<_>>(),
        Array<Timestamptz>: feeds.keys().map(|key| key.2).collect::<Vec<_>>(),
        Array<BigInt>: feeds.values().copied().collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Reads the points, adds to them, and writes them back: under the lock no one else writes them. Existing points
/// are updated, because an INSERT that meets a row locks it first, which adds a record to the database's log.
async fn add_to_points(
    conn: &mut AsyncPgConnection,
    points: &mut [(Key, Counts)],
) -> Result<(), Error> {
    #[derive(QueryableByName)]
    struct Stored {
        #[diesel(sql_type = BigInt)]
        place: i64,
        #[diesel(sql_type = Jsonb)]
        counts: serde_json::Value,
    }
    let columns = Columns::new(points.iter().map(|(key, _)| key));
    let stored: Vec<Stored> = query!(
        "stats/read_points",
        Array<SqlUuid>: columns.namespaces,
        Array<SqlUuid>: columns.subjects,
        Array<Integer>: columns.intervals,
        Array<Timestamptz>: columns.times,
    )
    .load(conn)
    .await?;
    let mut stored: HashMap<i64, serde_json::Value> = stored
        .into_iter()
        .map(|row| (row.place, row.counts))
        .collect();
    let (mut known, mut new) = (Vec::new(), Vec::new());
    for ((key, sum), place) in points.iter_mut().zip(1_i64..) {
        let before = stored.remove(&place);
        let written = if before.is_some() {
            &mut known
        } else {
            &mut new
        };
        if let Some(before) = before {
            sum.add(&serde_json::from_value(before).map_err(Error::Json)?);
        }
        written.push((&*key, serde_json::to_value(sum).map_err(Error::Json)?));
    }
    if !known.is_empty() {
        let (columns, counts) = Columns::with_counts(known);
        query!(
            "stats/update_points",
            Array<SqlUuid>: columns.namespaces,
            Array<SqlUuid>: columns.subjects,
            Array<Integer>: columns.intervals,
            Array<Timestamptz>: columns.times,
            Array<Jsonb>: counts,
        )
        .execute(conn)
        .await?;
    }
    if !new.is_empty() {
        let (columns, counts) = Columns::with_counts(new);
        query!(
            "stats/insert_points",
            Array<SqlUuid>: columns.namespaces,
            Array<SqlUuid>: columns.subjects,
            Array<Integer>: columns.intervals,
            Array<Timestamptz>: columns.times,
            Array<Jsonb>: counts,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}

/// Keys of points, as arrays for `unnest`.
#[derive(Default)]
struct Columns {
    namespaces: Vec<Uuid>,
    subjects: Vec<Uuid>,
    intervals: Vec<i32>,
    times: Vec<DateTime<Utc>>,
}

impl Columns {
    fn new<'a>(keys: impl Iterator<Item = &'a Key>) -> Self {
        let mut columns = Self::default();
        for (namespace, subject, interval, time) in keys {
            columns.namespaces.push(*namespace);
            columns.subjects.push(*subject);
            columns.intervals.push(*interval);
            columns.times.push(*time);
        }
        columns
    }

    fn with_counts(written: Vec<(&Key, serde_json::Value)>) -> (Self, Vec<serde_json::Value>) {
        let columns = Self::new(written.iter().map(|(key, _)| *key));
        (
            columns,
            written.into_iter().map(|(_, counts)| counts).collect(),
        )
    }
}
