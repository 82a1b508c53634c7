//! What the compiler does to Managers: finds those that wait for it, reads their submissions, and ends them as
//! applied or as failed.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_query,
    sql_types::{BigInt, Double, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Id, Instructions, ManagerName, Timestamp,
    manager::{ApplyError, Input, ManagerState, Origin, SourceType},
    screen::Kinds,
};
use uuid::Uuid;

use super::{read, write};
use crate::{Error, QueryResult, backfills, plans, schema::managers, words};

/// What is compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub manager: ManagerName,
    pub generation: i64,
    pub source: SourceType,
    pub origin: Origin,
    pub kinds: Kinds,
    pub submit_time: Timestamp,
}

/// The Manager's present submission, while it waits for the compiler.
///
/// # Errors
/// When the database does not answer.
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
        // Held off by `managers_mode_input_check`.
        (None, None) => return Ok(None),
    };
    Ok(Some(Submission {
        manager: name,
        generation,
        source: words::parse(&source)?,
        origin,
        kinds: Kinds::stored(&kinds),
        submit_time: submit_time.into(),
    }))
}

/// A Manager that waits for the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub manager: ManagerName,
    pub submit_time: Timestamp,
}

/// Managers that have waited for the compiler longer than `older_than`, by the database's clock: their
/// events may have been lost. The longest waiting first, and from `after` on if given, so that those
/// which cannot be compiled stand in nobody's way. Served by `managers_pending_idx`.
///
/// # Errors
/// When the database does not answer.
pub async fn pending(
    conn: &mut AsyncPgConnection,
    older_than: Duration,
    after: Option<Pending>,
    limit: i64,
) -> QueryResult<Vec<Pending>> {
    #[derive(QueryableByName)]
    struct Waiting {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        submit_time: DateTime<Utc>,
    }
    let (after_time, after_id) = after
        .map(|last| (last.submit_time.to_chrono(), last.manager.manager.to_uuid()))
        .unwrap_or((DateTime::UNIX_EPOCH, Uuid::nil()));
    let rows: Vec<Waiting> = sql_query(
        "SELECT namespace_id, id, submit_time FROM managers \
         WHERE state = 'PENDING_APPLY' AND submit_time < clock_timestamp() - $1 * interval '1 second' \
           AND (submit_time, id) > ($2, $3) \
         ORDER BY submit_time, id LIMIT $4",
    )
    .bind::<Double, _>(older_than.as_secs_f64())
    .bind::<Timestamptz, _>(after_time)
    .bind::<SqlUuid, _>(after_id)
    .bind::<BigInt, _>(limit)
    .load(conn)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Pending {
            manager: ManagerName {
                namespace: Id::from_uuid(row.namespace_id),
                manager: Id::from_uuid(row.id),
            },
            submit_time: row.submit_time.into(),
        })
        .collect())
}

/// How many Managers there are in a state, and the longest that one waits there for its compilation.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct Standing {
    #[diesel(sql_type = Text)]
    pub state: String,
    #[diesel(sql_type = BigInt)]
    pub count: i64,
    #[diesel(sql_type = Double)]
    pub oldest_seconds: f64,
}

/// By state. Reads all Managers, for now and then.
///
/// # Errors
/// When the database does not answer.
pub async fn standings(conn: &mut AsyncPgConnection) -> QueryResult<Vec<Standing>> {
    sql_query(
        "SELECT state, count(*) AS count, \
             extract(epoch FROM greatest(clock_timestamp() - min(submit_time), interval '0'))::float8 \
                 AS oldest_seconds \
         FROM managers GROUP BY state",
    )
    .load(conn)
    .await
}

/// Puts compiled instructions to work, if `generation` is still the Manager's. Returns the new plan
/// version, or `None` for a stale result, which is dropped. A Manager's first are run over the last posts
/// of its feeds, too.
///
/// # Errors
/// When the database does not answer.
pub async fn apply(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    generation: i64,
    instructions: &Instructions,
    now: Timestamp,
) -> Result<Option<i64>, Error> {
    let applied: Option<Option<DateTime<Utc>>> = pending_generation(name, generation)
        .select(managers::apply_time)
        .for_no_key_update()
        .get_result(conn)
        .await
        .optional()?;
    let Some(applied) = applied else {
        return Ok(None);
    };
    let enabled: Option<bool> = diesel::update(pending_generation(name, generation))
        .set((
            managers::state.eq(ManagerState::Applied.as_str()),
            managers::instructions.eq(write(instructions)?),
            managers::apply_time.eq(now.to_chrono()),
            managers::apply_error_code.eq(None::<String>),
            managers::apply_error_message.eq(None::<String>),
            managers::update_time.eq(now.to_chrono()),
        ))
        .returning(managers::enable)
        .get_result(conn)
        .await
        .optional()?;
    let Some(enabled) = enabled else {
        return Ok(None);
    };
    let watched: &[FeedName] = if enabled { &instructions.feeds } else { &[] };
    let version = plans::record_change(conn, name, watched, now).await?;
    if applied.is_none() {
        backfills::request_first(conn, name).await?;
    }
    Ok(Some(version))
}

/// Records why the Manager could not be compiled; instructions at work stay at work. Whether it was
/// still the Manager's generation.
///
/// # Errors
/// When the database does not answer.
pub async fn fail(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    generation: i64,
    error: &ApplyError,
    now: Timestamp,
) -> QueryResult<bool> {
    let changed = diesel::update(pending_generation(name, generation))
        .set((
            managers::state.eq(ManagerState::ApplyFailed.as_str()),
            managers::apply_error_code.eq(error.code.as_str()),
            managers::apply_error_message.eq(words::text(&error.message)),
            managers::update_time.eq(now.to_chrono()),
        ))
        .execute(conn)
        .await?;
    Ok(changed > 0)
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
