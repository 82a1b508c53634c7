//! Points of the rate limit, leased to replicas.
//!
//! There is one row per key and one per account. Both are locked while a lease is settled or granted: the key's
//! first, so that leases of one account wait for each other and never deadlock. [`ledger`] has the rules and their
//! proof. A lease costs one short transaction. There is a row for every key and account that was ever used; rows
//! are never removed.

mod both;
mod ledger;

use diesel::{
    OptionalExtension as _, QueryableByName,
    sql_types::{BigInt, Integer, Jsonb, Nullable, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl};
use domain::Id;

use crate::{QueryError, QueryResult, prepared::query};

pub use both::{Ledgers, Limits, SharedGrant};
pub use ledger::{Grant, LEASE_MS, LeaseId, Ledger, Settlement, WINDOW_MS, Wanted};

/// A key and its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payer {
    pub key: Id,
    pub account: Id,
}

#[derive(QueryableByName)]
struct LedgersRow {
    #[diesel(sql_type = Jsonb)]
    key_ledger: serde_json::Value,
    #[diesel(sql_type = Jsonb)]
    account_ledger: serde_json::Value,
    #[diesel(sql_type = Nullable<Integer>)]
    quota_rate_limit_per_minute: Option<i32>,
    #[diesel(sql_type = BigInt)]
    now_ms: i64,
}

/// Settles a lease of the key and then leases points, each if its argument is given. `limits` has the account's
/// default, which applies if none was set for it. By primary keys.
///
/// The database's clock is read before or while waiting for the rows. Reading it too early is harmless: the points
/// only count longer.
pub async fn lease(
    conn: &mut AsyncPgConnection,
    payer: Payer,
    limits: Limits,
    settlement: Option<&Settlement>,
    wanted: Option<&Wanted>,
) -> QueryResult<Option<SharedGrant>> {
    conn.transaction(async |conn| {
        let row = locked(conn, payer).await?;
        let mut ledgers = Ledgers {
            key: parse(row.key_ledger)?,
            account: parse(row.account_ledger)?,
        };
        let account = row.quota_rate_limit_per_minute;
        let account = account.and_then(|limit| u32::try_from(limit).ok());
        let limits = Limits {
            account: account.unwrap_or(limits.account),
            ..limits
        };
        if let Some(settlement) = settlement {
            ledgers.settle(settlement);
        }
        let grant = wanted.map(|wanted| ledgers.grant(row.now_ms, limits, wanted));
        query!(
            "rates/store",
            SqlUuid: payer.key.to_uuid(),
            Jsonb: json(&ledgers.key)?,
            SqlUuid: payer.account.to_uuid(),
            Jsonb: json(&ledgers.account)?,
        )
        .execute(conn)
        .await?;
        Ok(grant)
    })
    .await
}

/// Returns the ledgers of `payer`, locked until the end of the transaction.
async fn locked(conn: &mut AsyncPgConnection, payer: Payer) -> QueryResult<LedgersRow> {
    let locked = || {
        query!(
            "rates/lock",
            SqlUuid: payer.key.to_uuid(),
            SqlUuid: payer.account.to_uuid(),
        )
    };
    if let Some(row) = locked().get_result(conn).await.optional()? {
        return Ok(row);
    }
    query!(
        "rates/insert",
        SqlUuid: payer.key.to_uuid(),
        SqlUuid: payer.account.to_uuid(),
    )
    .execute(conn)
    .await?;
    locked().get_result(conn).await
}

fn parse(ledger: serde_json::Value) -> QueryResult<Ledger> {
    serde_json::from_value(ledger).map_err(|error| QueryError::DeserializationError(error.into()))
}

fn json(ledger: &Ledger) -> QueryResult<serde_json::Value> {
    serde_json::to_value(ledger).map_err(|error| QueryError::SerializationError(error.into()))
}
