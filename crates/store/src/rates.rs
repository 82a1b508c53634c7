//! Points of the rate limit, leased to replicas.
//!
//! One row a key, locked while a lease is settled or granted; [`ledger`] has the rules and why they hold.
//! A lease costs one short transaction. Rows are as many as keys that were ever used, and never swept.

mod ledger;

use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{BigInt, Jsonb, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl};
use domain::Id;

use crate::{QueryError, QueryResult};

pub use ledger::{Grant, LEASE_MS, LeaseId, Ledger, Settlement, WINDOW_MS, Wanted};

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Jsonb)]
    ledger: serde_json::Value,
    #[diesel(sql_type = BigInt)]
    now_ms: i64,
}

/// Settles a lease of `key`, and then leases points, each where it is given. By primary key.
///
/// The database's clock is read before the row is locked or while it is waited for: too early does no
/// harm, it only counts longer.
///
/// # Errors
/// When the database does not answer.
pub async fn lease(
    conn: &mut AsyncPgConnection,
    key: Id,
    limit: u32,
    settlement: Option<&Settlement>,
    wanted: Option<&Wanted>,
) -> QueryResult<Option<Grant>> {
    conn.transaction(async |conn| {
        let (mut ledger, now_ms) = locked(conn, key).await?;
        if let Some(settlement) = settlement {
            ledger.settle(settlement);
        }
        let grant = wanted.map(|wanted| ledger.grant(now_ms, limit, wanted));
        let ledger = serde_json::to_value(&ledger)
            .map_err(|error| QueryError::SerializationError(error.into()))?;
        sql_query("UPDATE rate_ledgers SET ledger = $2 WHERE api_key_id = $1")
            .bind::<SqlUuid, _>(key.to_uuid())
            .bind::<Jsonb, _>(ledger)
            .execute(conn)
            .await?;
        Ok(grant)
    })
    .await
}

/// The ledger of `key`, which no one else changes until the end of the transaction.
async fn locked(conn: &mut AsyncPgConnection, key: Id) -> QueryResult<(Ledger, i64)> {
    const LOCKED: &str = "SELECT ledger, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms \
         FROM rate_ledgers WHERE api_key_id = $1 FOR UPDATE";
    let locked = sql_query(LOCKED).bind::<SqlUuid, _>(key.to_uuid());
    let row: Option<Row> = locked.clone().get_result(conn).await.optional()?;
    let row = match row {
        Some(row) => row,
        None => {
            sql_query(
                "INSERT INTO rate_ledgers (api_key_id, ledger) VALUES ($1, '{\"leases\": [], \"spent\": []}') \
                 ON CONFLICT (api_key_id) DO NOTHING",
            )
            .bind::<SqlUuid, _>(key.to_uuid())
            .execute(conn)
            .await?;
            locked.get_result(conn).await?
        }
    };
    let ledger = serde_json::from_value(row.ledger)
        .map_err(|error| QueryError::DeserializationError(error.into()))?;
    Ok((ledger, row.now_ms))
}
