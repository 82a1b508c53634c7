//! Reads with a time limit, and a limit on concurrent expensive reads of one account.

use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl as _};
use domain::Id;
use sha2::{Digest as _, Sha256};

use crate::{QueryResult, keyed, prepared::query};

/// Number of expensive reads that one account may run at a time, over all replicas.
const SLOTS: u8 = 2;

/// Begins a transaction whose statements are cut off after `within`, in one round trip. [`crate::keyed::end`] ends
/// it. A connection that is dropped in between is closed.
///
/// # Errors
/// If the database does not answer, or a transaction is open.
pub async fn begin(conn: &mut AsyncPgConnection, within: Duration) -> QueryResult<()> {
    let begin = format!(
        "BEGIN READ ONLY; SET LOCAL statement_timeout = {}",
        within.as_millis()
    );
    keyed::begin_with(conn, &begin).await
}

/// Returns true if `account` may run an expensive read now. The slot is an advisory lock until the transaction
/// ends, so a replica that dies leaves none behind.
pub async fn take_slot(conn: &mut AsyncPgConnection, account: Id) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = Bool)]
        taken: bool,
    }
    for slot in 0..SLOTS {
        let taken: Taken = query!(
            "reads/take_slot",
            BigInt: slot_key(account, slot),
        )
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
