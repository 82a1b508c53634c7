//! First responses of requests with an `Idempotency-Key`.
//!
//! [`begin`] is the first statement of the transaction that does the work, and [`finish`] its last. So the response
//! is stored if and only if the work is, even if a process dies in between. Of two concurrent requests, the second
//! waits in [`begin`] until the first has ended.
//!
//! What an account stores on a day is bounded ([`MAX_BYTES_PER_DAY`]). Beyond, a new key is refused before the work: a
//! response that is not stored would let a repeated request do its work twice.
//!
//! Responses may contain secrets, so they are sealed and bound to their row. So is the hash of the request's body,
//! which could otherwise be guessed.

use std::time::Duration;

use diesel::{
    prelude::*,
    sql_types::{BigInt, Binary, Interval, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;
use serde::{Deserialize, Serialize};

use crate::{
    Error, QueryResult,
    error::{Exceeded, STORED_RESPONSES},
    prepared::query,
    schema::idempotency_keys,
    seal::Sealer,
};

/// How long a response can be repeated.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 3_600);
/// Rows are purged an hour later, so that a row that was found valid can still be read.
const PURGED_AFTER: Duration = Duration::from_secs(25 * 3_600);

/// Maximum bytes that an account stores on a UTC day, exceeded by the requests that are open at that moment.
pub const MAX_BYTES_PER_DAY: u32 = 250_000_000;
/// Size of a row without its response.
const ROW_BYTES: usize = 256;

/// Identity of a repeatable request: SHA-256 of its path and `Idempotency-Key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestId {
    pub api_key: Id,
    pub hash: [u8; 32],
}

/// The response, and the hash of the request body that it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub body_hash: [u8; 32],
    pub status: u16,
    /// JSON.
    pub body: String,
}

/// Claims `request` for the transaction of `conn`, or returns its first response. Waits for another transaction
/// that has claimed it. By primary keys.
///
/// # Errors
/// If the account has stored too much today, the database does not answer, or the response cannot be decrypted.
pub async fn begin(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    request: &RequestId,
) -> Result<Option<Answer>, Error> {
    // A response that has expired is replaced.
    let taken = query!(
        "idempotency/claim",
        SqlUuid: request.api_key.to_uuid(),
        Binary: request.hash.as_slice(),
        Interval: interval(KEPT_FOR),
    )
    .execute(conn)
    .await?;
    if taken > 0 {
        refuse_too_many(conn, request).await?;
        return Ok(None);
    }
    let answer: Option<Option<Vec<u8>>> = idempotency_keys::table
        .find((request.api_key.to_uuid(), request.hash.as_slice()))
        .select(idempotency_keys::answer)
        .first(conn)
        .await
        .optional()?;
    let Some(sealed) = answer.flatten() else {
        // No transaction commits such a row: see `finish`.
        return Err(Error::Query(diesel::result::Error::NotFound));
    };
    let plain = sealer.open(&sealed, &bound_to(request))?;
    serde_json::from_slice(&plain)
        .map(Some)
        .map_err(Error::Json)
}

async fn refuse_too_many(conn: &mut AsyncPgConnection, request: &RequestId) -> Result<(), Error> {
    #[derive(QueryableByName)]
    struct Day {
        #[diesel(sql_type = BigInt)]
        bytes: i64,
    }
    let today: Option<Day> = query!(
        "idempotency/bytes_of_today",
        SqlUuid: request.api_key.to_uuid(),
    )
    .get_result(conn)
    .await
    .optional()?;
    let bytes = today.map_or(0, |day| u32::try_from(day.bytes).unwrap_or(u32::MAX));
    if bytes >= MAX_BYTES_PER_DAY {
        return Err(Error::QuotaExceeded(Exceeded {
            quota: STORED_RESPONSES,
            limit: MAX_BYTES_PER_DAY,
            wanted: bytes.saturating_add(1),
        }));
    }
    Ok(())
}

/// Stores the response, once the work is done. The account's other stored responses wait from here to the commit.
pub async fn finish(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    request: &RequestId,
    answer: &Answer,
) -> Result<(), Error> {
    let plain = serde_json::to_vec(answer).map_err(Error::Json)?;
    let sealed = sealer.seal(&plain, &bound_to(request));
    let bytes = i64::try_from(sealed.len() + ROW_BYTES).unwrap_or(i64::MAX);
    query!(
        "idempotency/finish",
        SqlUuid: request.api_key.to_uuid(),
        Binary: request.hash.as_slice(),
        Binary: sealed,
        BigInt: bytes,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes up to `limit` expired responses, and returns their number; and the counts of earlier days. Skips rows that
/// another replica is purging. Served by `idempotency_keys_create_time_idx`.
pub async fn purge(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
    query!("idempotency/purge_days").execute(conn).await?;
    query!(
        "idempotency/purge",
        Interval: interval(PURGED_AFTER),
        BigInt: limit,
    )
    .execute(conn)
    .await
}

pub(crate) fn interval(duration: Duration) -> diesel::data_types::PgInterval {
    let micros = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    diesel::data_types::PgInterval::from_microseconds(micros)
}

/// Binds a sealed response to its row: it opens nowhere else.
fn bound_to(request: &RequestId) -> String {
    let hash = hex::encode(request.hash);
    format!("apiKeys/{}/idempotencyKeys/{hash}", request.api_key)
}
