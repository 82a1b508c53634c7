//! Key of this installation for hashing feed addresses. Ids of posts contain the hash instead of the address.

use diesel::{OptionalExtension as _, prelude::*};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryError, QueryResult, schema::address_keys};

/// Reads the key, which a migration created.
///
/// # Errors
/// If the database does not answer, or has no such key.
pub async fn read(conn: &mut AsyncPgConnection) -> QueryResult<[u8; 32]> {
    let key: Option<Vec<u8>> = address_keys::table
        .select(address_keys::key)
        .first(conn)
        .await
        .optional()?;
    key.and_then(|key| key.try_into().ok())
        .ok_or(QueryError::NotFound)
}
