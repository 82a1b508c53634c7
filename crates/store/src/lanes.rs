//! State of each Connection that all dispatchers share: when to look for waiting deliveries, its circuit
//! breaker, its rate.
//!
//! `next_due_time` is a hint: never later than the first waiting delivery, sometimes earlier. Code that leaves a
//! delivery waiting sets the hint after its commit ([`mark_due`]). Code that moves a hint forward first locks the
//! row and then looks for deliveries ([`settle`]), so that none is missed in between.
//! [`crate::deliveries::find_waiting`] finds deliveries whose hint was lost in a crash.
//!
//! Nothing is written here for a healthy Connection without a backlog.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Nullable, SmallInt, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, Timestamp};
use uuid::Uuid;

use crate::{QueryResult, prepared::query};

mod changing;
mod clock;
mod hints;

pub use changing::lock_changing;
pub use clock::follow_clock;
pub use hints::{Settled, mark_due, settle};

/// One Connection's row, locked by its holder.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane {
    pub connection: ConnectionName,
    pub failure_streak: u32,
    /// One bit for each of the last attempts: 1 is a failure, and the lowest bit is the newest.
    pub recent_outcomes: u32,
    /// Number of those bits in use, 20 at most.
    pub recent_count: u8,
    pub open_until: Option<Timestamp>,
    /// Openings in a row.
    pub open_count: u32,
    /// Replica that may send the probe, and the deadline of the probe.
    pub probe: Option<(Uuid, Timestamp)>,
    pub last_success_time: Option<Timestamp>,
    pub failing_since: Option<Timestamp>,
    /// End of the used part of the rate limit.
    pub rate_time: Option<Timestamp>,
    pub next_due_time: Option<Timestamp>,
}

/// A locked lane with related values.
#[derive(Debug, Clone, PartialEq)]
pub struct LockedLane {
    pub lane: Lane,
    /// Time of the database's clock, which all times here refer to.
    pub now: Timestamp,
    /// True if the Connection is `ACTIVE`.
    pub active: bool,
    /// When the Connection was last changed: its address may differ since.
    pub connection_update_time: Timestamp,
    /// True if the Connection sends mails, through the operator's server.
    pub is_email: bool,
    /// The most requests in a minute: `maxPerSecond`, or what the chat service takes from one webhook. Discord takes
    /// 30 a minute for a channel, which is less than any `maxPerSecond`: requests arrive unevenly, so two are left
    /// out.
    pub per_minute: Option<u32>,
    /// True if the replica that sends the probe is alive.
    pub prober_lives: bool,
}

/// A Connection that may have something to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    pub connection: ConnectionName,
    pub account: Id,
    /// Disabled, rate limited, or with an open circuit breaker: must not be claimed without its lock.
    pub restrained: bool,
}

#[derive(QueryableByName)]
struct DueRow {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
    #[diesel(sql_type = Bool)]
    restrained: bool,
}

/// Returns Connections that are due, except those in `known`: of each account the longest due, at most
/// `per_account`. So thousands of Connections of one account never hide another account's only one. Served by
/// `connection_lanes_due_idx`; costs one step for each account with waiting deliveries.
pub async fn due(
    conn: &mut AsyncPgConnection,
    known: &[ConnectionName],
    per_account: i64,
) -> QueryResult<Vec<Due>> {
    let known = known.iter().map(|name| name.connection.to_uuid());
    let rows: Vec<DueRow> = query!(
        "lanes/due",
        BigInt: per_account,
        Array<SqlUuid>: known.collect::<Vec<_>>(),
    )
    .load(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Due {
            connection: name(row.namespace_id, row.connection_id),
            account: Id::from_uuid(row.account_id),
            restrained: row.restrained,
        })
        .collect())
}

/// Returns the time until the next Connection is due; `None` without one. Served by `connection_lanes_due_idx`.
pub async fn next_due(conn: &mut AsyncPgConnection) -> QueryResult<Option<Duration>> {
    #[derive(QueryableByName)]
    struct Next {
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
    }
    let next: Next = query!("lanes/next_due").get_result(conn).await?;
    Ok(next
        .seconds
        .map(|seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default()))
}

#[derive(QueryableByName)]
struct LaneRow {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = Integer)]
    failure_streak: i32,
    #[diesel(sql_type = Integer)]
    recent_outcomes: i32,
    #[diesel(sql_type = SmallInt)]
    recent_count: i16,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    open_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Integer)]
    open_count: i32,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    probed_by: Option<Uuid>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    probe_end_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    last_success_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    failing_since: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    rate_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    next_due_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
    #[diesel(sql_type = Bool)]
    active: bool,
    #[diesel(sql_type = Timestamptz)]
    connection_update_time: DateTime<Utc>,
    #[diesel(sql_type = Bool)]
    is_email: bool,
    #[diesel(sql_type = Nullable<Integer>)]
    per_minute: Option<i32>,
    #[diesel(sql_type = Bool)]
    prober_lives: bool,
}

impl From<LaneRow> for LockedLane {
    fn from(row: LaneRow) -> Self {
        let time = |time: Option<DateTime<Utc>>| time.map(Timestamp::from);
        Self {
            lane: Lane {
                connection: name(row.namespace_id, row.connection_id),
                failure_streak: row.failure_streak.try_into().unwrap_or(0),
                recent_outcomes: row.recent_outcomes.try_into().unwrap_or(0),
                recent_count: row.recent_count.try_into().unwrap_or(0),
                open_until: time(row.open_until),
                open_count: row.open_count.try_into().unwrap_or(0),
                probe: row.probed_by.zip(time(row.probe_end_time)),
                last_success_time: time(row.last_success_time),
                failing_since: time(row.failing_since),
                rate_time: time(row.rate_time),
                next_due_time: time(row.next_due_time),
            },
            now: row.now.into(),
            active: row.active,
            connection_update_time: row.connection_update_time.into(),
            is_email: row.is_email,
            per_minute: row.per_minute.and_then(|rate| rate.try_into().ok()),
            prober_lives: row.prober_lives,
        }
    }
}

/// Locks those of these lanes that are due and that no one else has locked. Call inside a transaction.
pub async fn lock_due(
    conn: &mut AsyncPgConnection,
    connections: &[ConnectionName],
) -> QueryResult<Vec<LockedLane>> {
    let [namespaces, ids] = keys(connections.iter().copied());
    let rows: Vec<LaneRow> = query!(
        "lanes/lock_due",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
    )
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(LockedLane::from).collect())
}

/// Writes back lanes that the transaction has locked.
pub async fn save(conn: &mut AsyncPgConnection, lanes: &[Lane]) -> QueryResult<()> {
    if lanes.is_empty() {
        return Ok(());
    }
    let [namespaces, ids] = keys(lanes.iter().map(|lane| lane.connection));
    let times = |time: fn(&Lane) -> Option<Timestamp>| -> Vec<Option<DateTime<Utc>>> {
        lanes
            .iter()
            .map(|lane| time(lane).map(Timestamp::to_chrono))
            .collect()
    };
    let numbers = |number: fn(&Lane) -> u32| -> Vec<i32> {
        lanes
            .iter()
            .map(|lane| i32::try_from(number(lane)).unwrap_or(i32::MAX))
            .collect()
    };
    let counts = lanes.iter().map(|lane| i16::from(lane.recent_count));
    let probers = lanes.iter().map(|lane| lane.probe.map(|(by, _)| by));
    query!(
        "lanes/save",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        Array<Integer>: numbers(|lane| lane.failure_streak),
        Array<Integer>: numbers(|lane| lane.recent_outcomes),
        Array<SmallInt>: counts.collect::<Vec<_>>(),
        Array<Nullable<Timestamptz>>: times(|lane| lane.open_until),
        Array<Integer>: numbers(|lane| lane.open_count),
        Array<Nullable<SqlUuid>>: probers.collect::<Vec<_>>(),
        Array<Nullable<Timestamptz>>: times(|lane| lane.probe.map(|(_, end)| end)),
        Array<Nullable<Timestamptz>>: times(|lane| lane.last_success_time),
        Array<Nullable<Timestamptz>>: times(|lane| lane.failing_since),
        Array<Nullable<Timestamptz>>: times(|lane| lane.rate_time),
        Array<Nullable<Timestamptz>>: times(|lane| lane.next_due_time),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Counts a Connection's failing deliveries: those that wait for a retry, and those exhausted since `since`. Stops
/// counting at `enough`. Reads the whole log since then, so call it only when needed.
pub async fn failing_deliveries(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    since: Timestamp,
    enough: i64,
) -> QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let counted: Count = query!(
        "lanes/failing_deliveries",
        SqlUuid: connection.namespace.to_uuid(),
        SqlUuid: connection.connection.to_uuid(),
        Timestamptz: since.to_chrono(),
        BigInt: enough,
    )
    .get_result(conn)
    .await?;
    Ok(counted.count)
}

fn name(namespace: Uuid, connection: Uuid) -> ConnectionName {
    ConnectionName {
        namespace: Id::from_uuid(namespace),
        connection: Id::from_uuid(connection),
    }
}

/// Namespaces and ids, as two arrays.
pub(crate) fn keys(names: impl Iterator<Item = ConnectionName>) -> [Vec<Uuid>; 2] {
    let (namespaces, ids) = names
        .map(|name| (name.namespace.to_uuid(), name.connection.to_uuid()))
        .unzip();
    [namespaces, ids]
}
