//! Heartbeats of replicas, on which leases hang.

use std::time::Duration;

use diesel::{
    sql_query,
    sql_types::{Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::QueryResult;

/// How often a replica renews its heartbeat.
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// The condition that a lease's holder is alive, for `{column}`. By the database's clock, so that
/// replicas need not agree on the time.
pub(crate) const ALIVE: &str =
    "IN (SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds')";

/// Says that `replica` lives. Rows of those that have been silent for an hour are swept on the way.
///
/// # Errors
/// When the database does not answer.
pub async fn beat(conn: &mut AsyncPgConnection, replica: Uuid, service: &str) -> QueryResult<()> {
    sql_query(
        "WITH swept AS (DELETE FROM replicas WHERE heartbeat_time < clock_timestamp() - interval '1 hour' AND id <> $1) \
         INSERT INTO replicas (id, service, heartbeat_time) VALUES ($1, $2, clock_timestamp()) \
         ON CONFLICT (id) DO UPDATE SET heartbeat_time = clock_timestamp()",
    )
    .bind::<SqlUuid, _>(replica)
    .bind::<Text, _>(service)
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends `replica`: everything that it leased is free at once.
///
/// # Errors
/// When the database does not answer.
pub async fn leave(conn: &mut AsyncPgConnection, replica: Uuid) -> QueryResult<()> {
    sql_query("DELETE FROM replicas WHERE id = $1")
        .bind::<SqlUuid, _>(replica)
        .execute(conn)
        .await?;
    Ok(())
}
