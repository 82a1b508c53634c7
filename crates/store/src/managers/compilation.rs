//! Statements of the compiler: find waiting Managers, read their submissions, and record them as applied or failed.

use chrono::{DateTime, Utc};
use diesel::{
    dsl::sql,
    prelude::*,
    sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Id, Instructions, ManagerName, ServiceEventType, Timestamp,
    manager::{ApplyError, Input, ManagerState, Mode, Origin, SourceType},
    screen::Kinds,
    service_event::Details,
};
use uuid::Uuid;

use super::{read, verdicts::forget_verdicts, write};
use crate::{
    Error, QueryResult, backfills, namespaces, plans,
    prepared::query,
    quotas::{ContentBytes, Limits},
    schema::managers,
    service_events, words,
    work::{
        self, Claim, Claimed, Leased, MAX_OF_FAILING,
        candidates::{self, CandidateRow},
    },
};

/// Input of a compilation.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub manager: ManagerName,
    /// Name of its account.
    pub account: String,
    pub generation: i64,
    pub source: SourceType,
    pub origin: Origin,
    pub kinds: Kinds,
    pub submit_time: Timestamp,
}

/// Returns the Manager's current submission if it waits for the compiler.
pub async fn submission(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
) -> Result<Option<Submission>, Error> {
    let found = managers::table
        .find((name.namespace.to_uuid(), name.manager.to_uuid()))
        .filter(managers::state.eq(ManagerState::PendingApply.as_str()))
        .select((
            managers::generation,
            managers::source,
            managers::input,
            managers::submitted_instructions,
            managers::kinds,
            managers::submit_time,
        ))
        .first::<(
            i64,
            String,
            Option<serde_json::Value>,
            Option<serde_json::Value>,
            Vec<String>,
            DateTime<Utc>,
        )>(conn)
        .await
        .optional()?;
    let Some((generation, source, input, instructions, kinds, submit_time)) = found else {
        return Ok(None);
    };
    let origin = match (&input, &instructions) {
        (Some(input), _) => Origin::Input(read::<Input>(input)?),
        (None, Some(instructions)) => Origin::Instructions(read::<Instructions>(instructions)?),
        // `managers_mode_input_check` prevents this.
        (None, None) => return Ok(None),
    };
    let account = namespaces::account_name(conn, name.namespace).await?;
    Ok(Some(Submission {
        manager: name,
        account: account.unwrap_or_default(),
        generation,
        source: words::parse(&source)?,
        origin,
        kinds: Kinds::stored(&kinds),
        submit_time: submit_time.into(),
    }))
}

/// Generation of a Manager that one compiler has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub manager: ManagerName,
    pub generation: i64,
}

/// Claims Managers of one `mode` that wait for the compiler, up to the capacity of the claim's room; of one account,
/// the Manager that has waited longest.
///
/// A claim is for one generation. A process that compiles without a claim, as earlier releases did, does no harm: a
/// result is stored only once. Costs a step of `managers_waiting_idx` for each Namespace with such Managers, and some
/// more for the first of them.
pub async fn claim(
    conn: &mut AsyncPgConnection,
    mode: Mode,
    claim: &mut Claim<'_>,
) -> QueryResult<Claimed<Generation>> {
    let free = format!(
        "m.state = 'PENDING_APPLY' AND (m.compiled_generation <> m.generation OR {}) \
         AND m.id::text || ':' || m.generation <> ALL ($3)",
        work::is_free("m.compiled_by", "$1", "$2")
    );
    // The same input in a new generation may end processes like before.
    let suspect = work::remembered("m.", "m.compiled_by", "$1", MAX_OF_FAILING).is_suspect;
    let room = &*claim.room;
    let waiting = "state = 'PENDING_APPLY' AND mode = $4";
    let namespaces = candidates::namespaces(
        "managers",
        "submit_time",
        waiting,
        "WHERE true",
        "first",
        room,
    );
    let item = "m.namespace_id || ' ' || m.id AS key, m.submit_time AS time, false AS slow";
    // A comparison of rows keeps the planner from `managers_pending_idx`, through which it would read past those of other
    // Namespaces. Suspects are few.
    let items = format!(
        "SELECT n.account_id, m.*, false AS is_suspect FROM ({namespaces}) AS n CROSS JOIN LATERAL ( \
             SELECT {item} FROM managers AS m WHERE {waiting} AND {} AND m.namespace_id <= n.namespace_id \
               AND (m.namespace_id, m.submit_time) >= (n.namespace_id, '-infinity') \
             ORDER BY m.namespace_id, m.submit_time LIMIT {}) AS m \
         UNION ALL SELECT n.account_id, {item}, true \
         FROM managers AS m JOIN namespaces AS n ON n.id = m.namespace_id \
         WHERE {waiting} AND m.crash_count > 0 AND {free} AND {suspect}",
        candidates::often(&format!("{free} AND NOT {suspect}")),
        room.free(false)
    );
    let rows: Vec<CandidateRow> = sql_query(candidates::by_account(&items, room))
        .bind::<SqlUuid, _>(claim.replica)
        .bind::<Bool, _>(claim.take_over)
        .bind::<Array<Text>, _>(claim.known)
        .bind::<Text, _>(match mode {
            Mode::Automatic => "AUTOMATIC",
            Mode::Manual => "MANUAL",
        })
        .load(conn)
        .await?;
    let candidates = rows.into_iter().filter_map(|row| {
        let name = row.manager()?;
        Some(row.with_key(name))
    });
    let chosen = claim.room.choose(candidates.collect(), claim.turns);
    if chosen.is_empty() {
        return Ok(Claimed::default());
    }

    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = BigInt)]
        generation: i64,
        #[diesel(sql_type = Text)]
        key: String,
        #[diesel(sql_type = SmallInt)]
        crash_count: i16,
        #[diesel(sql_type = Bool)]
        is_suspect: bool,
    }
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        chosen.iter().map(|(name, _)| id(name).to_uuid()).collect()
    };
    let taken: Vec<Taken> = query!(
        "managers/claim",
        SqlUuid: claim.replica,
        Bool: claim.take_over,
        Array<Text>: claim.known,
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
    )
    .load(conn)
    .await?;
    let wanted = chosen.len();
    let items: Vec<Leased<Generation>> = chosen
        .into_iter()
        .filter_map(|(manager, account)| {
            let id = manager.manager.to_uuid();
            let taken = taken.iter().find(|taken| taken.id == id)?;
            Some(Leased {
                key: taken.key.clone(),
                account,
                is_slow: false,
                crashes: work::count(taken.crash_count),
                is_suspect: taken.is_suspect,
                item: Generation {
                    manager,
                    generation: taken.generation,
                },
            })
        })
        .collect();
    Ok(Claimed {
        is_contended: items.len() < wanted,
        items,
        next_due: None,
    })
}

/// Number of Managers in a state, and the longest time that one of them has waited for its compilation; 0 if none waits.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct StateCount {
    #[diesel(sql_type = Text)]
    pub state: String,
    #[diesel(sql_type = BigInt)]
    pub count: i64,
    #[diesel(sql_type = Double)]
    pub oldest_seconds: f64,
}

/// Counts Managers by state. In a table with more than `most` rows, those that are applied are estimated from the
/// planner's statistics, as counting them reads all. Served by `managers_pending_idx` and `managers_failed_idx`.
pub async fn count_by_state(
    conn: &mut AsyncPgConnection,
    most: i64,
) -> QueryResult<Vec<StateCount>> {
    query!(
        "managers/count_by_state",
        BigInt: most,
    )
    .load(conn)
    .await
}

/// Applies compiled instructions if `generation` is still the Manager's. Returns the new plan version, or `None`
/// for a stale result, which is dropped. A Manager's first instructions also get a backfill of its feeds' last
/// posts. Call first in a transaction: an exceeded quota is an error.
pub async fn apply(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    generation: i64,
    instructions: &Instructions,
    defaults: &Limits,
    now: Timestamp,
) -> Result<Option<i64>, Error> {
    let Some(content) = ContentBytes::before_in(conn, name.namespace, defaults).await? else {
        return Ok(None);
    };
    let applied: Option<Option<DateTime<Utc>>> = pending_generation(name, generation)
        .select(managers::apply_time)
        .for_no_key_update()
        .get_result(conn)
        .await
        .optional()?;
    let Some(applied) = applied else {
        return Ok(None);
    };
    let updated: Option<(bool, String)> = diesel::update(pending_generation(name, generation))
        .set((
            managers::state.eq(ManagerState::Applied.as_str()),
            managers::instructions.eq(write(instructions)?),
            managers::apply_time.eq(now.to_chrono()),
            managers::apply_error_code.eq(None::<String>),
            managers::apply_error_message.eq(None::<String>),
            managers::update_time.eq(now.to_chrono()),
            managers::compiled_by.eq(None::<Uuid>),
            managers::clear_time.eq(sql::<Nullable<Timestamptz>>(work::CLEARED)),
        ))
        .returning((managers::enable, managers::nickname))
        .get_result(conn)
        .await
        .optional()?;
    let Some((enabled, nickname)) = updated else {
        return Ok(None);
    };
    content.check(conn).await?;
    forget_verdicts(conn, name).await?;
    let watched: &[FeedName] = if enabled { &instructions.feeds } else { &[] };
    plans::watch(conn, name, watched, defaults).await?;
    if applied.is_none() {
        backfills::request_first(conn, name).await?;
    }
    let details = Details {
        nickname: Some(nickname),
        ..Details::default()
    };
    record_event(conn, name, ServiceEventType::ManagerApplied, &details).await?;
    plans::log(conn, name, now)
        .await
        .map(Some)
        .map_err(Error::from)
}

/// Records why the Manager could not be compiled. Instructions in use stay in use. Returns true if it was still the
/// Manager's generation.
pub async fn fail(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    generation: i64,
    error: &ApplyError,
    now: Timestamp,
) -> QueryResult<bool> {
    conn.transaction(async |conn| {
        let nickname: Option<String> = diesel::update(pending_generation(name, generation))
            .set((
                managers::state.eq(ManagerState::ApplyFailed.as_str()),
                managers::apply_error_code.eq(error.code.as_str()),
                managers::apply_error_message.eq(words::text(&error.message)),
                managers::update_time.eq(now.to_chrono()),
                managers::compiled_by.eq(None::<Uuid>),
                managers::clear_time.eq(sql::<Nullable<Timestamptz>>(work::CLEARED)),
            ))
            .returning(managers::nickname)
            .get_result(conn)
            .await
            .optional()?;
        let Some(nickname) = nickname else {
            return Ok(false);
        };
        let details = Details {
            nickname: Some(nickname),
            error: Some(error.clone()),
            ..Details::default()
        };
        record_event(conn, name, ServiceEventType::ManagerApplyFailed, &details).await?;
        Ok(true)
    })
    .await
}

async fn record_event(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    event_type: ServiceEventType,
    details: &Details,
) -> QueryResult<()> {
    service_events::record(conn, name.namespace, event_type, &name.to_string(), details).await
}

#[diesel::dsl::auto_type(no_type_alias)]
fn pending_generation(name: ManagerName, generation: i64) -> _ {
    let (namespace, manager): (Uuid, Uuid) = (name.namespace.to_uuid(), name.manager.to_uuid());
    managers::table
        .filter(managers::namespace_id.eq(namespace))
        .filter(managers::id.eq(manager))
        .filter(managers::generation.eq(generation))
        .filter(managers::state.eq("PENDING_APPLY"))
}
