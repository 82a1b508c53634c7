//! Managers: stored by the gateway, applied by the compiler.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types::Timestamptz};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, Id, Manager, ManagerName, Timestamp,
    list::ListQuery,
    manager::{
        ApplyError, CreateManager, ManagerState, ManagerType, Mode, Notice, Origin, Source,
        health::Health,
    },
    screen::{self, Duplicates, Kinds, Language, Screen},
};
use uuid::Uuid;

use crate::{
    Error, QueryResult,
    listing::{Listing, Page, Rows, column, no_other_index, nullable},
    quotas::{ContentBytes, Limits},
    schema::{manager_notices, managers, scan_clocks},
    words,
};

mod compilation;
mod edit;
mod health;
mod verdicts;

pub use compilation::{
    Generation, StateCount, Submission, apply, claim, count_by_state, fail, submission,
};
pub(crate) use edit::delete_all;
pub use edit::{Updated, delete, lock, resubmit, update, update_in_test_mode};
pub(crate) use verdicts::{count_verdict, forget_verdicts};

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = managers)]
struct ManagerRow {
    namespace_id: Uuid,
    id: Uuid,
    nickname: String,
    enable: bool,
    mode: String,
    source: String,
    state: String,
    input: Option<serde_json::Value>,
    submitted_instructions: Option<serde_json::Value>,
    instructions: Option<serde_json::Value>,
    apply_time: Option<DateTime<Utc>>,
    apply_error_code: Option<String>,
    apply_error_message: Option<String>,
    create_time: DateTime<Utc>,
    update_time: DateTime<Utc>,
    mutes: serde_json::Value,
    languages: Vec<String>,
    max_scans_per_day: Option<i32>,
    kinds: Vec<String>,
    duplicates: String,
}

/// A Manager as read from its rows.
struct Read {
    manager: Manager,
    /// True if it has instructions that this version cannot read and therefore does not show.
    unreadable: bool,
}

impl ManagerRow {
    fn read(self, notices: Vec<Notice>) -> Result<Read, Error> {
        let mode: Mode = words::parse(&self.mode)?;
        let state: ManagerState = words::parse(&self.state)?;
        // The instructions in use, except for a MANUAL Manager whose new ones are not applied yet.
        let shown = match (mode, state) {
            (Mode::Manual, ManagerState::PendingApply) => self.submitted_instructions,
            _ => self.instructions,
        };
        // Instructions of a newer version: the rest of the Manager is still shown.
        let instructions = shown.as_ref().map(read).transpose();
        let unreadable = instructions.is_err();
        let manager = Manager {
            name: ManagerName {
                namespace: Id::from_uuid(self.namespace_id),
                manager: Id::from_uuid(self.id),
            },
            create_time: self.create_time.into(),
            update_time: self.update_time.into(),
            nickname: self.nickname,
            manager_type: ManagerType::FeedManager,
            enable: self.enable,
            mode,
            state,
            apply_time: self.apply_time.map(Into::into),
            apply_error: match (self.apply_error_code, self.apply_error_message) {
                (Some(code), Some(message)) => Some(ApplyError {
                    code: words::parse(&code)?,
                    message,
                }),
                _ => None,
            },
            source: Source {
                source_type: words::parse(&self.source)?,
            },
            input: self.input.as_ref().map(read).transpose()?,
            instructions: instructions.unwrap_or_default(),
            notices,
            screen: Screen {
                mutes: screen::stored_mutes(&self.mutes).0,
                languages: languages(&self.languages),
                max_scans_per_day: self.max_scans_per_day.and_then(|max| max.try_into().ok()),
                kinds: Kinds::stored(&self.kinds),
                duplicates: words::parse::<Duplicates>(&self.duplicates)?,
            },
            health: None,
        };
        Ok(Read {
            manager,
            unreadable,
        })
    }
}

/// Parses language codes. Those of a newer version are left out.
pub(crate) fn languages(codes: &[String]) -> Vec<Language> {
    codes.iter().filter_map(|code| code.parse().ok()).collect()
}

fn read<'a, T: serde::Deserialize<'a>>(json: &'a serde_json::Value) -> Result<T, Error> {
    T::deserialize(json).map_err(Error::Json)
}

fn write(value: &impl serde::Serialize) -> Result<serde_json::Value, Error> {
    serde_json::to_value(value)
        .map(words::json)
        .map_err(Error::Json)
}

/// Stores a Manager in PENDING_APPLY, generation 1, with its notices and its clock. The caller publishes the event
/// after the commit. An exceeded quota is an error.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    draft: &CreateManager,
    defaults: &Limits,
) -> Result<Manager, Error> {
    let has_content =
        matches!(draft.origin, Origin::Instructions(_)) || !draft.screen.mutes.is_empty();
    let content = if has_content {
        ContentBytes::before_in(conn, namespace, defaults).await?
    } else {
        None
    };
    let id = Id::generate();
    let time = id.time();
    let (mode, input, submitted) = match &draft.origin {
        Origin::Input(input) => ("AUTOMATIC", Some(write(input)?), None),
        Origin::Instructions(instructions) => ("MANUAL", None, Some(write(instructions)?)),
    };
    let row = diesel::insert_into(managers::table)
        .values((
            managers::namespace_id.eq(namespace.to_uuid()),
            managers::id.eq(id.to_uuid()),
            managers::nickname.eq(&draft.nickname),
            managers::enable.eq(draft.enable),
            managers::mode.eq(mode),
            managers::source.eq(draft.source.as_str()),
            managers::state.eq(ManagerState::PendingApply.as_str()),
            managers::input.eq(input),
            managers::submitted_instructions.eq(submitted),
            // By the database's clock, because the sweep compares it with that clock.
            managers::submit_time.eq(diesel::dsl::now.into_sql::<Timestamptz>()),
            managers::create_time.eq(time.to_chrono()),
            managers::update_time.eq(time.to_chrono()),
            managers::mutes.eq(write(&draft.screen.mutes)?),
            managers::languages.eq(codes(&draft.screen.languages)),
            managers::max_scans_per_day.eq(number(draft.screen.max_scans_per_day)),
            managers::kinds.eq(kind_words(&draft.screen.kinds)),
            managers::duplicates.eq(draft.screen.duplicates.as_str()),
        ))
        .returning(ManagerRow::as_returning())
        .get_result(conn)
        .await?;
    if let Some(content) = content {
        content.check(conn).await?;
    }
    diesel::insert_into(scan_clocks::table)
        .values((
            scan_clocks::namespace_id.eq(namespace.to_uuid()),
            scan_clocks::manager_id.eq(id.to_uuid()),
            // Earlier than any Scan, because the database's clock dates Scans.
            scan_clocks::last_time.eq(Timestamp::UNIX_EPOCH.to_chrono()),
        ))
        .execute(conn)
        .await?;
    let name = ManagerName {
        namespace,
        manager: id,
    };
    insert_notices(conn, name, &draft.notices).await?;
    let read = row.read(draft.notices.clone())?;
    Ok(Manager {
        health: Some(Health::of(Vec::new())),
        ..read.manager
    })
}

fn codes(languages: &[Language]) -> Vec<&'static str> {
    languages.iter().map(|language| language.as_str()).collect()
}

fn kind_words(kinds: &Kinds) -> Vec<&'static str> {
    kinds.iter().map(|kind| kind.as_str()).collect()
}

fn number(max_scans_per_day: Option<u32>) -> Option<i32> {
    max_scans_per_day.map(|max| i32::try_from(max).unwrap_or(i32::MAX))
}

async fn insert_notices(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    notices: &[Notice],
) -> QueryResult<()> {
    let notices: Vec<_> = (0_i16..)
        .zip(notices)
        .map(|(position, notice)| {
            (
                manager_notices::namespace_id.eq(name.namespace.to_uuid()),
                manager_notices::manager_id.eq(name.manager.to_uuid()),
                manager_notices::position.eq(position),
                manager_notices::connection_id.eq(notice.connection.connection.to_uuid()),
                manager_notices::filter.eq(&notice.filter),
            )
        })
        .collect();
    diesel::insert_into(manager_notices::table)
        .values(notices)
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns a Manager. By primary key.
pub async fn get(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
) -> Result<Option<Manager>, Error> {
    let found = managers::table
        .find((name.namespace.to_uuid(), name.manager.to_uuid()))
        .select(ManagerRow::as_select())
        .first(conn)
        .await
        .optional()?;
    let Some(row) = found else { return Ok(None) };
    let mut notices = load_notices(conn, name.namespace, &[row.id]).await?;
    let notices = notices.remove(&row.id).unwrap_or_default();
    let managers = health::add_health(conn, name.namespace, vec![row.read(notices)?], &[]).await?;
    Ok(managers.into_iter().next())
}

/// Returns true if the Manager exists; by primary key.
pub async fn exists(conn: &mut AsyncPgConnection, name: ManagerName) -> QueryResult<bool> {
    diesel::select(diesel::dsl::exists(
        managers::table.find((name.namespace.to_uuid(), name.manager.to_uuid())),
    ))
    .get_result(conn)
    .await
}

async fn load_notices(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    managers: &[Uuid],
) -> QueryResult<HashMap<Uuid, Vec<Notice>>> {
    let rows: Vec<(Uuid, Uuid, Option<String>)> = manager_notices::table
        .filter(manager_notices::namespace_id.eq(namespace.to_uuid()))
        .filter(manager_notices::manager_id.eq_any(managers))
        .order((
            manager_notices::manager_id.asc(),
            manager_notices::position.asc(),
        ))
        .select((
            manager_notices::manager_id,
            manager_notices::connection_id,
            manager_notices::filter,
        ))
        .load(conn)
        .await?;
    let mut notices: HashMap<Uuid, Vec<Notice>> = HashMap::new();
    for (manager, connection, filter) in rows {
        let connection = ConnectionName {
            namespace,
            connection: Id::from_uuid(connection),
        };
        let notice = Notice {
            filter,
            ..connection.into()
        };
        notices.entry(manager).or_default().push(notice);
    }
    Ok(notices)
}

pub(crate) const LISTING: Listing = Listing {
    select: "SELECT namespace_id, id, nickname, enable, mode, source, state, input, \
             submitted_instructions, instructions, apply_time, apply_error_code, apply_error_message, \
             create_time, update_time, mutes, languages, max_scans_per_day, kinds, duplicates FROM managers WHERE namespace_id = $1",
    rows: "SELECT FROM managers WHERE namespace_id = $1",
    columns: &[
        column(
            "name",
            "('namespaces/' || ulid(namespace_id) || '/managers/' || ulid(id))",
        )
        .taking(60),
        column("createTime", "create_time"),
        column("updateTime", "update_time"),
        column("nickname", "nickname"),
        column("type", "'FEED_MANAGER'"),
        column("enable", "enable"),
        column("mode", "mode"),
        column("state", "state"),
        nullable("applyTime", "apply_time"),
        nullable("applyError.code", "apply_error_code"),
        nullable("applyError.message", "apply_error_message"),
        column("source.type", "source"),
        nullable("input.type", "(input ->> 'type')"),
        nullable("input.focus.type", "(input -> 'focus' ->> 'type')"),
        nullable(
            "input.sensitivity",
            // Inputs that were stored before the field existed are BALANCED.
            "(CASE WHEN input IS NOT NULL THEN coalesce(input ->> 'sensitivity', 'BALANCED') END)",
        ),
        // The instructions that clients see, as `ManagerRow::read` chooses them.
        nullable(
            "instructions.focus",
            "((CASE WHEN mode = 'MANUAL' AND state = 'PENDING_APPLY' THEN submitted_instructions ELSE instructions END) \
             ->> 'focus')",
        ),
        nullable(
            "instructions.threshold",
            "((CASE WHEN mode = 'MANUAL' AND state = 'PENDING_APPLY' THEN submitted_instructions ELSE instructions END) \
             ->> 'threshold')::float8",
        ),
        nullable(
            "instructions.brief",
            "((CASE WHEN mode = 'MANUAL' AND state = 'PENDING_APPLY' THEN submitted_instructions ELSE instructions END) \
             ->> 'brief')",
        ),
        nullable("maxScansPerDay", "max_scans_per_day::float8"),
    ],
    id: "id",
    is_indexed: no_other_index,
};

/// Lists the Managers of a Namespace. `managers_list_idx` serves the default order.
pub async fn list(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> Result<Page<Manager>, Error> {
    let Rows::<ManagerRow> { rows, more } = LISTING
        .page(&[namespace.to_uuid()], list)
        .read(conn, list)
        .await?;
    let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
    let mut notices = load_notices(conn, namespace, &ids).await?;
    let read = rows
        .into_iter()
        .map(|row| {
            let notices = notices.remove(&row.id).unwrap_or_default();
            row.read(notices)
        })
        .collect::<Result<_, Error>>()?;
    let managers = health::add_health(conn, namespace, read, &[])
        .await?
        .into_iter();
    let items = managers.map(|manager| (manager.name.manager, manager));
    Ok(Page::new(list, items.collect(), more))
}

/// Maximum cost of [`list`].
pub async fn cost(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> QueryResult<u64> {
    LISTING.cost(conn, &[namespace.to_uuid()], list, "").await
}
