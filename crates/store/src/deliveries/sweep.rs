//! Finds deliveries that no hint points to, and ends deliveries that will never be sent. One replica sweeps for
//! all.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{BigInt, Bool, Double, Integer, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, Timestamp};
use uuid::Uuid;

use crate::{QueryResult, lanes, prepared::query};

/// Returns true if `replica` is the sweeper of its service: the living replica with the lowest id.
pub async fn is_sweeper(conn: &mut AsyncPgConnection, replica: Uuid) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct First {
        #[diesel(sql_type = Bool)]
        own: bool,
    }
    let first: Option<First> = query!(
        "deliveries/is_sweeper",
        SqlUuid: replica,
    )
    .get_result(conn)
    .await
    .optional()?;
    Ok(first.is_some_and(|first| first.own))
}

/// Result of checking Connections with waiting deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Connections whose hint was later than their waiting deliveries; these hints have been corrected.
    pub unnoted: usize,
    /// Deleted Connections with waiting deliveries.
    pub gone: Vec<ConnectionName>,
    /// The last Connection that was checked, if there may be more.
    pub last: Option<ConnectionName>,
}

/// Checks up to `limit` Connections with waiting deliveries, in the order of their ids after `after`, and corrects hints
/// that are later than those: a dispatcher died between a commit and its [`lanes::mark_due`]. Costs one step of
/// `deliveries_due_by_connection_idx` for each such Connection, regardless of how many deliveries wait.
pub async fn find_waiting(
    conn: &mut AsyncPgConnection,
    after: Option<ConnectionName>,
    limit: i32,
) -> QueryResult<Waiting> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
        #[diesel(sql_type = Bool)]
        gone: bool,
        #[diesel(sql_type = Bool)]
        unnoted: bool,
        #[diesel(sql_type = Bool)]
        last: bool,
    }
    let after = |id: fn(&ConnectionName) -> Id| after.as_ref().map_or(Id::NIL, id).to_uuid();
    let rows: Vec<Row> = query!(
        "deliveries/find_waiting",
        SqlUuid: after(|name| name.namespace),
        SqlUuid: after(|name| name.connection),
        Integer: limit,
    )
    .load(conn)
    .await?;
    let names = |is_wanted: fn(&Row) -> bool| -> Vec<ConnectionName> {
        let found = rows.iter().filter(|row| is_wanted(row));
        found
            .map(|row| ConnectionName {
                namespace: Id::from_uuid(row.namespace_id),
                connection: Id::from_uuid(row.connection_id),
            })
            .collect()
    };
    let unnoted = names(|row| row.unnoted);
    lanes::mark_due(conn, &unnoted).await?;
    Ok(Waiting {
        unnoted: unnoted.len(),
        gone: names(|row| row.gone),
        last: names(|row| row.last).pop(),
    })
}

/// Cancels up to `limit` deliveries that wait for a deleted Connection, and returns their number.
pub async fn cancel_waiting(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    limit: i64,
) -> QueryResult<usize> {
    query!(
        "deliveries/cancel_waiting",
        SqlUuid: connection.namespace.to_uuid(),
        SqlUuid: connection.connection.to_uuid(),
        BigInt: limit,
    )
    .execute(conn)
    .await
}

/// Marks up to `limit` deliveries as `expired`: those of disabled Connections that are older than `kept`, and those of
/// Connections with an open circuit breaker that are older than `max_age`, if the Connection's last change is too. So
/// what waited while the Connection was disabled is still tried. Returns their number. Ages use the database's clock or
/// `now`, whichever is earlier, so that a single wrong clock expires nothing. Reads the old part of these Connections'
/// log, so call it rarely.
pub async fn expire(
    conn: &mut AsyncPgConnection,
    kept: Duration,
    max_age: Duration,
    limit: i64,
    now: Timestamp,
) -> QueryResult<usize> {
    query!(
        "deliveries/expire",
        Double: kept.as_secs_f64(),
        Double: max_age.as_secs_f64(),
        BigInt: limit,
        Text: "expired",
        Timestamptz: now.to_chrono(),
    )
    .execute(conn)
    .await
}

/// State of the lanes of all Connections: open circuit breakers, Connections with something to send now, and how
/// long the longest of them has waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneTotals {
    pub open_breakers: i64,
    pub behind: i64,
    pub oldest_due: Duration,
}

/// Reads all lanes: one small row per Connection.
pub async fn lane_totals(conn: &mut AsyncPgConnection) -> QueryResult<LaneTotals> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        open_breakers: i64,
        #[diesel(sql_type = BigInt)]
        behind: i64,
        #[diesel(sql_type = Double)]
        seconds: f64,
    }
    let row: Row = query!("lanes/standing").get_result(conn).await?;
    Ok(LaneTotals {
        open_breakers: row.open_breakers,
        behind: row.behind,
        oldest_due: Duration::try_from_secs_f64(row.seconds).unwrap_or_default(),
    })
}

/// Unfinished deliveries, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnfinishedCounts {
    /// Time of the database's clock.
    pub now: Timestamp,
    pub pending: i64,
    pub retrying: i64,
    pub in_flight: i64,
    /// Pending and retrying deliveries whose time has come.
    pub due: i64,
}

/// Counts up to `most` waiting deliveries, and up to `most` in flight. Served by `deliveries_due_by_connection_idx` and
/// `deliveries_in_flight_idx`, in any order.
pub async fn count_unfinished(
    conn: &mut AsyncPgConnection,
    most: i64,
) -> QueryResult<UnfinishedCounts> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Timestamptz)]
        now: DateTime<Utc>,
        #[diesel(sql_type = BigInt)]
        pending: i64,
        #[diesel(sql_type = BigInt)]
        retrying: i64,
        #[diesel(sql_type = BigInt)]
        in_flight: i64,
        #[diesel(sql_type = BigInt)]
        due: i64,
    }
    let row: Row = query!("deliveries/standings", BigInt: most)
        .get_result(conn)
        .await?;
    Ok(UnfinishedCounts {
        now: row.now.into(),
        pending: row.pending,
        retrying: row.retrying,
        in_flight: row.in_flight,
        due: row.due,
    })
}

/// Number of Connections by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, QueryableByName)]
pub struct Endpoints {
    /// Active, with its breaker closed.
    #[diesel(sql_type = BigInt)]
    pub active: i64,
    /// Active, with its breaker open.
    #[diesel(sql_type = BigInt)]
    pub broken: i64,
    #[diesel(sql_type = BigInt)]
    pub disabled: i64,
}

/// Counts all Connections: reads a small row of each and of its lane.
pub async fn endpoints(conn: &mut AsyncPgConnection) -> QueryResult<Endpoints> {
    query!("connections/count").get_result(conn).await
}

/// Moves back the times of up to `limit` deliveries that have waited since before the database's clock went back:
/// each waits as long as it was meant to. Returns their number. Reads all deliveries that are due later, so call it
/// only after the clock went back.
pub async fn follow_clock(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
    query!("deliveries/follow_clock", BigInt: limit)
        .execute(conn)
        .await
}
