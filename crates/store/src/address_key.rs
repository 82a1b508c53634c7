//! The installation's key for hashing addresses of feeds, which ids of posts show in place of these.

use diesel::{OptionalExtension as _, prelude::*};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryError, QueryResult, schema::address_keys};

/// Reads the key, which a migration made.
///
/// # Errors
/// When the database does not answer, or has no such key.
pub async fn read(conn: &mut AsyncPgConnection) -> QueryResult<[u8; 32]> {
    let key: Option<Vec<u8>> = address_keys::table
        .select(address_keys::key)
        .first(conn)
        .await
        .optional()?;
    key.and_then(|key| key.try_into().ok())
        .ok_or(QueryError::NotFound)
}
