//! Hints when to look for waiting deliveries of a Connection. With a rate limit, the hint is half a second before
//! the limit allows the next request: claimed deliveries are then paced, and a query may be late.

use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Double, Nullable, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::ConnectionName;
use uuid::Uuid;

use super::{keys, name};
use crate::{QueryResult, prepared::query};

/// Records that something waits for these Connections, due now. Call after the commit that created it: a session that
/// moved the hint before that commit has not seen the delivery, and one that moves it afterwards sees it.
pub async fn mark_due(
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
    query!(
        "lanes/mark_due",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
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
    let locked: Vec<Locked> = query!(
        "lanes/lock",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
    )
    .load(conn)
    .await?;
    let (namespaces, ids): (Vec<Uuid>, Vec<Uuid>) = locked
        .into_iter()
        .map(|row| (row.namespace_id, row.connection_id))
        .unzip();
    let rows: Vec<Row> = query!(
        "lanes/settle",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
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
