//! Heartbeats of replicas, which keep their leases valid.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;
use uuid::Uuid;

use crate::QueryResult;

/// How often a replica renews its heartbeat.
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// Condition that a lease's holder is alive, for `{column}`. It uses the database's clock, so that replicas need no
/// common time.
pub(crate) const ALIVE: &str =
    "IN (SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds')";

/// Renews the heartbeat of `replica`. Also deletes rows of replicas that have been silent for a day: until
/// then, what they had in hand counts a crash. If the
/// database's clock went back, heartbeats in the future are set to now: a dead replica must not count as alive
/// until the clock has caught up.
pub async fn beat(conn: &mut AsyncPgConnection, replica: Uuid, service: &str) -> QueryResult<()> {
    sql_query(
        "WITH swept AS (DELETE FROM replicas WHERE heartbeat_time < clock_timestamp() - interval '1 day' AND id <> $1), \
              ahead AS (SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() + interval '1 minute' \
                        AND id <> $1 FOR NO KEY UPDATE SKIP LOCKED), \
              followed AS (UPDATE replicas SET heartbeat_time = clock_timestamp() WHERE id IN (SELECT id FROM ahead)) \
         INSERT INTO replicas (id, service, heartbeat_time) VALUES ($1, $2, clock_timestamp()) \
         ON CONFLICT (id) DO UPDATE SET heartbeat_time = clock_timestamp()",
    )
    .bind::<SqlUuid, _>(replica)
    .bind::<Text, _>(service)
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the time of the database's clock.
pub async fn clock(conn: &mut AsyncPgConnection) -> QueryResult<Timestamp> {
    #[derive(QueryableByName)]
    struct Clock {
        #[diesel(sql_type = Timestamptz)]
        now: DateTime<Utc>,
    }
    let clock: Clock = sql_query("SELECT clock_timestamp() AS now")
        .get_result(conn)
        .await?;
    Ok(Timestamp::from(clock.now))
}

/// Removes `replica`: all its leases are free at once.
pub async fn leave(conn: &mut AsyncPgConnection, replica: Uuid) -> QueryResult<()> {
    sql_query("DELETE FROM replicas WHERE id = $1")
        .bind::<SqlUuid, _>(replica)
        .execute(conn)
        .await?;
    Ok(())
}
