//! Statements of the compiler: find waiting Managers, read their submissions, and record them as applied or failed.

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_query,
    sql_types::{Array, BigInt, Bool, Double, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Id, Instructions, ManagerName, Timestamp,
    manager::{ApplyError, Input, ManagerState, Mode, Origin, SourceType},
    screen::Kinds,
};
use uuid::Uuid;

use super::{read, write};
use crate::{
    Error, QueryResult, backfills,
    fair::{Places, Turns},
    plans,
    quotas::{ContentBytes, Limits},
    replicas,
    schema::managers,
    words,
};

/// Input of a compilation.
#[derive(Debug, Clone, PartialEq)]
pub struct Submission {
    pub manager: ManagerName,
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
    Ok(Some(Submission {
        manager: name,
        generation,
        source: words::parse(&source)?,
        origin,
        kinds: Kinds::stored(&kinds),
        submit_time: submit_time.into(),
    }))
}

/// A Manager that one compiler has claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    pub manager: ManagerName,
    pub generation: i64,
    /// The account that it counts for.
    pub account: Id,
}

/// Result of [`claim`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    pub claims: Vec<Claim>,
    /// True if other replicas claimed some of the chosen Managers first: another look finds others.
    pub is_contended: bool,
}

/// Maximum number of Managers that one call chooses from. The longest waiting Manager of each account is considered
/// before any account's second.
const MAX_WAITING: i64 = 1_000;

/// Claims at most `places` Managers of one `mode` that wait for the compiler.
///
/// Accounts with the fewest compilations in progress come first, then those that were served the longest ago; of
/// one account, the Manager that has waited longest. Managers in `known` are left out.
///
/// A claim is for one generation, and lasts as long as the replica knows of it. Replicas that may `take_over` also
/// claim those of a replica whose heartbeat has ended. A process that compiles without a claim, as earlier releases
/// did, does no harm: a result is stored only once. Served by `managers_pending_idx`.
pub async fn claim(
    conn: &mut AsyncPgConnection,
    mode: Mode,
    replica: Uuid,
    known: &[Claim],
    take_over: bool,
    places: &mut Places,
    turns: &mut Turns,
) -> QueryResult<Claimed> {
    #[derive(QueryableByName)]
    struct Waiting {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = BigInt)]
        generation: i64,
        #[diesel(sql_type = SqlUuid)]
        account_id: Uuid,
    }
    let alive = replicas::ALIVE;
    let free = format!(
        "m.state = 'PENDING_APPLY' AND (m.compiled_by IS NULL OR m.compiled_generation <> m.generation \
             OR m.compiled_by = $1 OR $2 AND NOT m.compiled_by {alive}) \
         AND (m.id, m.generation) NOT IN (SELECT * FROM unnest($3, $4))"
    );
    let known_ids: Vec<Uuid> = { known.iter() }
        .map(|one| one.manager.manager.to_uuid())
        .collect();
    let known_generations: Vec<i64> = known.iter().map(|one| one.generation).collect();
    let refused: Vec<Uuid> = places.refused().map(|account| account.to_uuid()).collect();
    let limit = i64::try_from(places.free()).unwrap_or(i64::MAX);
    let mut waiting: Vec<Waiting> = sql_query(format!(
        "WITH waiting AS ( \
             SELECT m.namespace_id, m.id, m.generation, n.account_id, m.submit_time, row_number() OVER ( \
                 PARTITION BY n.account_id ORDER BY m.submit_time, m.id) AS rank \
             FROM managers AS m JOIN namespaces AS n ON n.id = m.namespace_id \
             WHERE {free} AND m.mode = $5 AND n.account_id <> ALL ($6) \
         ) SELECT namespace_id, id, generation, account_id FROM waiting \
         WHERE rank <= $7 ORDER BY rank, submit_time, id LIMIT $8"
    ))
    .bind::<SqlUuid, _>(replica)
    .bind::<Bool, _>(take_over)
    .bind::<Array<SqlUuid>, _>(&known_ids)
    .bind::<Array<BigInt>, _>(&known_generations)
    .bind::<Text, _>(match mode {
        Mode::Automatic => "AUTOMATIC",
        Mode::Manual => "MANUAL",
    })
    .bind::<Array<SqlUuid>, _>(refused)
    .bind::<BigInt, _>(limit)
    .bind::<BigInt, _>(MAX_WAITING)
    .load(conn)
    .await?;

    let mut chosen = Vec::new();
    let next = |waiting: &[Waiting], places: &Places, turns: &Turns| {
        let order = |at: usize, one: &Waiting| {
            let account = Id::from_uuid(one.account_id);
            { places.admits(account) }.then(|| (places.held_by(account), turns.of(account), at))
        };
        let all = waiting.iter().enumerate();
        all.filter_map(|(at, one)| order(at, one)).min()
    };
    while let Some((_, _, at)) = next(&waiting, places, turns) {
        let one = waiting.remove(at);
        let account = Id::from_uuid(one.account_id);
        places.take(account);
        turns.serve(account);
        chosen.push(Claim {
            manager: ManagerName {
                namespace: Id::from_uuid(one.namespace_id),
                manager: Id::from_uuid(one.id),
            },
            generation: one.generation,
            account,
        });
    }
    if chosen.is_empty() {
        return Ok(Claimed::default());
    }

    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = BigInt)]
        generation: i64,
    }
    let namespaces: Vec<Uuid> = { chosen.iter() }
        .map(|one| one.manager.namespace.to_uuid())
        .collect();
    let ids: Vec<Uuid> = { chosen.iter() }
        .map(|one| one.manager.manager.to_uuid())
        .collect();
    let taken: Vec<Taken> = sql_query(format!(
        "WITH due AS ( \
             SELECT m.namespace_id, m.id FROM managers AS m \
             WHERE (m.namespace_id, m.id) IN (SELECT * FROM unnest($5, $6)) AND {free} \
             FOR NO KEY UPDATE SKIP LOCKED \
         ) UPDATE managers AS m SET compiled_by = $1, compiled_generation = m.generation \
         FROM due WHERE m.namespace_id = due.namespace_id AND m.id = due.id RETURNING m.id, m.generation"
    ))
    .bind::<SqlUuid, _>(replica)
    .bind::<Bool, _>(take_over)
    .bind::<Array<SqlUuid>, _>(&known_ids)
    .bind::<Array<BigInt>, _>(&known_generations)
    .bind::<Array<SqlUuid>, _>(namespaces)
    .bind::<Array<SqlUuid>, _>(ids)
    .load(conn)
    .await?;
    let wanted = chosen.len();
    let claims: Vec<Claim> = chosen
        .into_iter()
        .filter_map(|claim| {
            let id = claim.manager.manager.to_uuid();
            let taken = taken.iter().find(|taken| taken.id == id)?;
            Some(Claim {
                generation: taken.generation,
                ..claim
            })
        })
        .collect();
    Ok(Claimed {
        is_contended: claims.len() < wanted,
        claims,
    })
}

/// Number of Managers in a state, and the longest time that one of them has waited for its compilation.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct Standing {
    #[diesel(sql_type = Text)]
    pub state: String,
    #[diesel(sql_type = BigInt)]
    pub count: i64,
    #[diesel(sql_type = Double)]
    pub oldest_seconds: f64,
}

/// Counts Managers by state. It reads all Managers, so call it rarely.
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
    content.check(conn).await?;
    let watched: &[FeedName] = if enabled { &instructions.feeds } else { &[] };
    plans::watch(conn, name, watched, defaults).await?;
    if applied.is_none() {
        backfills::request_first(conn, name).await?;
    }
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
