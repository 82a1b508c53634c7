//! Accounts and API keys.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
};
use uuid::Uuid;

use crate::{
    QueryResult,
    schema::{accounts, api_keys},
};

/// Data of a key for the gateway. One read by primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: Id,
    pub account: Id,
    pub account_name: String,
    pub secret_hash: Vec<u8>,
    pub role: Role,
    /// The Namespaces that the key is narrowed to; `None` for all of the account.
    pub namespaces: Option<Vec<Id>>,
    pub create_time: Timestamp,
    pub expire_time: Option<Timestamp>,
    pub revoke_time: Option<Timestamp>,
}

impl KeyRecord {
    #[must_use]
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoke_time.is_none() && self.expire_time.is_none_or(|time| now < time)
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct Row {
    id: Uuid,
    account_id: Uuid,
    secret_hash: Vec<u8>,
    role: String,
    namespace_ids: Option<Vec<Uuid>>,
    create_time: DateTime<Utc>,
    expire_time: Option<DateTime<Utc>>,
    revoke_time: Option<DateTime<Utc>>,
}

impl From<(Row, String)> for KeyRecord {
    fn from((row, account_name): (Row, String)) -> Self {
        Self {
            id: Id::from_uuid(row.id),
            account: Id::from_uuid(row.account_id),
            account_name,
            secret_hash: row.secret_hash,
            // The table holds roles to the closed set; should it grow, the least is safe.
            role: row.role.parse().unwrap_or(Role::Viewer),
            namespaces: row
                .namespace_ids
                .map(|ids| ids.into_iter().map(Id::from_uuid).collect()),
            create_time: row.create_time.into(),
            expire_time: row.expire_time.map(Into::into),
            revoke_time: row.revoke_time.map(Into::into),
        }
    }
}

/// The key with this id, valid or not.
///
/// # Errors
/// When the database does not answer.
pub async fn find(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<Option<KeyRecord>> {
    api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .filter(api_keys::id.eq(id.to_uuid()))
        .select((Row::as_select(), accounts::name))
        .first::<(Row, String)>(conn)
        .await
        .optional()
        .map(|found| found.map(Into::into))
}

/// All keys, by account and age.
///
/// # Errors
/// When the database does not answer.
pub async fn list(conn: &mut AsyncPgConnection) -> QueryResult<Vec<KeyRecord>> {
    let rows = api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .order((accounts::name.asc(), api_keys::id.asc()))
        .select((Row::as_select(), accounts::name))
        .load::<(Row, String)>(conn)
        .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Makes the account of this name, unless it is there.
///
/// # Errors
/// When the name is malformed, or the database does not answer.
pub async fn ensure_account(
    conn: &mut AsyncPgConnection,
    name: &str,
    now: Timestamp,
) -> QueryResult<Id> {
    diesel::insert_into(accounts::table)
        .values((
            accounts::id.eq(Id::generate().to_uuid()),
            accounts::name.eq(name),
            accounts::create_time.eq(now.to_chrono()),
        ))
        .on_conflict(accounts::name)
        .do_nothing()
        .execute(conn)
        .await?;
    accounts::table
        .filter(accounts::name.eq(name))
        .select(accounts::id)
        .first(conn)
        .await
        .map(Id::from_uuid)
}

/// Stores a key. One of the same id stays as it is, so that `earshot dev` may call this at each start.
///
/// # Errors
/// When the database does not answer.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    account: Id,
    key: &ApiKey,
    role: Role,
    namespaces: Option<&[Id]>,
    now: Timestamp,
    expire_time: Option<Timestamp>,
) -> QueryResult<()> {
    diesel::insert_into(api_keys::table)
        .values((
            api_keys::id.eq(key.id.to_uuid()),
            api_keys::account_id.eq(account.to_uuid()),
            api_keys::secret_hash.eq(key.secret_hash().to_vec()),
            api_keys::role.eq(role.as_str()),
            api_keys::namespace_ids
                .eq(namespaces.map(|ids| ids.iter().map(|id| id.to_uuid()).collect::<Vec<_>>())),
            api_keys::create_time.eq(now.to_chrono()),
            api_keys::expire_time.eq(expire_time.map(Timestamp::to_chrono)),
        ))
        .on_conflict(api_keys::id)
        .do_nothing()
        .execute(conn)
        .await?;
    Ok(())
}

/// Revokes a key permanently. Whether there was one to revoke.
///
/// # Errors
/// When the database does not answer.
pub async fn revoke(conn: &mut AsyncPgConnection, id: Id, now: Timestamp) -> QueryResult<bool> {
    let revoked = diesel::update(api_keys::table.filter(api_keys::id.eq(id.to_uuid())))
        .filter(api_keys::revoke_time.is_null())
        .set(api_keys::revoke_time.eq(now.to_chrono()))
        .execute(conn)
        .await?;
    Ok(revoked > 0)
}
