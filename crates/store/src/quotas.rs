//! Quotas of an account: how many Namespaces, Managers and Connections it may have, how many distinct feeds it may watch,
//! how many bytes its instructions and mutes may have, and how many Scans a day it may get.
//!
//! Each check except that of Scans locks the account's row until the end of the transaction, and then counts. So of two
//! concurrent requests for the last one, on any replicas, only one succeeds. Take this lock before any other, so
//! that the compiler and the gateway never deadlock. Existing resources are never removed: a lowered quota only
//! refuses new ones. Scans are counted where they are created (`scans::record`): no request is refused, and
//! Managers pause until the next day (UTC).

use diesel::{
    OptionalExtension as _, QueryableByName,
    prelude::*,
    sql_types::{Array, BigInt, Integer, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, ManagerName};

pub use crate::error::Exceeded;
use crate::{
    Error, QueryResult,
    error::{CONTENT, NEW_FEEDS},
    prepared::query,
    schema::{accounts, namespaces},
};

/// Maximum number of new feeds of an account on a UTC day: feeds that it did not watch before. Feeds that it leaves on
/// the same day count as well. A feed stays for some days after its last watcher.
pub const NEW_FEEDS_PER_DAY: u32 = 10_000;

/// Quotas of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub namespaces: u32,
    pub managers: u32,
    pub connections: u32,
    pub feeds: u32,
    /// Bytes of instructions and mutes.
    pub content_bytes: u32,
    pub scans_per_day: u32,
}

/// The quotas that an operator set for one account; `None` for the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overrides {
    pub namespaces: Option<u32>,
    pub managers: Option<u32>,
    pub connections: Option<u32>,
    pub feeds: Option<u32>,
    pub content_bytes: Option<u32>,
    pub scans_per_day: Option<u32>,
    /// Request points, checked by [`crate::rates`].
    pub rate_limit_per_minute: Option<u32>,
}

impl Overrides {
    fn over(self, defaults: &Limits) -> Limits {
        Limits {
            namespaces: self.namespaces.unwrap_or(defaults.namespaces),
            managers: self.managers.unwrap_or(defaults.managers),
            connections: self.connections.unwrap_or(defaults.connections),
            feeds: self.feeds.unwrap_or(defaults.feeds),
            content_bytes: self.content_bytes.unwrap_or(defaults.content_bytes),
            scans_per_day: self.scans_per_day.unwrap_or(defaults.scans_per_day),
        }
    }
}

/// A change of [`Overrides`]: `None` keeps a quota, `Some(None)` resets it to the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    pub namespaces: Option<Option<u32>>,
    pub managers: Option<Option<u32>>,
    pub connections: Option<Option<u32>>,
    pub feeds: Option<Option<u32>>,
    pub content_bytes: Option<Option<u32>>,
    pub scans_per_day: Option<Option<u32>>,
    pub rate_limit_per_minute: Option<Option<u32>>,
}

/// Limits of an account, and how much of them is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    pub limits: Limits,
    pub used: Limits,
    /// The rate limit that was set for the account; `None` for the default.
    pub rate_limit_per_minute: Option<u32>,
    /// Number of rows that were read to compute this.
    pub rows: u64,
}

/// Resource that an API client creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Namespace,
    Manager,
    Connection,
}

type Columns = (
    Option<i32>,
    Option<i32>,
    Option<i32>,
    Option<i32>,
    Option<i32>,
    Option<i32>,
    Option<i32>,
);

fn overrides(
    (namespaces, managers, connections, feeds, content_bytes, scans_per_day, rate_limit_per_minute): Columns,
) -> Overrides {
    let number = |limit: Option<i32>| limit.and_then(|limit| u32::try_from(limit).ok());
    Overrides {
        namespaces: number(namespaces),
        managers: number(managers),
        connections: number(connections),
        feeds: number(feeds),
        content_bytes: number(content_bytes),
        scans_per_day: number(scans_per_day),
        rate_limit_per_minute: number(rate_limit_per_minute),
    }
}

fn column(limit: Option<u32>) -> Option<i32> {
    limit.map(|limit| i32::try_from(limit).unwrap_or(i32::MAX))
}

/// Locks the account's row until the end of the transaction, and returns its limits. By primary key.
///
/// # Errors
/// If there is no such account, or the database does not answer.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    account: Id,
    defaults: &Limits,
) -> QueryResult<Limits> {
    let columns: Columns = accounts::table
        .find(account.to_uuid())
        .select((
            accounts::quota_namespaces,
            accounts::quota_managers,
            accounts::quota_connections,
            accounts::quota_feeds,
            accounts::quota_content_bytes,
            accounts::quota_scans_per_day,
            accounts::quota_rate_limit_per_minute,
        ))
        .for_no_key_update()
        .first(conn)
        .await?;
    Ok(overrides(columns).over(defaults))
}

async fn owner(conn: &mut AsyncPgConnection, namespace: Id) -> QueryResult<Option<Id>> {
    let found = namespaces::table
        .find(namespace.to_uuid())
        .select(namespaces::account_id)
        .first(conn)
        .await;
    found.optional().map(|id| id.map(Id::from_uuid))
}

/// Same as [`lock`], for the account of a Namespace; `None` if the Namespace is gone.
pub(crate) async fn lock_owner(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    defaults: &Limits,
) -> QueryResult<Option<(Id, Limits)>> {
    let Some(account) = owner(conn, namespace).await? else {
        return Ok(None);
    };
    Ok(Some((account, lock(conn, account, defaults).await?)))
}

/// Returns the quota that prevents the account from creating one more. Call in the transaction that creates it,
/// before the insert. Counts the account's resources; served by `namespaces_list_idx` and the primary keys.
pub async fn check_creation(
    conn: &mut AsyncPgConnection,
    account: Id,
    resource: Resource,
    defaults: &Limits,
) -> QueryResult<Option<Exceeded>> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let limits = lock(conn, account, defaults).await?;
    let account = account.to_uuid();
    let (quota, limit, statement) = match resource {
        Resource::Namespace => {
            let statement = query!("quotas/count_namespaces", SqlUuid: account);
            ("namespaces", limits.namespaces, statement)
        }
        Resource::Manager => {
            let statement = query!("quotas/count_managers", SqlUuid: account);
            ("managers", limits.managers, statement)
        }
        Resource::Connection => {
            let statement = query!("quotas/count_connections", SqlUuid: account);
            ("connections", limits.connections, statement)
        }
    };
    let Count { count } = statement.get_result(conn).await?;
    let wanted = number(count).saturating_add(1);
    Ok((wanted > limit).then_some(Exceeded {
        quota,
        limit,
        wanted,
    }))
}

/// Fails if watching `feeds` makes the Manager's account watch more distinct feeds than before and than its quota, or more
/// new ones on a UTC day than [`NEW_FEEDS_PER_DAY`] and twice that quota. Locks the account's row. Counts nothing if the
/// Manager watches them already. Served by `namespaces_list_idx`, `feed_watchers_manager_idx` and
/// `account_feeds_new_idx`.
pub(crate) async fn check_feeds(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    feeds: &[FeedName],
    defaults: &Limits,
) -> Result<(), Error> {
    #[derive(QueryableByName)]
    struct Counts {
        #[diesel(sql_type = BigInt)]
        before: i64,
        #[diesel(sql_type = BigInt)]
        after: i64,
        #[diesel(sql_type = BigInt)]
        new: i64,
        #[diesel(sql_type = BigInt)]
        new_before: i64,
    }
    let Some((account, Limits { feeds: limit, .. })) =
        lock_owner(conn, manager.namespace, defaults).await?
    else {
        return Ok(());
    };
    let names: Vec<&str> = feeds.iter().map(FeedName::as_str).collect();
    let counts: Option<Counts> = query!(
        "quotas/count_feeds",
        SqlUuid: account.to_uuid(),
        SqlUuid: manager.namespace.to_uuid(),
        SqlUuid: manager.manager.to_uuid(),
        Array<Text>: names,
    )
    .get_result(conn)
    .await
    .optional()?;
    let Some(counts) = counts else { return Ok(()) };
    if counts.after > counts.before && number(counts.after) > limit {
        return Err(Error::QuotaExceeded(Exceeded {
            quota: "feeds",
            limit,
            wanted: number(counts.after),
        }));
    }
    let limit = NEW_FEEDS_PER_DAY.max(limit.saturating_mul(2));
    let wanted = number(counts.new_before + counts.new);
    if counts.new > 0 && wanted > limit {
        return Err(Error::QuotaExceeded(Exceeded {
            quota: NEW_FEEDS,
            limit,
            wanted,
        }));
    }
    Ok(())
}

/// Bytes that an account's instructions and mutes have before a write, which [`check`](Self::check) follows.
pub(crate) struct ContentBytes {
    account: Id,
    limit: u32,
    before: i64,
}

impl ContentBytes {
    /// Locks the account's row, and counts. Served by `namespaces_list_idx` and the primary key of `managers`.
    pub(crate) async fn before(
        conn: &mut AsyncPgConnection,
        account: Id,
        defaults: &Limits,
    ) -> QueryResult<Self> {
        let limit = lock(conn, account, defaults).await?.content_bytes;
        let before = Self::count(conn, account).await?;
        Ok(Self {
            account,
            limit,
            before,
        })
    }

    /// Same for the account of a Namespace; `None` if the Namespace is gone.
    pub(crate) async fn before_in(
        conn: &mut AsyncPgConnection,
        namespace: Id,
        defaults: &Limits,
    ) -> QueryResult<Option<Self>> {
        match owner(conn, namespace).await? {
            Some(account) => Self::before(conn, account, defaults).await.map(Some),
            None => Ok(None),
        }
    }

    /// Fails if the account has more bytes than before the write and than its quota.
    pub(crate) async fn check(self, conn: &mut AsyncPgConnection) -> Result<(), Error> {
        let bytes = Self::count(conn, self.account).await?;
        if bytes > self.before && number(bytes) > self.limit {
            return Err(Error::QuotaExceeded(Exceeded {
                quota: CONTENT,
                limit: self.limit,
                wanted: number(bytes),
            }));
        }
        Ok(())
    }

    async fn count(conn: &mut AsyncPgConnection, account: Id) -> QueryResult<i64> {
        #[derive(QueryableByName)]
        struct Sum {
            #[diesel(sql_type = BigInt)]
            bytes: i64,
        }
        let sum: Sum = query!(
            "quotas/content_bytes",
            SqlUuid: account.to_uuid(),
        )
        .get_result(conn)
        .await?;
        Ok(sum.bytes)
    }
}

fn number(count: i64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Joins the account `a` with its day `d`.
pub(crate) const TODAY: &str = "LEFT JOIN account_days AS d \
     ON d.account_id = a.id AND d.day = (clock_timestamp() AT TIME ZONE 'UTC')::date";
/// Returns true, after [`TODAY`], if the account has Scans left. `$1` is the default quota.
pub(crate) const HAS_SCANS_LEFT: &str =
    "(coalesce(d.scans, 0) < coalesce(a.quota_scans_per_day, $1))";

/// Removes counters of Scans that are older than a month.
pub async fn purge_days(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!("quotas/purge_days").execute(conn).await
}

/// Returns the account's limits and their usage. Costs the same as the checks, without a lock.
///
/// # Errors
/// If there is no such account, or the database does not answer.
pub async fn usage(
    conn: &mut AsyncPgConnection,
    account: Id,
    defaults: &Limits,
) -> QueryResult<Usage> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Nullable<Integer>)]
        quota_namespaces: Option<i32>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_managers: Option<i32>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_connections: Option<i32>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_feeds: Option<i32>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_content_bytes: Option<i32>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_scans_per_day: Option<i32>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_rate_limit_per_minute: Option<i32>,
        #[diesel(sql_type = BigInt)]
        namespaces: i64,
        #[diesel(sql_type = BigInt)]
        managers: i64,
        #[diesel(sql_type = BigInt)]
        connections: i64,
        #[diesel(sql_type = BigInt)]
        feeds: i64,
        #[diesel(sql_type = BigInt)]
        watchers: i64,
        #[diesel(sql_type = BigInt)]
        content_bytes: i64,
        #[diesel(sql_type = BigInt)]
        scans: i64,
    }
    let row: Row = query!(
        "quotas/usage",
        SqlUuid: account.to_uuid(),
    )
    .get_result(conn)
    .await?;
    let columns = (
        row.quota_namespaces,
        row.quota_managers,
        row.quota_connections,
        row.quota_feeds,
        row.quota_content_bytes,
        row.quota_scans_per_day,
        row.quota_rate_limit_per_minute,
    );
    let set = overrides(columns);
    Ok(Usage {
        limits: set.over(defaults),
        rate_limit_per_minute: set.rate_limit_per_minute,
        rows: [row.namespaces, row.managers, row.connections, row.watchers]
            .map(i64::unsigned_abs)
            .iter()
            .sum(),
        used: Limits {
            namespaces: number(row.namespaces),
            managers: number(row.managers),
            connections: number(row.connections),
            feeds: number(row.feeds),
            content_bytes: number(row.content_bytes),
            scans_per_day: number(row.scans),
        },
    })
}

/// Changes the quotas of the account of this name, and returns its id; `None` if there is no such account.
///
/// # Errors
/// If `change` changes nothing, or the database does not answer.
pub async fn set(
    conn: &mut AsyncPgConnection,
    account: &str,
    change: &Change,
) -> QueryResult<Option<Id>> {
    #[derive(AsChangeset)]
    #[diesel(table_name = accounts)]
    struct Changes {
        quota_namespaces: Option<Option<i32>>,
        quota_managers: Option<Option<i32>>,
        quota_connections: Option<Option<i32>>,
        quota_feeds: Option<Option<i32>>,
        quota_content_bytes: Option<Option<i32>>,
        quota_scans_per_day: Option<Option<i32>>,
        quota_rate_limit_per_minute: Option<Option<i32>>,
    }
    let changes = Changes {
        quota_namespaces: change.namespaces.map(column),
        quota_managers: change.managers.map(column),
        quota_connections: change.connections.map(column),
        quota_feeds: change.feeds.map(column),
        quota_content_bytes: change.content_bytes.map(column),
        quota_scans_per_day: change.scans_per_day.map(column),
        quota_rate_limit_per_minute: change.rate_limit_per_minute.map(column),
    };
    let changed = diesel::update(accounts::table.filter(accounts::name.eq(account)))
        .set(changes)
        .returning(accounts::id)
        .get_result(conn)
        .await
        .optional()?;
    Ok(changed.map(Id::from_uuid))
}

/// Returns all accounts, by name, with the quotas that were set for them.
pub async fn list(conn: &mut AsyncPgConnection) -> QueryResult<Vec<(String, Overrides)>> {
    let rows: Vec<(String, Columns)> = accounts::table
        .order(accounts::name.asc())
        .select((
            accounts::name,
            (
                accounts::quota_namespaces,
                accounts::quota_managers,
                accounts::quota_connections,
                accounts::quota_feeds,
                accounts::quota_content_bytes,
                accounts::quota_scans_per_day,
                accounts::quota_rate_limit_per_minute,
            ),
        ))
        .load(conn)
        .await?;
    Ok({ rows.into_iter() }
        .map(|(name, columns)| (name, overrides(columns)))
        .collect())
}
