//! Finds deliveries that no hint points to, and ends deliveries that will never be sent. One replica sweeps for
//! all.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName, sql_query,
    sql_types::{BigInt, Bool, Double, Integer, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, Timestamp};
use uuid::Uuid;

use crate::{QueryResult, lanes, prepared::Prepared, replicas};

/// Returns true if `replica` is the sweeper of its service: the living replica with the lowest id.
pub async fn is_sweeper(conn: &mut AsyncPgConnection, replica: Uuid) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct First {
        #[diesel(sql_type = Bool)]
        own: bool,
    }
    let alive = replicas::ALIVE;
    let first: Option<First> = Prepared(
        sql_query(format!(
            "SELECT id = $1 AS own FROM replicas \
             WHERE id {alive} AND service = (SELECT service FROM replicas WHERE id = $1) ORDER BY id LIMIT 1"
        ))
        .bind::<SqlUuid, _>(replica),
    )
    .get_result(conn)
    .await
    .optional()?;
    Ok(first.is_some_and(|first| first.own))
}

/// Result of a look at Connections with waiting deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Connections whose hint was later than their waiting deliveries; these hints have been corrected.
    pub unnoted: usize,
    /// Deleted Connections with waiting deliveries.
    pub gone: Vec<ConnectionName>,
    /// The last one looked at, if there may be more.
    pub last: Option<ConnectionName>,
}

/// Checks up to `limit` Connections with waiting deliveries, in the order of their ids after `after`, and corrects hints
/// that are later than those: a dispatcher died between a commit and its [`lanes::note_due`]. Costs one step of
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
    // OFFSET keeps the planner, which expects many rows, from reading all Connections.
    let after = |id: fn(&ConnectionName) -> Id| after.as_ref().map_or(Id::NIL, id).to_uuid();
    let rows: Vec<Row> = Prepared(
        sql_query(
            "WITH RECURSIVE waiting AS ( \
                 (SELECT namespace_id, connection_id, next_attempt_time, 1 AS number FROM deliveries \
                  WHERE state IN ('PENDING', 'RETRYING') AND (namespace_id, connection_id) > ($1, $2) \
                  ORDER BY namespace_id, connection_id, next_attempt_time LIMIT 1) \
                 UNION ALL \
                 SELECT next.*, w.number + 1 FROM waiting AS w CROSS JOIN LATERAL ( \
                     SELECT d.namespace_id, d.connection_id, d.next_attempt_time FROM deliveries AS d \
                     WHERE d.state IN ('PENDING', 'RETRYING') \
                       AND (d.namespace_id, d.connection_id) > (w.namespace_id, w.connection_id) \
                     ORDER BY d.namespace_id, d.connection_id, d.next_attempt_time LIMIT 1 \
                 ) AS next WHERE w.number < $3 \
             ), found AS ( \
                 SELECT w.namespace_id, w.connection_id, c.state IS NULL AS gone, w.number >= $3 AS last, \
                     coalesce(c.state = 'ACTIVE' AND coalesce(l.next_due_time, 'infinity') > \
                         greatest(w.next_attempt_time, l.open_until, l.probe_end_time, l.rate_time), false) AS unnoted \
                 FROM waiting AS w \
                 LEFT JOIN LATERAL (SELECT state FROM connections \
                     WHERE namespace_id = w.namespace_id AND id = w.connection_id OFFSET 0) AS c ON true \
                 LEFT JOIN LATERAL (SELECT * FROM connection_lanes \
                     WHERE namespace_id = w.namespace_id AND connection_id = w.connection_id OFFSET 0) AS l ON true \
             ) SELECT * FROM found WHERE gone OR unnoted OR last",
        )
        .bind::<SqlUuid, _>(after(|name| name.namespace))
        .bind::<SqlUuid, _>(after(|name| name.connection))
        .bind::<Integer, _>(limit),
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
    lanes::note_due(conn, &unnoted).await?;
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
    sql_query(
        "UPDATE deliveries AS d SET state = 'CANCELLED', next_attempt_time = NULL, update_time = clock_timestamp(), \
             last_error = 'connection_deleted', urgent = false \
         FROM (SELECT namespace_id, connection_id, create_time, id FROM deliveries \
               WHERE namespace_id = $1 AND connection_id = $2 AND state IN ('PENDING', 'RETRYING') \
               ORDER BY next_attempt_time LIMIT $3 FOR UPDATE SKIP LOCKED) AS waiting \
         WHERE d.namespace_id = waiting.namespace_id AND d.connection_id = waiting.connection_id \
           AND d.create_time = waiting.create_time AND d.id = waiting.id",
    )
    .bind::<SqlUuid, _>(connection.namespace.to_uuid())
    .bind::<SqlUuid, _>(connection.connection.to_uuid())
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}

/// Marks up to `limit` deliveries as `expired`: those of disabled Connections that are older than `kept`, and those
/// of Connections with an open circuit breaker that are older than `max_age`, as is the last change of the Connection:
/// what waited while it was disabled gets its tries. Returns their number. Ages use the database's clock or `now`,
/// whichever is earlier, so that a single wrong clock expires nothing. Reads the old part of these Connections' log,
/// so call it rarely.
pub async fn expire(
    conn: &mut AsyncPgConnection,
    kept: Duration,
    max_age: Duration,
    limit: i64,
    now: Timestamp,
) -> QueryResult<usize> {
    sql_query(
        "UPDATE deliveries AS d SET state = 'EXHAUSTED', next_attempt_time = NULL, update_time = clock_timestamp(), \
             last_error = $4, urgent = false \
         FROM (SELECT old.namespace_id, old.connection_id, old.create_time, old.id \
               FROM connections AS c \
               JOIN connection_lanes AS l ON l.namespace_id = c.namespace_id AND l.connection_id = c.id \
               CROSS JOIN LATERAL ( \
                   SELECT w.namespace_id, w.connection_id, w.create_time, w.id FROM deliveries AS w \
                   WHERE w.namespace_id = c.namespace_id AND w.connection_id = c.id \
                     AND w.state IN ('PENDING', 'RETRYING') \
                     AND CASE c.state WHEN 'ACTIVE' THEN greatest(w.create_time, w.reopen_time, c.update_time) \
                             + $2 * interval '1 second' \
                         ELSE greatest(w.create_time, w.reopen_time) + $1 * interval '1 second' END \
                         < least(statement_timestamp(), $5) \
                     AND w.create_time < least(statement_timestamp(), $5) - least($1, $2) * interval '1 second' \
                   LIMIT $3 FOR UPDATE SKIP LOCKED \
               ) AS old \
               WHERE (c.state <> 'ACTIVE' OR l.open_until IS NOT NULL) AND EXISTS ( \
                   SELECT FROM deliveries AS w WHERE w.namespace_id = c.namespace_id AND w.connection_id = c.id \
                     AND w.state IN ('PENDING', 'RETRYING')) \
               LIMIT $3) AS old \
         WHERE d.namespace_id = old.namespace_id AND d.connection_id = old.connection_id \
           AND d.create_time = old.create_time AND d.id = old.id",
    )
    .bind::<Double, _>(kept.as_secs_f64())
    .bind::<Double, _>(max_age.as_secs_f64())
    .bind::<BigInt, _>(limit)
    .bind::<Text, _>("expired")
    .bind::<Timestamptz, _>(now.to_chrono())
    .execute(conn)
    .await
}

/// State of the lanes of all Connections: open circuit breakers, Connections with something to send now, and how
/// long the longest of them has waited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    pub open_breakers: i64,
    pub behind: i64,
    pub oldest_due: Duration,
}

/// Reads all lanes: one small row per Connection.
pub async fn standing(conn: &mut AsyncPgConnection) -> QueryResult<Standing> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        open_breakers: i64,
        #[diesel(sql_type = BigInt)]
        behind: i64,
        #[diesel(sql_type = Double)]
        seconds: f64,
    }
    let row: Row = Prepared(sql_query(
        "SELECT count(*) FILTER (WHERE open_until IS NOT NULL) AS open_breakers, \
             count(*) FILTER (WHERE next_due_time <= statement_timestamp()) AS behind, \
             coalesce(greatest(extract(epoch FROM statement_timestamp() - min(next_due_time)), 0), 0)::float8 AS seconds \
         FROM connection_lanes WHERE next_due_time IS NOT NULL OR open_until IS NOT NULL",
    ))
    .get_result(conn)
    .await?;
    Ok(Standing {
        open_breakers: row.open_breakers,
        behind: row.behind,
        oldest_due: Duration::try_from_secs_f64(row.seconds).unwrap_or_default(),
    })
}

/// Unfinished deliveries, up to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standings {
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
pub async fn standings(conn: &mut AsyncPgConnection, most: i64) -> QueryResult<Standings> {
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
    let row: Row = Prepared(
        sql_query(
            "SELECT clock_timestamp() AS now, waiting.*, in_flight.* FROM \
                 (SELECT count(*) FILTER (WHERE state = 'PENDING') AS pending, \
                      count(*) FILTER (WHERE state = 'RETRYING') AS retrying, \
                      count(*) FILTER (WHERE next_attempt_time <= statement_timestamp()) AS due \
                  FROM (SELECT state, next_attempt_time FROM deliveries WHERE state IN ('PENDING', 'RETRYING') \
                        LIMIT $1) AS w) AS waiting, \
                 (SELECT count(*) AS in_flight \
                  FROM (SELECT FROM deliveries WHERE state = 'IN_FLIGHT' LIMIT $1) AS open) AS in_flight",
        )
        .bind::<BigInt, _>(most),
    )
    .get_result(conn)
    .await?;
    Ok(Standings {
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
    Prepared(sql_query(
        "SELECT count(*) FILTER (WHERE c.state = 'ACTIVE' AND l.open_until IS NULL) AS active, \
             count(*) FILTER (WHERE c.state = 'ACTIVE' AND l.open_until IS NOT NULL) AS broken, \
             count(*) FILTER (WHERE c.state <> 'ACTIVE') AS disabled \
         FROM connections AS c LEFT JOIN connection_lanes AS l \
           ON l.namespace_id = c.namespace_id AND l.connection_id = c.id",
    ))
    .get_result(conn)
    .await
}

/// Moves back the times of up to `limit` deliveries that have waited since before the database's clock went back:
/// each waits as long as it was meant to. Returns their number. Reads all deliveries that are due later, so call it
/// only after the clock went back.
pub async fn follow_clock(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
    sql_query(
        "UPDATE deliveries AS d SET update_time = clock_timestamp(), \
             next_attempt_time = clock_timestamp() + greatest(d.next_attempt_time - d.update_time, interval '0') \
         FROM (SELECT namespace_id, connection_id, create_time, id FROM deliveries \
               WHERE state IN ('PENDING', 'RETRYING') AND next_attempt_time > statement_timestamp() \
                 AND update_time > clock_timestamp() + interval '1 minute' \
               LIMIT $1 FOR UPDATE SKIP LOCKED) AS ahead \
         WHERE d.namespace_id = ahead.namespace_id AND d.connection_id = ahead.connection_id \
           AND d.create_time = ahead.create_time AND d.id = ahead.id",
    )
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}
