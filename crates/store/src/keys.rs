//! Accounts and API keys.

use std::{net::IpAddr, time::Duration};

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
};
use ipnet::IpNet;
use uuid::Uuid;

use crate::{
    QueryResult,
    schema::{accounts, api_keys},
};

/// Maximum age of the stored time of a key's last use. A lower value would cost more writes for keys in use.
const LAST_USE_PRECISION: Duration = Duration::from_mins(10);

/// A key in use that expires within this time causes a warning.
pub const EXPIRES_SOON: Duration = Duration::from_hours(14 * 24);

/// Data of a key for the gateway. One read by primary key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRecord {
    pub id: Id,
    pub account: Id,
    pub account_name: String,
    pub secret_hash: Vec<u8>,
    pub role: Role,
    /// Namespaces that the key is restricted to; `None` for all of the account.
    pub namespaces: Option<Vec<Id>>,
    /// Networks that the key may be used from; `None` for all.
    pub networks: Option<Vec<IpNet>>,
    pub create_time: Timestamp,
    pub expire_time: Option<Timestamp>,
    pub revoke_time: Option<Timestamp>,
    /// Up to ten minutes old; `None` if the key was never used.
    pub last_use_time: Option<Timestamp>,
}

impl KeyRecord {
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoke_time.is_none() && self.expire_time.is_none_or(|time| now < time)
    }

    /// Returns true if the key may be used from `address`.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let networks = self.networks.as_ref();
        networks.is_none_or(|networks| networks.iter().any(|network| network.contains(&address)))
    }

    /// Returns true if a use at `now` has to be stored with [`record_use`].
    pub fn is_use_outdated(&self, now: Timestamp) -> bool {
        let last = self.last_use_time;
        last.is_none_or(|last| last.plus(LAST_USE_PRECISION) <= now)
    }
}

/// A key to store.
#[derive(Debug, Clone, Copy)]
pub struct NewKey<'a> {
    pub account: Id,
    pub key: &'a ApiKey,
    pub role: Role,
    /// `None` for all Namespaces of the account.
    pub namespaces: Option<&'a [Id]>,
    /// `None` for all networks.
    pub networks: Option<&'a [IpNet]>,
    /// `None` for a key that does not expire.
    pub expire_time: Option<Timestamp>,
}

impl<'a> NewKey<'a> {
    /// A key without further limits.
    pub fn new(account: Id, key: &'a ApiKey, role: Role) -> Self {
        Self {
            account,
            key,
            role,
            namespaces: None,
            networks: None,
            expire_time: None,
        }
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = api_keys)]
struct KeyRow {
    id: Uuid,
    account_id: Uuid,
    secret_hash: Vec<u8>,
    role: String,
    namespace_ids: Option<Vec<Uuid>>,
    create_time: DateTime<Utc>,
    expire_time: Option<DateTime<Utc>>,
    revoke_time: Option<DateTime<Utc>>,
    networks: Option<Vec<String>>,
    last_use_time: Option<DateTime<Utc>>,
}

impl From<(KeyRow, String)> for KeyRecord {
    fn from((row, account_name): (KeyRow, String)) -> Self {
        Self {
            id: Id::from_uuid(row.id),
            account: Id::from_uuid(row.account_id),
            account_name,
            secret_hash: row.secret_hash,
            // A constraint limits the stored roles. For an unknown one, the lowest role is safe.
            role: row.role.parse().unwrap_or(Role::Viewer),
            namespaces: row
                .namespace_ids
                .map(|ids| ids.into_iter().map(Id::from_uuid).collect()),
            // A network that cannot be read allows nothing.
            networks: row
                .networks
                .map(|texts| texts.iter().filter_map(|text| text.parse().ok()).collect()),
            create_time: row.create_time.into(),
            expire_time: row.expire_time.map(Into::into),
            revoke_time: row.revoke_time.map(Into::into),
            last_use_time: row.last_use_time.map(Into::into),
        }
    }
}

/// Returns the key with this id, valid or not.
pub async fn find(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<Option<KeyRecord>> {
    api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .filter(api_keys::id.eq(id.to_uuid()))
        .select((KeyRow::as_select(), accounts::name))
        .first::<(KeyRow, String)>(conn)
        .await
        .optional()
        .map(|found| found.map(Into::into))
}

/// Returns all keys, by account and age.
pub async fn list(conn: &mut AsyncPgConnection) -> QueryResult<Vec<KeyRecord>> {
    let rows = api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .order((accounts::name.asc(), api_keys::id.asc()))
        .select((KeyRow::as_select(), accounts::name))
        .load::<(KeyRow, String)>(conn)
        .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Creates the account of this name if it does not exist.
///
/// # Errors
/// If the name is malformed, or the database does not answer.
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

/// Stores a key. An existing key with the same id stays unchanged, so that `earshot dev` may call this at each
/// start.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    new: NewKey<'_>,
    now: Timestamp,
) -> QueryResult<()> {
    let namespaces = new.namespaces.map(|ids| ids.iter().map(|id| id.to_uuid()));
    let networks = new.networks.map(|all| all.iter().map(ToString::to_string));
    diesel::insert_into(api_keys::table)
        .values((
            api_keys::id.eq(new.key.id.to_uuid()),
            api_keys::account_id.eq(new.account.to_uuid()),
            api_keys::secret_hash.eq(new.key.secret_hash().to_vec()),
            api_keys::role.eq(new.role.as_str()),
            api_keys::namespace_ids.eq(namespaces.map(Iterator::collect::<Vec<_>>)),
            api_keys::networks.eq(networks.map(Iterator::collect::<Vec<_>>)),
            api_keys::create_time.eq(now.to_chrono()),
            api_keys::expire_time.eq(new.expire_time.map(Timestamp::to_chrono)),
        ))
        .on_conflict(api_keys::id)
        .do_nothing()
        .execute(conn)
        .await?;
    Ok(())
}

/// Keeps others from changing a key until the transaction ends.
pub async fn lock(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<()> {
    api_keys::table
        .filter(api_keys::id.eq(id.to_uuid()))
        .select(api_keys::id)
        .for_update()
        .load::<Uuid>(conn)
        .await?;
    Ok(())
}

/// Lets a key expire at `time`, unless it does so earlier or was revoked. Returns true if that changed the key.
pub async fn expire_by(conn: &mut AsyncPgConnection, id: Id, time: Timestamp) -> QueryResult<bool> {
    let expires_later = api_keys::expire_time
        .is_null()
        .or(api_keys::expire_time.gt(time.to_chrono()));
    let changed = diesel::update(api_keys::table.filter(api_keys::id.eq(id.to_uuid())))
        .filter(api_keys::revoke_time.is_null())
        .filter(expires_later)
        .set(api_keys::expire_time.eq(time.to_chrono()))
        .execute(conn)
        .await?;
    Ok(changed > 0)
}

/// Stores that a key was used at `now`. Other replicas may do so too: the latest time stays.
pub async fn record_use(conn: &mut AsyncPgConnection, id: Id, now: Timestamp) -> QueryResult<()> {
    let is_older = api_keys::last_use_time
        .is_null()
        .or(api_keys::last_use_time.lt(now.to_chrono()));
    diesel::update(api_keys::table.filter(api_keys::id.eq(id.to_uuid())))
        .filter(is_older)
        .set(api_keys::last_use_time.eq(now.to_chrono()))
        .execute(conn)
        .await?;
    Ok(())
}

/// Revokes a key permanently. Returns true if the key existed and was not revoked yet.
pub async fn revoke(conn: &mut AsyncPgConnection, id: Id, now: Timestamp) -> QueryResult<bool> {
    let revoked = diesel::update(api_keys::table.filter(api_keys::id.eq(id.to_uuid())))
        .filter(api_keys::revoke_time.is_null())
        .set(api_keys::revoke_time.eq(now.to_chrono()))
        .execute(conn)
        .await?;
    Ok(revoked > 0)
}
