//! Health of Connections, from what dispatchers recorded.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, Id,
    connection::{Breaker, Health, MAX_COUNTED},
};
use uuid::Uuid;

use crate::{QueryResult, lanes, prepared::query};

#[derive(QueryableByName)]
struct ConnectionHealthRow {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = Integer)]
    recent_outcomes: i32,
    #[diesel(sql_type = SmallInt)]
    recent_count: i16,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    last_success_time: Option<DateTime<Utc>>,
    /// NULL if the circuit breaker is closed; else true while it is open.
    #[diesel(sql_type = Nullable<Bool>)]
    open: Option<bool>,
    #[diesel(sql_type = BigInt)]
    pending: i64,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    oldest_pending_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Text>)]
    digest_error: Option<String>,
}

impl ConnectionHealthRow {
    fn health(&self) -> Health {
        let count = u32::try_from(self.recent_count).unwrap_or(0).min(31);
        let told = (0..count).filter(|bit| self.recent_outcomes.cast_unsigned() >> bit & 1 == 1);
        let failed = u32::try_from(told.count()).unwrap_or(count);
        let rate = (count > 0).then(|| f64::from(count - failed) / f64::from(count));
        Health {
            success_rate: rate,
            last_success_time: self.last_success_time.map(Into::into),
            pending: self.pending.try_into().unwrap_or(0),
            oldest_pending_time: self.oldest_pending_time.map(Into::into),
            breaker: match self.open {
                None => Breaker::Closed,
                Some(true) => Breaker::Open,
                Some(false) => Breaker::HalfOpen,
            },
            digest_error: self.digest_error.clone(),
        }
    }
}

/// Health of the Connections that exist. Reads one row of `connection_lanes` and one of `leases` each, and a bounded number
/// of entries of `deliveries_due_by_connection_idx`, regardless of how many deliveries wait.
pub async fn health(
    conn: &mut AsyncPgConnection,
    connections: &[ConnectionName],
) -> QueryResult<HashMap<ConnectionName, Health>> {
    let [namespaces, ids] = lanes::keys(connections.iter().copied());
    let rows: Vec<ConnectionHealthRow> = query!(
        "connections/health",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        BigInt: i64::from(MAX_COUNTED),
    )
    .load(conn)
    .await?;
    let name = |row: &ConnectionHealthRow| ConnectionName {
        namespace: Id::from_uuid(row.namespace_id),
        connection: Id::from_uuid(row.connection_id),
    };
    Ok(rows.iter().map(|row| (name(row), row.health())).collect())
}
