//! Accounts and API keys. Sessions of people who signed in are API keys too ([`crate::sessions`]).

use std::{net::IpAddr, time::Duration};

use chrono::{DateTime, Utc};
use diesel::{
    dsl::sql,
    pg::Pg,
    prelude::*,
    sql_types::{Array, Bool, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, Timestamp,
    key::{ApiKey, Role},
};
use ipnet::IpNet;
use uuid::Uuid;

use crate::{
    QueryResult,
    prepared::query,
    schema::{accounts, api_keys},
};

/// A stored last use of this age is outdated. A lower value would cost more writes for keys in use.
const LAST_USE_PRECISION: Duration = Duration::from_mins(1);

/// A key that expires within this time expires soon, unless most of its life is still to come.
const EXPIRES_SOON: Duration = Duration::from_hours(14 * 24);

/// A key counts as in use for this long after its last use.
const IN_USE: Duration = Duration::from_hours(30 * 24);

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
    /// About a minute old at most; `None` if the key was never used.
    pub last_use_time: Option<Timestamp>,
    /// The key that [`rotate`] made in its place.
    pub replaced_by: Option<Id>,
    /// The person who signed in; `None` if the key is no session.
    pub person: Option<String>,
    /// Permanent identifier of the person at the provider; `None` if the key is no session.
    pub subject: Option<String>,
}

impl KeyRecord {
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoke_time.is_none() && self.expire_time.is_none_or(|time| now < time)
    }

    /// Returns true if the key expires within 14 days and, unless it was replaced, within the last quarter of its life.
    pub fn expires_soon(&self, now: Timestamp) -> bool {
        let Some(end) = self.expire_time.filter(|_| self.is_valid(now)) else {
            return false;
        };
        let soon = match self.replaced_by {
            Some(_) => EXPIRES_SOON,
            None => EXPIRES_SOON.min(end.since(self.create_time) / 4),
        };
        end <= now.plus(soon)
    }

    /// Returns true if the key was used recently and, if it was replaced, since then.
    fn is_in_use(&self, now: Timestamp) -> bool {
        let since = self.replaced_by.map_or(now.minus(IN_USE), Id::time);
        self.last_use_time.is_some_and(|last| since < last)
    }

    /// Returns true if the key may be used from `address`.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let networks = self.networks.as_ref();
        networks.is_none_or(|networks| networks.iter().any(|network| network.contains(&address)))
    }

    /// Returns true if a use at `now` has to be stored with [`record_uses`].
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

/// Sessions to list: those that fit each part that is given.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionFilter<'a> {
    pub id: Option<Id>,
    /// Name or subject of the person.
    pub person: Option<&'a str>,
    /// Name of the account.
    pub account: Option<&'a str>,
    /// True for sessions that expired more than a day ago, too. They are kept for long. A day is more than clocks differ.
    pub expired: bool,
}

/// Outcome of [`rotate`]. Only [`Rotation::Done`] changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    Done {
        account: Id,
        old_expires: Timestamp,
        new_expires: Option<Timestamp>,
    },
    /// There is no such key.
    Missing,
    /// The id is that of a session.
    Session,
    /// The key has expired or was revoked.
    Ended,
    /// A valid key already replaces it.
    Replaced(Id),
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
    replaced_by: Option<Uuid>,
    person: Option<String>,
    subject: Option<String>,
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
            replaced_by: row.replaced_by.map(Id::from_uuid),
            person: row.person,
            subject: row.subject,
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

/// Returns all keys except sessions, by account and age.
pub async fn list(conn: &mut AsyncPgConnection) -> QueryResult<Vec<KeyRecord>> {
    let rows = api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .filter(api_keys::person.is_null())
        .order((accounts::name.asc(), api_keys::id.asc()))
        .select((KeyRow::as_select(), accounts::name))
        .load::<(KeyRow, String)>(conn)
        .await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Returns sessions, revoked or not, by account and age. `api_keys_expire_time_idx` serves the search for recent ones.
pub async fn list_sessions(
    conn: &mut AsyncPgConnection,
    filter: SessionFilter<'_>,
) -> QueryResult<Vec<KeyRecord>> {
    let mut sessions = api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .filter(api_keys::person.is_not_null())
        .order((accounts::name.asc(), api_keys::id.asc()))
        .select((KeyRow::as_select(), accounts::name))
        .into_boxed::<Pg>();
    if let Some(id) = filter.id {
        sessions = sessions.filter(api_keys::id.eq(id.to_uuid()));
    }
    if let Some(person) = filter.person {
        let is_theirs = api_keys::person.eq(person);
        sessions = sessions.filter(is_theirs.or(api_keys::subject.eq(person)));
    }
    if let Some(account) = filter.account {
        sessions = sessions.filter(accounts::name.eq(account));
    }
    if !filter.expired {
        let recent = "api_keys.expire_time > statement_timestamp() - interval '1 day'";
        sessions = sessions.filter(sql::<Bool>(recent));
    }
    let rows = sessions.load::<(KeyRow, String)>(conn).await?;
    Ok(rows.into_iter().map(Into::into).collect())
}

/// Returns the valid keys that are in use and expire soon, the first to expire first, without sessions, which all do.
/// `api_keys_expire_time_idx` serves the search.
pub async fn expiring(conn: &mut AsyncPgConnection, now: Timestamp) -> QueryResult<Vec<KeyRecord>> {
    let rows = api_keys::table
        .inner_join(accounts::table.on(accounts::id.eq(api_keys::account_id)))
        .filter(api_keys::person.is_null())
        .filter(api_keys::revoke_time.is_null())
        .filter(api_keys::expire_time.gt(now.to_chrono()))
        .filter(api_keys::expire_time.le(now.plus(EXPIRES_SOON).to_chrono()))
        .order((api_keys::expire_time.asc(), api_keys::id.asc()))
        .select((KeyRow::as_select(), accounts::name))
        .load::<(KeyRow, String)>(conn)
        .await?;
    let keys = rows.into_iter().map(KeyRecord::from);
    let keys = keys.filter(|key| key.expires_soon(now) && key.is_in_use(now));
    Ok(keys.collect())
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
    diesel::insert_into(api_keys::table)
        .values((
            api_keys::id.eq(new.key.id.to_uuid()),
            api_keys::account_id.eq(new.account.to_uuid()),
            api_keys::secret_hash.eq(new.key.secret_hash().to_vec()),
            api_keys::role.eq(new.role.as_str()),
            api_keys::namespace_ids.eq(namespaces.map(Iterator::collect::<Vec<_>>)),
            api_keys::networks.eq(new.networks.map(texts)),
            api_keys::create_time.eq(now.to_chrono()),
            api_keys::expire_time.eq(new.expire_time.map(Timestamp::to_chrono)),
        ))
        .on_conflict(api_keys::id)
        .do_nothing()
        .execute(conn)
        .await?;
    Ok(())
}

/// Stores `new` with the account, role, limits and lifetime of the key `id`, and lets that one expire at `grace_end` or
/// earlier. Call it in a transaction, so that there is always a valid key, and a new one always ends the old one.
pub async fn rotate(
    conn: &mut AsyncPgConnection,
    id: Id,
    new: &ApiKey,
    grace_end: Timestamp,
    now: Timestamp,
) -> QueryResult<Rotation> {
    // A key that is revoked meanwhile gets no successor, and two rotations at once make one.
    lock(conn, id).await?;
    let Some(old) = find(conn, id).await? else {
        return Ok(Rotation::Missing);
    };
    // It must not become a key that outlives it.
    if old.person.is_some() {
        return Ok(Rotation::Session);
    }
    if !old.is_valid(now) {
        return Ok(Rotation::Ended);
    }
    let mut newest = old.clone();
    while let Some(successor) = newest.replaced_by {
        // A rotation of the successor ends before it is read.
        lock(conn, successor).await?;
        match find(conn, successor).await? {
            Some(key) => newest = key,
            None => break,
        }
    }
    if newest.id != id && newest.is_valid(now) {
        return Ok(Rotation::Replaced(newest.id));
    }
    // Earlier rotations shortened the life of each key but the newest.
    let new_expires = newest
        .expire_time
        .map(|time| now.plus(time.since(newest.create_time)));
    let old_expires = old
        .expire_time
        .map_or(grace_end, |time| time.min(grace_end));
    let key = NewKey {
        account: old.account,
        key: new,
        role: old.role,
        namespaces: old.namespaces.as_deref(),
        networks: old.networks.as_deref(),
        expire_time: new_expires,
    };
    insert(conn, key, now).await?;
    diesel::update(api_keys::table.filter(api_keys::id.eq(id.to_uuid())))
        .set((
            api_keys::expire_time.eq(old_expires.to_chrono()),
            api_keys::replaced_by.eq(new.id.to_uuid()),
        ))
        .execute(conn)
        .await?;
    Ok(Rotation::Done {
        account: old.account,
        old_expires,
        new_expires,
    })
}

/// Keeps others from changing a key until the transaction ends. Requests with the key go on.
pub async fn lock(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<()> {
    api_keys::table
        .filter(api_keys::id.eq(id.to_uuid()))
        .select(api_keys::id)
        .for_no_key_update()
        .load::<Uuid>(conn)
        .await?;
    Ok(())
}

/// Sets the networks of a key, `None` for all. Returns its account; `None` if there is no such key or it was revoked.
pub async fn set_networks(
    conn: &mut AsyncPgConnection,
    id: Id,
    networks: Option<&[IpNet]>,
) -> QueryResult<Option<Id>> {
    let changed = diesel::update(api_keys::table.filter(api_keys::id.eq(id.to_uuid())))
        .filter(api_keys::revoke_time.is_null())
        .set(api_keys::networks.eq(networks.map(texts)))
        .returning(api_keys::account_id)
        .get_result::<Uuid>(conn)
        .await
        .optional()?;
    Ok(changed.map(Id::from_uuid))
}

fn texts(networks: &[IpNet]) -> Vec<String> {
    networks.iter().map(ToString::to_string).collect()
}

/// Stores when keys were used, each key once. A later time that another replica stored stays. Skips keys that someone
/// else changes at the moment: a later use of theirs is stored.
pub async fn record_uses(
    conn: &mut AsyncPgConnection,
    uses: &[(Id, Timestamp)],
) -> QueryResult<()> {
    query!(
        "keys/record_uses",
        Array<SqlUuid>: uses.iter().map(|(id, _)| id.to_uuid()).collect::<Vec<_>>(),
        Array<Timestamptz>: uses.iter().map(|(_, time)| time.to_chrono()).collect::<Vec<_>>(),
    )
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
