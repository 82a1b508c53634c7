//! Heartbeats of replicas, which keep their leases valid.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;
use uuid::Uuid;

use crate::{QueryResult, prepared::query, schema::replicas};

/// How often a replica renews its heartbeat.
pub const HEARTBEAT: Duration = Duration::from_secs(1);

/// Condition that a lease's holder is alive, for `{column}`. It uses the database's clock, so that replicas need no
/// common time.
pub(crate) const ALIVE: &str =
    "IN (SELECT id FROM replicas WHERE heartbeat_time > clock_timestamp() - interval '4 seconds')";

/// Condition that a lease's holder died. One that shut down is not in `replicas`.
pub(crate) const DEAD: &str =
    "IN (SELECT id FROM replicas WHERE heartbeat_time <= clock_timestamp() - interval '4 seconds')";

/// Renews the heartbeat of `replica`. Also deletes rows of replicas that have been silent for a day: until then, their
/// items in hand count a crash. If the database's clock went back, heartbeats in the future are set to now: a dead
/// replica must not count as alive until the clock has caught up.
pub async fn beat(conn: &mut AsyncPgConnection, replica: Uuid, service: &str) -> QueryResult<()> {
    query!(
        "replicas/beat",
        SqlUuid: replica,
        Text: service,
    )
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
    let clock: Clock = query!("replicas/clock").get_result(conn).await?;
    Ok(Timestamp::from(clock.now))
}

/// Removes `replica`: all its leases are free at once.
pub async fn leave(conn: &mut AsyncPgConnection, replica: Uuid) -> QueryResult<()> {
    diesel::delete(replicas::table.find(replica))
        .execute(conn)
        .await?;
    Ok(())
}
