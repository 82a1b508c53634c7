//! Changes and deletes Managers.
//!
//! A change locks the Manager's row from the read to the commit, so that two changes run one after the other and
//! neither is lost. Locks are taken in one order everywhere: the account, the Manager, the feeds, the clocks, the plan version.

use diesel::{prelude::*, sql_types::Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Id, Manager, ManagerName, Timestamp,
    manager::{Editable, ManagerChange, ManagerState, Origin},
};
use uuid::Uuid;

use super::{
    ManagerRow, codes, health, insert_notices, kind_words, load_notices, number, read, write,
};
use crate::{
    Error, QueryResult, backfills, plans, purges,
    quotas::{self, ContentBytes, Limits},
    schema::{manager_notices, managers, scan_clocks},
};

/// A Manager after a change, and what other services must learn of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Updated {
    pub manager: Manager,
    pub generation: i64,
    /// Plan version if scanners must learn of the change.
    pub plan_version: Option<i64>,
}

/// Returns the current row, locked until the end of the transaction.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
) -> Result<Option<Editable>, Error> {
    let found: Option<(ManagerRow, i64)> = managers::table
        .find((name.namespace.to_uuid(), name.manager.to_uuid()))
        .select((ManagerRow::as_select(), managers::generation))
        .for_no_key_update()
        .first(conn)
        .await
        .optional()?;
    match found {
        Some(found) => editable(conn, found, &[]).await.map(Some),
        None => Ok(None),
    }
}

/// Adds what other tables hold of a Manager to its row. Its health also counts `feeds`, which it may not watch yet.
async fn editable(
    conn: &mut AsyncPgConnection,
    (row, generation): (ManagerRow, i64),
    feeds: &[FeedName],
) -> Result<Editable, Error> {
    let namespace = Id::from_uuid(row.namespace_id);
    let submitted = row.submitted_instructions.as_ref().map(read).transpose()?;
    let mut notices = load_notices(conn, namespace, &[row.id]).await?;
    let notices = notices.remove(&row.id).unwrap_or_default();
    let managers = health::add_health(conn, namespace, vec![row.read(notices)?], feeds).await?;
    Ok(Editable {
        manager: managers.into_iter().next().ok_or(diesel::NotFound)?,
        submitted,
        generation,
    })
}

#[derive(Default, AsChangeset)]
#[diesel(table_name = managers)]
struct Changes<'a> {
    nickname: Option<&'a str>,
    enable: Option<bool>,
    source: Option<&'a str>,
    mode: Option<&'a str>,
    input: Option<Option<serde_json::Value>>,
    submitted_instructions: Option<Option<serde_json::Value>>,
    mutes: Option<serde_json::Value>,
    languages: Option<Vec<&'static str>>,
    max_scans_per_day: Option<Option<i32>>,
    kinds: Option<Vec<&'static str>>,
    duplicates: Option<&'a str>,
}

/// Changes a Manager. It, its account and its new Connections must be locked. An exceeded quota is an error. A change
/// that needs compiling becomes a new generation and waits for the compiler; until then, the instructions in use stay
/// in use. A change that changes nothing also keeps `updateTime`.
pub async fn update(
    conn: &mut AsyncPgConnection,
    current: Editable,
    change: &ManagerChange,
    defaults: &Limits,
    now: Timestamp,
) -> Result<Updated, Error> {
    let name = current.manager.name;
    let (mut updated, changes_plan) = edit(conn, current, change, defaults, now, false).await?;
    if changes_plan {
        updated.plan_version = Some(plans::log(conn, name, now).await?);
    }
    Ok(updated)
}

/// Same as [`update`], for a transaction that is rolled back. Takes no plan version, because all other changes of plans
/// would wait for it. Locks no feed either, because it would wait for polls, and other polls for it.
pub async fn update_in_test_mode(
    conn: &mut AsyncPgConnection,
    current: Editable,
    change: &ManagerChange,
    defaults: &Limits,
    now: Timestamp,
) -> Result<Updated, Error> {
    let (updated, _) = edit(conn, current, change, defaults, now, true).await?;
    Ok(updated)
}

/// Changes the rows of the Manager. Also returns true if its plan changed; the caller logs that. In test mode, feeds
/// are checked against the quota, and nothing of them is written.
async fn edit(
    conn: &mut AsyncPgConnection,
    current: Editable,
    change: &ManagerChange,
    defaults: &Limits,
    now: Timestamp,
    test_mode: bool,
) -> Result<(Updated, bool), Error> {
    let name = current.manager.name;
    if *change == ManagerChange::default() {
        return Ok((unchanged(current), false));
    }
    let mut changes = Changes {
        nickname: change.nickname.as_deref(),
        enable: change.enable,
        source: change.source.map(|source| source.as_str()),
        mutes: change.mutes.as_ref().map(write).transpose()?,
        languages: change.languages.as_deref().map(codes),
        max_scans_per_day: change.max_scans_per_day.map(number),
        kinds: change.kinds.as_ref().map(kind_words),
        duplicates: change.duplicates.map(|duplicates| duplicates.as_str()),
        ..Changes::default()
    };
    match &change.origin {
        Some(Origin::Input(input)) => {
            changes.mode = Some("AUTOMATIC");
            changes.input = Some(Some(write(input)?));
            changes.submitted_instructions = Some(None);
        }
        Some(Origin::Instructions(instructions)) => {
            changes.mode = Some("MANUAL");
            changes.input = Some(None);
            changes.submitted_instructions = Some(Some(write(instructions)?));
        }
        None => {}
    }
    let content = if change.mutes.is_some() || change.origin.is_some() {
        ContentBytes::before_in(conn, name.namespace, defaults).await?
    } else {
        None
    };
    let mut written: (ManagerRow, i64) = diesel::update(row(name))
        .set((changes, managers::update_time.eq(now.to_chrono())))
        .returning((ManagerRow::as_returning(), managers::generation))
        .get_result(conn)
        .await?;
    if let Some(content) = content {
        content.check(conn).await?;
    }
    if change.resubmits() {
        written = submit(conn, name, now).await?;
    }
    if let Some(notices) = &change.notices {
        let (namespace, manager) = (name.namespace.to_uuid(), name.manager.to_uuid());
        diesel::delete(
            manager_notices::table
                .filter(manager_notices::namespace_id.eq(namespace))
                .filter(manager_notices::manager_id.eq(manager)),
        )
        .execute(conn)
        .await?;
        insert_notices(conn, name, notices).await?;
    }
    let changed_notices = change
        .notices
        .as_ref()
        .is_some_and(|new| *new != current.manager.notices);
    let was = &current.manager.screen;
    let changed_screen = change.mutes.as_ref().is_some_and(|new| *new != was.mutes)
        || change
            .languages
            .as_ref()
            .is_some_and(|new| *new != was.languages);
    let enabled = written.0.enable;
    let mut feeds = Vec::new();
    let changes_plan = match &written.0.instructions {
        Some(at_work) if enabled != current.manager.enable || changed_notices || changed_screen => {
            if enabled {
                feeds = feeds_of(at_work);
            }
            if test_mode {
                quotas::check_feeds(conn, name, &feeds, defaults).await?;
            } else {
                plans::watch(conn, name, &feeds, defaults).await?;
            }
            true
        }
        _ => false,
    };
    let updated = unchanged(editable(conn, written, &feeds).await?);
    Ok((updated, changes_plan))
}

/// Feeds of instructions. A newer release may have written the rest, which only its scanners understand.
fn feeds_of(instructions: &serde_json::Value) -> Vec<FeedName> {
    let feeds = instructions["feeds"].as_array();
    let names = feeds.into_iter().flatten().filter_map(|name| name.as_str());
    names.filter_map(|name| name.parse().ok()).collect()
}

/// Submits the Manager, unchanged, to the compiler again. Call with it [`lock`]ed.
pub async fn resubmit(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    now: Timestamp,
) -> Result<Updated, Error> {
    let written = submit(conn, name, now).await?;
    editable(conn, written, &[]).await.map(unchanged)
}

async fn submit(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    now: Timestamp,
) -> QueryResult<(ManagerRow, i64)> {
    diesel::update(row(name))
        .set((
            managers::state.eq(ManagerState::PendingApply.as_str()),
            managers::generation.eq(managers::generation + 1),
            // By the database's clock, because the sweep compares it with that clock.
            managers::submit_time.eq(diesel::dsl::now.into_sql::<Timestamptz>()),
            managers::apply_error_code.eq(None::<String>),
            managers::apply_error_message.eq(None::<String>),
            managers::update_time.eq(now.to_chrono()),
        ))
        .returning((ManagerRow::as_returning(), managers::generation))
        .get_result(conn)
        .await
}

fn unchanged(current: Editable) -> Updated {
    Updated {
        manager: current.manager,
        generation: current.generation,
        plan_version: None,
    }
}

/// Deletes a Manager. Its Scans disappear from every response at once, and [`purges`] deletes them. Returns the
/// plan version from which it matches nothing, or `None` if there was no such Manager. Call inside a transaction.
pub async fn delete(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    now: Timestamp,
) -> QueryResult<Option<i64>> {
    let found: Option<Uuid> = managers::table
        .find((name.namespace.to_uuid(), name.manager.to_uuid()))
        .select(managers::id)
        .for_update()
        .first(conn)
        .await
        .optional()?;
    if found.is_none() {
        return Ok(None);
    }
    remove(conn, &[name]).await?;
    purges::enqueue(conn, purges::Subject::Manager(name)).await?;
    plans::log(conn, name, now).await.map(Some)
}

/// Deletes all Managers of a locked Namespace, and returns their names. The caller leaves its rows to [`purges`], and
/// logs the changes of plans at the end.
pub(crate) async fn delete_all(
    conn: &mut AsyncPgConnection,
    namespace: Id,
) -> QueryResult<Vec<ManagerName>> {
    let ids: Vec<Uuid> = managers::table
        .filter(managers::namespace_id.eq(namespace.to_uuid()))
        .order(managers::id.asc())
        .select(managers::id)
        .for_update()
        .load(conn)
        .await?;
    let names: Vec<ManagerName> = ids
        .into_iter()
        .map(|id| ManagerName {
            namespace,
            manager: Id::from_uuid(id),
        })
        .collect();
    remove(conn, &names).await?;
    Ok(names)
}

/// Removes Managers of one Namespace, in the order of their names.
///
/// Locks backfills first, then feeds, and then clocks, each in order, like the steps of backfills and the recording of
/// Scans. Those wait, and then find that the Manager is gone.
async fn remove(conn: &mut AsyncPgConnection, names: &[ManagerName]) -> QueryResult<()> {
    let Some(first) = names.first() else {
        return Ok(());
    };
    let namespace = first.namespace.to_uuid();
    let ids: Vec<Uuid> = names.iter().map(|name| name.manager.to_uuid()).collect();
    backfills::lock_all(conn, namespace, &ids).await?;
    plans::unwatch(conn, names).await?;
    scan_clocks::table
        .filter(scan_clocks::namespace_id.eq(namespace))
        .filter(scan_clocks::manager_id.eq_any(&ids))
        .order(scan_clocks::manager_id.asc())
        .select(scan_clocks::manager_id)
        .for_update()
        .load::<Uuid>(conn)
        .await?;
    diesel::delete(
        managers::table
            .filter(managers::namespace_id.eq(namespace))
            .filter(managers::id.eq_any(&ids)),
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[diesel::dsl::auto_type(no_type_alias)]
fn row(name: ManagerName) -> _ {
    let (namespace, manager): (Uuid, Uuid) = (name.namespace.to_uuid(), name.manager.to_uuid());
    managers::table
        .filter(managers::namespace_id.eq(namespace))
        .filter(managers::id.eq(manager))
}
