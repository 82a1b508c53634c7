//! Hints when to look for waiting deliveries of a Connection. With a rate limit, the hint is half a second before
//! the limit allows the next request: claimed deliveries are then paced, and a look may be late.

use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Double, Nullable, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::ConnectionName;
use uuid::Uuid;

use super::{keys, name};
use crate::{QueryResult, connections::per_minute, prepared::Prepared};

/// Records that something waits for these Connections, due now. Call after the commit that created it: a session that
/// moved the hint before that commit has not seen it, and one that moves it afterwards does.
pub async fn note_due(
    conn: &mut AsyncPgConnection,
    connections: &[ConnectionName],
) -> QueryResult<()> {
    if connections.is_empty() {
        return Ok(());
    }
    let mut sorted = connections.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let [namespaces, ids] = keys(sorted.into_iter());
    // Without a condition: PostgreSQL would evaluate it on the row as it was before another transaction's lock, and
    // so miss that the hint has just been moved.
    Prepared(
        sql_query(
            "UPDATE connection_lanes AS l SET next_due_time = least(coalesce(l.next_due_time, 'infinity'), \
                 greatest(clock_timestamp(), l.open_until, l.probe_end_time, l.rate_time - interval '500 milliseconds')) \
             FROM unnest($1, $2) AS given (namespace_id, connection_id) \
             WHERE l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id",
        )
        .bind::<Array<SqlUuid>, _>(namespaces)
        .bind::<Array<SqlUuid>, _>(ids),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Final position of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub connection: ConnectionName,
    /// Time until something may be sent; `None` if nothing waits, or the Connection is disabled.
    pub next: Option<Duration>,
    /// Same as in [`super::Due`].
    pub restrained: bool,
}

/// Moves the hints of Connections to their next waiting delivery, after a claim that found less than it asked for.
/// Skips Connections that someone else has locked. Call inside a transaction; two statements, one step of
/// `deliveries_due_by_connection_idx` for each Connection.
pub async fn settle(
    conn: &mut AsyncPgConnection,
    connections: &[ConnectionName],
) -> QueryResult<Vec<Settled>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
        #[diesel(sql_type = Bool)]
        waits: bool,
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
        #[diesel(sql_type = Bool)]
        restrained: bool,
    }
    #[derive(QueryableByName)]
    struct Locked {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
    }
    if connections.is_empty() {
        return Ok(Vec::new());
    }
    let [namespaces, ids] = keys(connections.iter().copied());
    // A separate statement takes the locks, so that the next one sees everything that was committed before.
    let locked: Vec<Locked> = Prepared(
        sql_query(
            "SELECT l.namespace_id, l.connection_id FROM connection_lanes AS l \
             JOIN unnest($1, $2) AS given (namespace_id, connection_id) \
               ON l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id \
             ORDER BY l.namespace_id, l.connection_id FOR NO KEY UPDATE OF l SKIP LOCKED",
        )
        .bind::<Array<SqlUuid>, _>(namespaces)
        .bind::<Array<SqlUuid>, _>(ids),
    )
    .load(conn)
    .await?;
    let (namespaces, ids): (Vec<Uuid>, Vec<Uuid>) = locked
        .into_iter()
        .map(|row| (row.namespace_id, row.connection_id))
        .unzip();
    let rows: Vec<Row> = Prepared(
        sql_query(concat!(
            "UPDATE connection_lanes AS l SET next_due_time = CASE WHEN c.state = 'ACTIVE' THEN ( \
                 SELECT greatest(d.next_attempt_time, l.open_until, l.probe_end_time, \
                     l.rate_time - interval '500 milliseconds') \
                 FROM deliveries AS d WHERE d.namespace_id = given.namespace_id \
                   AND d.connection_id = given.connection_id AND d.state IN ('PENDING', 'RETRYING') \
                 ORDER BY d.next_attempt_time LIMIT 1) END \
             FROM unnest($1, $2) AS given (namespace_id, connection_id) \
             JOIN connections AS c ON c.namespace_id = given.namespace_id AND c.id = given.connection_id \
             WHERE l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id \
             RETURNING l.namespace_id, l.connection_id, l.next_due_time IS NOT NULL AS waits, \
                 extract(epoch FROM l.next_due_time - clock_timestamp())::float8 AS seconds, \
                 l.open_until IS NOT NULL OR c.state <> 'ACTIVE' OR ",
            per_minute!(),
            " IS NOT NULL AS restrained"
        ))
        .bind::<Array<SqlUuid>, _>(namespaces)
        .bind::<Array<SqlUuid>, _>(ids),
    )
    .load(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Settled {
            connection: name(row.namespace_id, row.connection_id),
            next: row.waits.then(|| {
                let seconds = row.seconds.unwrap_or_default();
                Duration::try_from_secs_f64(seconds).unwrap_or_default()
            }),
            restrained: row.restrained,
        })
        .collect())
}
