//! Reads that end in time, and few at once of one account where they are costly.

use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{BigInt, Bool},
};
use diesel_async::{AnsiTransactionManager, AsyncPgConnection, RunQueryDsl as _};
use domain::Id;
use sha2::{Digest as _, Sha256};

use crate::{QueryError, QueryResult};

/// Costly reads that one account may have open at a time, on all replicas together.
const SLOTS: u8 = 2;

/// Begins a transaction whose statements are cut off when they run longer than `within`, in one round trip.
/// [`crate::keyed::end`] ends it. A connection that is dropped in between is closed.
///
/// # Errors
/// When the database does not answer, or a transaction is open.
pub async fn begin(conn: &mut AsyncPgConnection, within: Duration) -> QueryResult<()> {
    let begin = format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = {}",
        within.as_millis()
    );
    AnsiTransactionManager::begin_transaction_sql(conn, &begin).await
}

/// Returns true if `account` may read something costly now. The slot is an advisory lock until the transaction ends:
/// a replica that dies leaves none behind.
///
/// # Errors
/// When the database does not answer.
pub async fn take_slot(conn: &mut AsyncPgConnection, account: Id) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = Bool)]
        taken: bool,
    }
    for slot in 0..SLOTS {
        let taken: Taken = sql_query("SELECT pg_try_advisory_xact_lock($1) AS taken")
            .bind::<BigInt, _>(slot_key(account, slot))
            .get_result(conn)
            .await?;
        if taken.taken {
            return Ok(true);
        }
    }
    Ok(false)
}

fn slot_key(account: Id, slot: u8) -> i64 {
    let digest = Sha256::digest(format!("earshot.costly-read/{account}/{slot}"));
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(bytes)
}

/// Returns true if a statement, or its wait for a lock, took longer than it may.
#[must_use]
pub fn is_cut_off(error: &QueryError) -> bool {
    match error {
        QueryError::DatabaseError(_, information) => [
            "canceling statement due to statement timeout",
            "canceling statement due to lock timeout",
        ]
        .contains(&information.message()),
        _ => false,
    }
}
