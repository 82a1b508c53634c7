//! Namespaces.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, ManagerName, Namespace, NamespaceName, Timestamp,
    list::ListQuery,
    namespace::{CreateNamespace, NamespaceChange},
    screen::{self, Mute},
};
use uuid::Uuid;

use crate::{
    Error, QueryError, QueryResult,
    listing::{Listing, Page, Rows, column, no_other_index},
    managers, plans, purges,
    quotas::{ContentBytes, Limits},
    schema::{accounts, connections, managers as managers_table, namespaces},
    words,
};

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = namespaces)]
struct NamespaceRow {
    id: Uuid,
    nickname: String,
    create_time: DateTime<Utc>,
    update_time: DateTime<Utc>,
    mutes: serde_json::Value,
}

impl From<NamespaceRow> for Namespace {
    fn from(row: NamespaceRow) -> Self {
        Self {
            name: NamespaceName {
                namespace: Id::from_uuid(row.id),
            },
            create_time: row.create_time.into(),
            update_time: row.update_time.into(),
            nickname: row.nickname,
            mutes: screen::stored_mutes(&row.mutes).0,
        }
    }
}

/// Stores a Namespace of `account`. An exceeded quota is an error.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    account: Id,
    draft: &CreateNamespace,
    defaults: &Limits,
) -> Result<Namespace, Error> {
    let content = match draft.mutes.as_slice() {
        [] => None,
        _ => Some(ContentBytes::before(conn, account, defaults).await?),
    };
    let id = Id::generate();
    let time = id.time().to_chrono();
    let row: NamespaceRow = diesel::insert_into(namespaces::table)
        .values((
            namespaces::id.eq(id.to_uuid()),
            namespaces::account_id.eq(account.to_uuid()),
            namespaces::nickname.eq(&draft.nickname),
            namespaces::create_time.eq(time),
            namespaces::update_time.eq(time),
            namespaces::mutes.eq(json(&draft.mutes)?),
        ))
        .returning(NamespaceRow::as_returning())
        .get_result(conn)
        .await?;
    if let Some(content) = content {
        content.check(conn).await?;
    }
    Ok(row.into())
}

/// The account that a Namespace belongs to; by primary key.
pub async fn account(conn: &mut AsyncPgConnection, namespace: Id) -> QueryResult<Option<Id>> {
    let found = namespaces::table
        .find(namespace.to_uuid())
        .select(namespaces::account_id)
        .first(conn)
        .await;
    found.optional().map(|id| id.map(Id::from_uuid))
}

/// Returns the name of the account that a Namespace belongs to; by primary keys.
pub async fn account_name(
    conn: &mut AsyncPgConnection,
    namespace: Id,
) -> QueryResult<Option<String>> {
    namespaces::table
        .inner_join(accounts::table.on(accounts::id.eq(namespaces::account_id)))
        .filter(namespaces::id.eq(namespace.to_uuid()))
        .select(accounts::name)
        .first(conn)
        .await
        .optional()
}

/// Returns a Namespace if `account` owns it.
pub async fn get(
    conn: &mut AsyncPgConnection,
    account: Id,
    namespace: Id,
) -> QueryResult<Option<Namespace>> {
    namespaces::table
        .find(namespace.to_uuid())
        .filter(namespaces::account_id.eq(account.to_uuid()))
        .select(NamespaceRow::as_select())
        .first(conn)
        .await
        .optional()
        .map(|found| found.map(Into::into))
}

/// Returns the current row, locked until the end of the transaction.
pub async fn lock(conn: &mut AsyncPgConnection, namespace: Id) -> QueryResult<Option<Namespace>> {
    namespaces::table
        .find(namespace.to_uuid())
        .select(NamespaceRow::as_select())
        .for_no_key_update()
        .first(conn)
        .await
        .optional()
        .map(|found| found.map(Into::into))
}

fn json(mutes: &[Mute]) -> QueryResult<serde_json::Value> {
    let json = serde_json::to_value(mutes).map(words::json);
    json.map_err(|error| QueryError::SerializationError(error.into()))
}

#[derive(AsChangeset)]
#[diesel(table_name = namespaces)]
struct Changes<'a> {
    nickname: Option<&'a str>,
    mutes: Option<serde_json::Value>,
}

/// Changes a Namespace. Its account must be locked, and then itself, by [`lock`]. An exceeded quota is an error. A
/// change that changes nothing also keeps `updateTime`. Changed mutes change what is matched, and scanners see them
/// before the next post.
pub async fn update(
    conn: &mut AsyncPgConnection,
    current: Namespace,
    change: &NamespaceChange,
    defaults: &Limits,
    now: Timestamp,
) -> Result<Namespace, Error> {
    let id = current.name.namespace;
    let changes_mutes = change
        .mutes
        .as_ref()
        .is_some_and(|new| *new != current.mutes);
    let updated = update_in_test_mode(conn, current, change, defaults, now).await?;
    if changes_mutes {
        plans::record_namespace(conn, id, now).await?;
    }
    Ok(updated)
}

/// Same as [`update`], for a transaction that is rolled back. Takes no plan version, because all other changes of plans
/// would wait for it.
pub async fn update_in_test_mode(
    conn: &mut AsyncPgConnection,
    current: Namespace,
    change: &NamespaceChange,
    defaults: &Limits,
    now: Timestamp,
) -> Result<Namespace, Error> {
    if *change == NamespaceChange::default() {
        return Ok(current);
    }
    let id = current.name.namespace;
    let content = match change.mutes {
        Some(_) => ContentBytes::before_in(conn, id, defaults).await?,
        None => None,
    };
    let changes = Changes {
        nickname: change.nickname.as_deref(),
        mutes: change.mutes.as_deref().map(json).transpose()?,
    };
    let row: NamespaceRow =
        diesel::update(namespaces::table.find(current.name.namespace.to_uuid()))
            .set((changes, namespaces::update_time.eq(now.to_chrono())))
            .returning(NamespaceRow::as_returning())
            .get_result(conn)
            .await?;
    if let Some(content) = content {
        content.check(conn).await?;
    }
    Ok(row.into())
}

/// Result of a deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deletion {
    NotFound,
    /// The resource contains others, or others refer to it, and the deletion is not forced.
    Refused,
    /// Deleted. These Managers match nothing any more, from these plan versions on.
    Done(Vec<(ManagerName, i64)>),
}

/// Returns the result that [`delete`] would have, without Managers. Only reads, and takes no locks.
pub async fn check_deletion(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    force: bool,
) -> QueryResult<Deletion> {
    let found = namespaces::table.find(namespace.to_uuid());
    let exists: bool = diesel::select(diesel::dsl::exists(found))
        .get_result(conn)
        .await?;
    Ok(if !exists {
        Deletion::NotFound
    } else if !force && !is_empty(conn, namespace).await? {
        Deletion::Refused
    } else {
        Deletion::Done(Vec::new())
    })
}

/// Deletes a Namespace, and with `force` everything in it. Large content disappears from every response at once,
/// and [`purges`] deletes it. Call inside a transaction. The cost grows with the Namespace's Managers and
/// Connections.
pub async fn delete(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    force: bool,
    now: Timestamp,
) -> QueryResult<Deletion> {
    // A transaction that creates something in the Namespace waits for this one, and then finds the Namespace gone.
    let found: Option<Uuid> = namespaces::table
        .find(namespace.to_uuid())
        .select(namespaces::id)
        .for_update()
        .first(conn)
        .await
        .optional()?;
    if found.is_none() {
        return Ok(Deletion::NotFound);
    }
    if !force && !is_empty(conn, namespace).await? {
        return Ok(Deletion::Refused);
    }
    let gone = managers::delete_all(conn, namespace).await?;
    purges::enqueue(conn, purges::Subject::Namespace(namespace)).await?;
    diesel::delete(connections::table.filter(connections::namespace_id.eq(namespace.to_uuid())))
        .execute(conn)
        .await?;
    diesel::delete(namespaces::table.find(namespace.to_uuid()))
        .execute(conn)
        .await?;
    Ok(Deletion::Done(plans::log_all(conn, &gone, now).await?))
}

/// Returns true if the Namespace has no Managers and Connections. By the primary keys of both.
async fn is_empty(conn: &mut AsyncPgConnection, namespace: Id) -> QueryResult<bool> {
    let id = namespace.to_uuid();
    let holds: bool = diesel::select(
        diesel::dsl::exists(managers_table::table.filter(managers_table::namespace_id.eq(id))).or(
            diesel::dsl::exists(connections::table.filter(connections::namespace_id.eq(id))),
        ),
    )
    .get_result(conn)
    .await?;
    Ok(!holds)
}

pub(crate) const LISTING: Listing = Listing {
    select: "SELECT id, nickname, create_time, update_time, mutes FROM namespaces WHERE account_id = $1",
    rows: "SELECT FROM namespaces WHERE account_id = $1",
    columns: &[
        column("name", "('namespaces/' || ulid(id))").taking(30),
        column("createTime", "create_time"),
        column("updateTime", "update_time"),
        column("nickname", "nickname"),
    ],
    id: "id",
    is_indexed: no_other_index,
};

/// Same as [`LISTING`], for a key that is restricted to some Namespaces.
const NARROWED: Listing = Listing {
    select: "SELECT id, nickname, create_time, update_time, mutes FROM namespaces WHERE account_id = $1 \
             AND id = ANY ((SELECT namespace_ids FROM api_keys WHERE id = $2)::uuid[])",
    ..LISTING
};

/// Returns the Namespaces of `account`, or those that a restricted key may see. `namespaces_list_idx` serves the
/// default order.
pub async fn list(
    conn: &mut AsyncPgConnection,
    account: Id,
    narrowed_key: Option<Id>,
    list: &ListQuery,
) -> QueryResult<Page<Namespace>> {
    let query = match narrowed_key {
        None => LISTING.page(&[account.to_uuid()], list),
        Some(key) => NARROWED.page(&[account.to_uuid(), key.to_uuid()], list),
    };
    let Rows::<NamespaceRow> { rows, more } = query.read(conn, list).await?;
    Ok(Page::new(
        list,
        rows.into_iter()
            .map(|row| (Id::from_uuid(row.id), row.into()))
            .collect(),
        more,
    ))
}

/// Maximum cost of [`list`].
pub async fn cost(conn: &mut AsyncPgConnection, account: Id, list: &ListQuery) -> QueryResult<u64> {
    LISTING.cost(conn, &[account.to_uuid()], list, "").await
}
