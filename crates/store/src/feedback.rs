//! Feedback of customers on Scans, and the applied Managers that must be compiled again because of it.
//!
//! Claiming a Manager postpones its next turn. So one compiler at a time works on it, and a compiler that dies
//! costs only that pause. Storing the result checks whether it still fits.

use std::time::Duration;

use diesel::{
    OptionalExtension, QueryableByName, sql_query,
    sql_types::{BigInt, Bool, Double, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, Instructions, ManagerName, Match, Timestamp, manager::Origin};
use uuid::Uuid;

use crate::{
    Error,
    managers::Submission,
    plans,
    quotas::{ContentBytes, Limits},
    words,
};

/// Feedback of a customer on one match.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// True if it was worth attention.
    pub value: bool,
    pub matched: Match,
}

/// When an applied Manager is due.
#[derive(Debug, Clone, Copy)]
pub struct Due {
    /// Time after an apply, plus up to a tenth, which differs by the Manager's id.
    pub interval: Duration,
    /// Number of verdicts since then that make it due earlier.
    pub verdicts: i64,
    /// Maximum age of Scans whose verdicts count.
    pub memory: Duration,
    /// Time that a claimed Manager belongs to its claimer, and rests if the claimer fails.
    pub pause: Duration,
}

#[derive(QueryableByName)]
struct Claimed {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = BigInt)]
    generation: i64,
    #[diesel(sql_type = Text)]
    source: String,
    #[diesel(sql_type = Nullable<Jsonb>)]
    input: Option<serde_json::Value>,
    #[diesel(sql_type = diesel::sql_types::Array<diesel::sql_types::Text>)]
    kinds: Vec<String>,
    #[diesel(sql_type = Timestamptz)]
    submit_time: chrono::DateTime<chrono::Utc>,
}

/// Claims applied AUTOMATIC Managers that are due, the longest applied first, by the database's clock. Served by
/// `managers_recompile_idx` and `scans_judged_idx`.
///
/// # Errors
/// If the database does not answer, or a submission cannot be read.
pub async fn claim_due(
    conn: &mut AsyncPgConnection,
    due: Due,
    limit: i64,
) -> Result<Vec<Submission>, Error> {
    let rows: Vec<Claimed> = sql_query(
        "WITH judged AS MATERIALIZED ( \
             SELECT s.namespace_id, s.manager_id FROM scans s \
             JOIN managers m ON m.namespace_id = s.namespace_id AND m.id = s.manager_id \
             WHERE s.update_time > s.create_time AND s.update_time > m.apply_time \
               AND s.update_time > clock_timestamp() - $3 * interval '1 second' \
             GROUP BY s.namespace_id, s.manager_id HAVING count(*) >= $2 \
         ), due AS ( \
             SELECT m.namespace_id, m.id FROM managers m \
             WHERE m.state = 'APPLIED' AND m.mode = 'AUTOMATIC' AND m.enable \
               AND (m.recompile_after IS NULL OR m.recompile_after < clock_timestamp()) \
               AND (m.apply_time < clock_timestamp() - interval '1 second' * $1 \
                        * (1 + abs(hashtext(m.id::text) % 1000) / 10000.0) \
                    OR (m.namespace_id, m.id) IN (SELECT namespace_id, manager_id FROM judged)) \
             ORDER BY m.apply_time LIMIT $5 FOR NO KEY UPDATE SKIP LOCKED \
         ) \
         UPDATE managers m SET recompile_after = clock_timestamp() + $4 * interval '1 second' \
         FROM due WHERE m.namespace_id = due.namespace_id AND m.id = due.id \
         RETURNING m.namespace_id, m.id, m.generation, m.source, m.input, m.kinds, m.submit_time",
    )
    .bind::<Double, _>(due.interval.as_secs_f64())
    .bind::<BigInt, _>(due.verdicts)
    .bind::<Double, _>(due.memory.as_secs_f64())
    .bind::<Double, _>(due.pause.as_secs_f64())
    .bind::<BigInt, _>(limit)
    .load(conn)
    .await?;
    let submission = |row: Claimed| {
        let Some(input) = &row.input else {
            return Ok(None);
        };
        Ok(Some(Submission {
            manager: ManagerName {
                namespace: Id::from_uuid(row.namespace_id),
                manager: Id::from_uuid(row.id),
            },
            generation: row.generation,
            source: words::parse(&row.source)?,
            origin: Origin::Input(serde::Deserialize::deserialize(input).map_err(Error::Json)?),
            kinds: domain::screen::Kinds::stored(&row.kinds),
            submit_time: row.submit_time.into(),
        }))
    };
    rows.into_iter()
        .filter_map(|row| submission(row).transpose())
        .collect()
}

/// Applies newly compiled instructions of an applied Manager, unless it was changed meanwhile. Returns the new plan
/// version, or `None` for a stale result, which is dropped. Call first in a transaction: an exceeded quota is an error.
pub async fn reapply(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    generation: i64,
    instructions: &Instructions,
    defaults: &Limits,
    now: Timestamp,
) -> Result<Option<i64>, Error> {
    #[derive(QueryableByName)]
    struct Enabled {
        #[diesel(sql_type = Bool)]
        enable: bool,
    }
    let Some(content) = ContentBytes::before_in(conn, name.namespace, defaults).await? else {
        return Ok(None);
    };
    let stored = words::json(serde_json::to_value(instructions).map_err(Error::Json)?);
    let applied: Option<Enabled> = sql_query(
        "UPDATE managers SET instructions = $4, apply_time = $5, recompile_after = NULL \
         WHERE namespace_id = $1 AND id = $2 AND generation = $3 AND state = 'APPLIED' \
         RETURNING enable",
    )
    .bind::<SqlUuid, _>(name.namespace.to_uuid())
    .bind::<SqlUuid, _>(name.manager.to_uuid())
    .bind::<BigInt, _>(generation)
    .bind::<Jsonb, _>(stored)
    .bind::<Timestamptz, _>(now.to_chrono())
    .get_result(conn)
    .await
    .optional()?;
    let Some(Enabled { enable }) = applied else {
        return Ok(None);
    };
    content.check(conn).await?;
    let watched = if enable { &*instructions.feeds } else { &[] };
    let version = plans::record_change(conn, name, watched, defaults, now).await?;
    Ok(Some(version))
}

/// The customer's latest feedback, newest first. Served by the primary key of `scans`.
pub async fn verdicts(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    limit: i64,
) -> Result<Vec<Verdict>, Error> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Bool)]
        value: bool,
        #[diesel(sql_type = Jsonb)]
        matched: serde_json::Value,
    }
    let rows: Vec<Row> = sql_query(
        "SELECT value, matched FROM scans \
         WHERE namespace_id = $1 AND manager_id = $2 AND update_time > create_time \
         ORDER BY create_time DESC, id DESC LIMIT $3",
    )
    .bind::<SqlUuid, _>(name.namespace.to_uuid())
    .bind::<SqlUuid, _>(name.manager.to_uuid())
    .bind::<BigInt, _>(limit)
    .load(conn)
    .await?;
    let verdict = |row: Row| {
        let matched = serde_json::from_value(row.matched).map_err(Error::Json)?;
        Ok(Verdict {
            value: row.value,
            matched,
        })
    };
    rows.into_iter().map(verdict).collect()
}
