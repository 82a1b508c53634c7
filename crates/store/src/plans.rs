//! Data for matching: the plan version, the log of changes behind it, and the plans themselves.
//!
//! Code that changes what a Manager matches calls [`record_change`] in the same transaction. The lock on the single
//! version row orders the ends of those transactions, so a reader that has seen version `n` has seen every change up to
//! it. This needs only that the version is taken before the commit. It is taken last, because all accounts wait for
//! it: whatever may wait itself, such as the locks on feeds, comes first.

use std::collections::{BTreeSet, HashMap, HashSet};

use diesel::{
    dsl::sql,
    prelude::*,
    sql_types::{Array, BigInt, Bool, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Focus, Id, Instructions, ManagerName, PlanVersion, Timestamp,
    instructions::{Sells, WatchedName},
    screen::{self, Language, Mute},
};
use serde_json::Value;
use uuid::Uuid;

use crate::{
    Error, QueryError, QueryResult,
    managers::languages,
    prepared::query,
    quotas::Limits,
    schema::{managers, namespaces, plan_changes, plan_version},
};

mod feeds;

pub(crate) use feeds::{unwatch, watch};

/// Number of changes that the log keeps. A reader further behind loads everything.
const KEPT_CHANGES: i64 = 100_000;
/// Maximum number of changes that a reader gets at a time, because their instructions may take much memory.
const READ_CHANGES: i64 = 50;
/// Maximum number of changes that [`changed_since`] returns.
const COMPARED: i64 = 1_000;

/// One Manager's data for matching.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRecord {
    pub manager: ManagerName,
    /// `None` if the Manager is deleted, disabled, or was never applied.
    pub instructions: Option<Instructions>,
    /// True if this version cannot read the instructions in use, for example those of a newer version during an
    /// upgrade.
    pub unreadable: bool,
    pub mutes: Vec<Mute>,
    pub languages: Vec<Language>,
}

/// Mutes of a Namespace for all its Managers.
#[derive(Debug, Clone, PartialEq)]
pub struct NamespaceMutes {
    pub namespace: Id,
    /// Empty if the Namespace is gone or has no enabled Manager, too.
    pub mutes: Vec<Mute>,
    /// True if the mutes changed, and not only a Manager, which may be the first or last enabled one.
    pub has_changed: bool,
}

/// True for Namespaces whose mutes a scanner needs.
const MUTING: &str = "mutes <> '[]' AND EXISTS \
     (SELECT FROM managers AS m WHERE m.namespace_id = namespaces.id AND m.enable)";

/// Changes since a version.
#[derive(Debug, Clone, PartialEq)]
pub enum Changes {
    /// Managers that changed after the requested version, in their state at `version` or later.
    Since {
        version: PlanVersion,
        plans: Vec<PlanRecord>,
        /// Namespaces of these Managers, and those whose mutes changed.
        namespaces: Vec<NamespaceMutes>,
        /// True if there may be further changes, after `version`.
        more: bool,
    },
    /// The log does not reach back that far, or has another change at the requested version: load everything.
    TooFarBehind,
}

/// Updates the feeds that the Manager watches, and then logs its change. Returns the new version. Call at the end of
/// the transaction, or use [`watch`] and [`log`]: other changes wait from here to the commit. The account's row is
/// locked before the Manager's, as [`crate::quotas`] says.
pub async fn record_change(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    watched: &[FeedName],
    defaults: &Limits,
    now: Timestamp,
) -> Result<i64, Error> {
    watch(conn, manager, watched, defaults).await?;
    Ok(log(conn, manager, now).await?)
}

/// Same as [`record_change`], for the mutes of a Namespace.
pub async fn record_namespace(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    now: Timestamp,
) -> QueryResult<i64> {
    log(conn, of_mutes(namespace), now).await
}

/// Name under which changed mutes of a Namespace are logged, with an id that no Manager has.
fn of_mutes(namespace: Id) -> ManagerName {
    ManagerName {
        namespace,
        manager: Id::NIL,
    }
}

/// Raises the version, and logs the change of a Manager under it. Returns the version.
pub(crate) async fn log(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    now: Timestamp,
) -> QueryResult<i64> {
    let logged = log_all(conn, &[manager], now).await?;
    let version = logged.into_iter().next().map(|(_, version)| version);
    version.ok_or(QueryError::NotFound)
}

/// Same as [`log`], for many Managers. Each is logged under a separate version, which is returned with it. Three
/// statements for any number of Managers.
pub(crate) async fn log_all(
    conn: &mut AsyncPgConnection,
    names: &[ManagerName],
    now: Timestamp,
) -> QueryResult<Vec<(ManagerName, i64)>> {
    let Ok(count @ 1..) = i64::try_from(names.len()) else {
        return Ok(Vec::new());
    };
    let last: i64 = diesel::update(plan_version::table)
        .set(plan_version::version.eq(plan_version::version + count))
        .returning(plan_version::version)
        .get_result(conn)
        .await?;
    let versions: Vec<i64> = (last - count + 1..=last).collect();
    let (namespaces, managers) = ids(names);
    query!(
        "plans/log",
        Array<BigInt>: &versions,
        Array<SqlUuid>: &namespaces,
        Array<SqlUuid>: &managers,
        Timestamptz: now.to_chrono(),
    )
    .execute(conn)
    .await?;
    diesel::delete(plan_changes::table.filter(plan_changes::version.lt(last - KEPT_CHANGES)))
        .execute(conn)
        .await?;
    Ok(names.iter().copied().zip(versions).collect())
}

fn ids(names: &[ManagerName]) -> (Vec<Uuid>, Vec<Uuid>) {
    let ids = names.iter();
    ids.map(|name| (name.namespace.to_uuid(), name.manager.to_uuid()))
        .unzip()
}

/// Returns the current version. Reads two rows by primary key, because scanners do this in every poll's
/// transaction.
pub async fn version(conn: &mut AsyncPgConnection) -> QueryResult<PlanVersion> {
    // A join could read the whole log if statistics are missing.
    let nonce = plan_changes::table
        .filter(plan_changes::version.eq(plan_version::version))
        .select(plan_changes::nonce)
        .single_value();
    let (number, nonce): (i64, Option<Uuid>) = plan_version::table
        .select((plan_version::version, nonce))
        .first(conn)
        .await?;
    Ok(PlanVersion {
        number,
        nonce: nonce.unwrap_or_default(),
    })
}

/// Returns the next changes after version `after`, if the log still has the change that created this version. Served
/// by the primary key.
pub async fn changes_since(
    conn: &mut AsyncPgConnection,
    after: PlanVersion,
) -> QueryResult<Changes> {
    // The version is read before the log: changes that are logged later belong to the next call.
    let now = version(conn).await?;
    if now == after {
        return Ok(Changes::Since {
            version: after,
            plans: Vec::new(),
            namespaces: Vec::new(),
            more: false,
        });
    }
    let read = log_from(conn, after, READ_CHANGES).await?;
    let Some(changes @ [.., last]) = following(&read, after) else {
        return Ok(Changes::TooFarBehind);
    };
    let more = i64::try_from(read.len()).is_ok_and(|count| count == READ_CHANGES);
    let version = last.version();
    let mut changed: Vec<(Uuid, Uuid)> = changes
        .iter()
        .map(|change| (change.namespace_id, change.manager_id))
        .collect();
    changed.sort_unstable();
    changed.dedup();
    let muting: Vec<Uuid> = changed
        .extract_if(.., |(_, manager)| manager.is_nil())
        .map(|(namespace, _)| namespace)
        .collect();
    let ids: Vec<Uuid> = changed.iter().map(|(_, manager)| *manager).collect();
    let rows: Vec<PlanRow> = managers::table
        .filter(managers::namespace_id.eq_any(changed.iter().map(|(namespace, _)| *namespace)))
        .filter(managers::id.eq_any(ids))
        .select(PlanRow::as_select())
        .load(conn)
        .await?;
    // The mutes are read after the Managers, so that those of each enabled one are found.
    let namespaces = mutes_of(conn, &changed, &muting).await?;
    let mut rows: HashMap<(Uuid, Uuid), PlanRow> = { rows.into_iter() }
        .map(|row| ((row.namespace_id, row.id), row))
        .collect();
    let plans = changed
        .into_iter()
        .map(|(namespace_id, id)| {
            plan(rows.remove(&(namespace_id, id)).unwrap_or(PlanRow {
                namespace_id,
                id,
                enable: false,
                instructions: None,
                mutes: Value::Null,
                languages: Vec::new(),
            }))
        })
        .collect();
    Ok(Changes::Since {
        version,
        plans,
        namespaces,
        more,
    })
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = plan_changes)]
struct Change {
    version: i64,
    nonce: Option<Uuid>,
    namespace_id: Uuid,
    manager_id: Uuid,
}

impl Change {
    fn version(&self) -> PlanVersion {
        PlanVersion {
            number: self.version,
            nonce: self.nonce.unwrap_or_default(),
        }
    }
}

/// Returns the log from the change that created version `from`.
async fn log_from(
    conn: &mut AsyncPgConnection,
    from: PlanVersion,
    limit: i64,
) -> QueryResult<Vec<Change>> {
    plan_changes::table
        .filter(plan_changes::version.ge(from.number))
        .order(plan_changes::version.asc())
        .limit(limit)
        .select(Change::as_select())
        .load(conn)
        .await
}

/// Returns the changes after version `after`. `None` if the log does not continue that version, because it was cut, or
/// because this is another database than the reader knows.
fn following(changes: &[Change], after: PlanVersion) -> Option<&[Change]> {
    // The change that created `after` comes first. An empty log has no change for its version.
    let changes = match changes {
        [known, changes @ ..] if known.version() == after => changes,
        changes if after == PlanVersion::default() => changes,
        _ => return None,
    };
    let is_next = changes.first()?.version == after.number + 1;
    is_next.then_some(changes)
}

/// Returns true if no change after version `since` concerns `feed`, so that its posts are matched now as they were by
/// `since`. A change concerns the feed if its Manager watches it now or watched it then, as `watched` says, or if it is
/// of the mutes of a Namespace with such a Manager. A Manager that no longer watches it has its own entry in the log.
///
/// Costs [`changed_since`], and if something changed, one look-up by primary key for each Manager.
pub async fn are_current(
    conn: &mut AsyncPgConnection,
    since: PlanVersion,
    feed: &FeedName,
    watched: impl Fn(&ManagerName) -> bool,
) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        found: bool,
    }
    let Some(changed) = changed_since(conn, since).await? else {
        return Ok(false);
    };
    if changed.is_empty() {
        return Ok(true);
    }
    if changed.iter().any(watched) {
        return Ok(false);
    }
    let changed: Vec<ManagerName> = changed.into_iter().collect();
    let (namespaces, managers) = ids(&changed);
    let now: Found = query!(
        "plans/is_concerned",
        Text: feed.as_str(),
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: managers,
    )
    .get_result(conn)
    .await?;
    Ok(!now.found)
}

/// Returns true if no change after version `since` concerns one of `managers`: neither its own nor of the mutes of its
/// Namespace. Costs [`changed_since`].
pub async fn are_unchanged(
    conn: &mut AsyncPgConnection,
    since: PlanVersion,
    managers: &HashSet<ManagerName>,
) -> QueryResult<bool> {
    let Some(changed) = changed_since(conn, since).await? else {
        return Ok(false);
    };
    Ok(!managers.iter().any(|name| {
        let mutes = of_mutes(name.namespace);
        changed.contains(name) || changed.contains(&mutes)
    }))
}

/// Returns the Managers that changed after version `since`, and the names under which changed mutes are logged. Returns
/// `None` if these are not known, or of more than [`COMPARED`] changes. Costs [`version`], and if that differs, a range
/// of the log by its primary key.
async fn changed_since(
    conn: &mut AsyncPgConnection,
    since: PlanVersion,
) -> QueryResult<Option<BTreeSet<ManagerName>>> {
    if version(conn).await? == since {
        return Ok(Some(BTreeSet::new()));
    }
    let changes = log_from(conn, since, COMPARED + 2).await?;
    let changes = following(&changes, since).unwrap_or_default();
    if changes.is_empty() || i64::try_from(changes.len()).is_ok_and(|count| count > COMPARED) {
        return Ok(None);
    }
    let names = changes.iter().map(|change| ManagerName {
        namespace: Id::from_uuid(change.namespace_id),
        manager: Id::from_uuid(change.manager_id),
    });
    Ok(Some(names.collect()))
}

/// Returns the mutes of the Namespaces of `managers`, and of `changed` ones, which are sorted.
async fn mutes_of(
    conn: &mut AsyncPgConnection,
    managers: &[(Uuid, Uuid)],
    changed: &[Uuid],
) -> QueryResult<Vec<NamespaceMutes>> {
    let mut ids: Vec<Uuid> = managers.iter().map(|(namespace, _)| *namespace).collect();
    ids.extend(changed);
    ids.sort_unstable();
    ids.dedup();
    let rows: Vec<(Uuid, Value)> = namespaces::table
        .filter(namespaces::id.eq_any(&ids))
        .filter(sql::<Bool>(MUTING))
        .select((namespaces::id, namespaces::mutes))
        .load(conn)
        .await?;
    let mut rows: HashMap<Uuid, Value> = rows.into_iter().collect();
    let found = ids.into_iter().map(|id| {
        let mutes = rows.remove(&id).unwrap_or_default();
        muting(id, &mutes, changed.binary_search(&id).is_ok())
    });
    Ok(found.collect())
}

/// Returns the mutes of Namespaces with an enabled Manager in pages: those after `after` in the order of their ids.
/// Served by `namespaces_muting_idx`.
pub async fn load_mutes(
    conn: &mut AsyncPgConnection,
    after: Option<Id>,
    limit: i64,
) -> QueryResult<Vec<NamespaceMutes>> {
    let after = after.map_or(Uuid::nil(), |id| id.to_uuid());
    let rows: Vec<(Uuid, Value)> = namespaces::table
        .filter(namespaces::id.gt(after))
        .filter(sql::<Bool>(MUTING))
        .order(namespaces::id.asc())
        .limit(limit)
        .select((namespaces::id, namespaces::mutes))
        .load(conn)
        .await?;
    let read = rows
        .into_iter()
        .map(|(id, mutes)| muting(id, &mutes, false));
    Ok(read.collect())
}

fn muting(namespace: Uuid, mutes: &Value, has_changed: bool) -> NamespaceMutes {
    NamespaceMutes {
        namespace: Id::from_uuid(namespace),
        mutes: screen::stored_mutes(mutes).0,
        has_changed,
    }
}

/// Returns plans in pages: those after `after` in the order of their names. A page ends with the Manager whose
/// instructions and mutes reach `bytes`, or after `most` Managers.
///
/// Read the version first, so that a change during the read is seen again as a change.
pub async fn load_page(
    conn: &mut AsyncPgConnection,
    after: Option<ManagerName>,
    most: i64,
    bytes: i64,
) -> QueryResult<Vec<PlanRecord>> {
    let nil = Uuid::nil();
    let (namespace, manager) = after.map_or((nil, nil), |name| {
        (name.namespace.to_uuid(), name.manager.to_uuid())
    });
    let rows: Vec<PlanRow> = query!(
        "plans/load_page",
        SqlUuid: namespace,
        SqlUuid: manager,
        BigInt: most,
        BigInt: bytes,
    )
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(plan).collect())
}

/// Returns the instructions in use of these Managers, if this version can read them. By primary key.
pub async fn instructions_of(
    conn: &mut AsyncPgConnection,
    names: &[ManagerName],
) -> QueryResult<HashMap<ManagerName, (Id, Instructions)>> {
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let ids_of_namespaces = names.iter().map(|name| name.namespace.to_uuid());
    let ids = names.iter().map(|name| name.manager.to_uuid());
    let rows: Vec<(Uuid, Uuid, Uuid, Option<Value>)> = managers::table
        .inner_join(namespaces::table.on(namespaces::id.eq(managers::namespace_id)))
        .filter(managers::namespace_id.eq_any(ids_of_namespaces))
        .filter(managers::id.eq_any(ids))
        .select((
            namespaces::account_id,
            managers::namespace_id,
            managers::id,
            managers::instructions,
        ))
        .load(conn)
        .await?;
    let found = rows
        .into_iter()
        .filter_map(|(account, namespace, manager, json)| {
            let name = ManagerName {
                namespace: Id::from_uuid(namespace),
                manager: Id::from_uuid(manager),
            };
            let instructions = serde_json::from_value(json?).ok()?;
            Some((name, (Id::from_uuid(account), instructions)))
        });
    Ok(found.collect())
}

/// Description of a Manager's customer in the instructions that are in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Seller {
    pub account: Id,
    pub focus: Option<Focus>,
    pub sells: Option<Sells>,
    pub names: Vec<WatchedName>,
}

/// Account, Namespace, Manager, and three fields of its instructions.
type SellerRow = (
    Uuid,
    Uuid,
    Uuid,
    Option<Value>,
    Option<Value>,
    Option<Value>,
);

/// Returns the sellers of these Managers, if this version can read them. By primary key. The other fields of instructions
/// may have 100 KB.
pub async fn sellers(
    conn: &mut AsyncPgConnection,
    names: &[ManagerName],
) -> QueryResult<HashMap<ManagerName, Seller>> {
    let field = |name: &str| sql::<Nullable<Jsonb>>(&format!("managers.instructions -> '{name}'"));
    let ids_of_namespaces = names.iter().map(|name| name.namespace.to_uuid());
    let ids = names.iter().map(|name| name.manager.to_uuid());
    let rows: Vec<SellerRow> = managers::table
        .inner_join(namespaces::table.on(namespaces::id.eq(managers::namespace_id)))
        .filter(managers::namespace_id.eq_any(ids_of_namespaces))
        .filter(managers::id.eq_any(ids))
        .select((
            namespaces::account_id,
            managers::namespace_id,
            managers::id,
            field("focus"),
            field("sells"),
            field("names"),
        ))
        .load(conn)
        .await?;
    let found =
        rows.into_iter()
            .filter_map(|(account, namespace, manager, focus, sells, names)| {
                let name = ManagerName {
                    namespace: Id::from_uuid(namespace),
                    manager: Id::from_uuid(manager),
                };
                let seller = Seller {
                    account: Id::from_uuid(account),
                    focus: serde_json::from_value(focus.unwrap_or_default()).ok()?,
                    sells: serde_json::from_value(sells.unwrap_or_default()).ok()?,
                    names: match names {
                        Some(names) => serde_json::from_value(names).ok()?,
                        None => Vec::new(),
                    },
                };
                Some((name, seller))
            });
    Ok(found.collect())
}

#[derive(Queryable, QueryableByName, Selectable)]
#[diesel(table_name = managers)]
struct PlanRow {
    namespace_id: Uuid,
    id: Uuid,
    enable: bool,
    instructions: Option<Value>,
    mutes: Value,
    languages: Vec<String>,
}

/// Converts a row. Instructions that this version cannot read are no error, so that one Manager does not stop the
/// others.
fn plan(row: PlanRow) -> PlanRecord {
    let manager = ManagerName {
        namespace: Id::from_uuid(row.namespace_id),
        manager: Id::from_uuid(row.id),
    };
    let json = row.instructions.filter(|_| row.enable);
    let (instructions, unreadable) = match json.map(serde_json::from_value).transpose() {
        Ok(instructions) => (instructions, false),
        Err(error) => {
            tracing::error!(manager.name = %manager, "its instructions cannot be read: {error}");
            (None, true)
        }
    };
    PlanRecord {
        manager,
        instructions,
        unreadable,
        mutes: screen::stored_mutes(&row.mutes).0,
        languages: languages(&row.languages),
    }
}
