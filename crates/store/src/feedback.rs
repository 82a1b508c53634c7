//! Feedback of customers on Scans, and the applied Managers that must be compiled again because of it.
//!
//! [`begin`] postpones a Manager's next turn. So a Manager whose pages fail, or that a compiler dies with, delays no
//! other. Storing the result checks whether it still fits. `manager_verdicts` counts verdicts since the last apply.

use std::time::Duration;

use diesel::{
    prelude::*,
    sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Instructions, ManagerName, Match, Timestamp, instructions::MAX_BRIEF_CHARS, manager::Origin,
};

use crate::{
    Error, QueryResult,
    managers::{self, Submission},
    plans,
    prepared::query,
    quotas::{ContentBytes, Limits},
    schema::scans,
    words,
    work::{
        Room,
        candidates::{self, CandidateRow},
        table,
    },
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
    pub verdicts: i32,
    /// Rest of a Manager after a recompilation that stored nothing. It doubles with each one in a row, up to
    /// [`Due::interval`].
    pub pause: Duration,
}

/// Returns applied AUTOMATIC Managers that are due, by the database's clock: of each account some, the longest applied
/// first. Served by `managers_recompile_idx` and `manager_verdicts_count_idx`.
pub async fn due(
    conn: &mut AsyncPgConnection,
    due: Due,
    room: &Room,
) -> QueryResult<Vec<table::Due<ManagerName>>> {
    let items = "WITH late AS ( \
             SELECT namespace_id, id FROM managers AS m \
             WHERE state = 'APPLIED' AND mode = 'AUTOMATIC' AND apply_time < clock_timestamp() - interval '1 second' * $1 \
               AND apply_time < clock_timestamp() - interval '1 second' * $1 \
                   * (1 + abs(hashtext(id::text) % 1000) / 10000.0) \
             UNION SELECT namespace_id, manager_id FROM manager_verdicts WHERE count >= $2 \
         ) SELECT n.account_id, m.namespace_id || ' ' || m.id AS key, m.apply_time AS time, false AS slow, false AS is_suspect \
         FROM late JOIN managers AS m USING (namespace_id, id) JOIN namespaces AS n ON n.id = m.namespace_id \
         WHERE m.state = 'APPLIED' AND m.mode = 'AUTOMATIC' AND m.enable \
           AND (m.recompile_after IS NULL OR m.recompile_after < clock_timestamp())";
    let rows: Vec<CandidateRow> = sql_query(candidates::by_account(items, room))
        .bind::<Double, _>(due.interval.as_secs_f64())
        .bind::<Integer, _>(due.verdicts)
        .load(conn)
        .await?;
    let rows = rows.into_iter().filter_map(|row| {
        let name = row.manager()?;
        Some(table::Due {
            key: name.to_string(),
            accounts: row.accounts(),
            item: name,
        })
    });
    Ok(rows.collect())
}

/// Begins a recompilation: returns what to compile, or `None` if the Manager is not due any more. From then on it
/// rests, until [`reapply`] ends the rest or it is over. By primary key.
///
/// # Errors
/// If a submission cannot be read.
pub async fn begin(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    due: Due,
) -> Result<Option<Submission>, Error> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        generation: i64,
        #[diesel(sql_type = Text)]
        source: String,
        #[diesel(sql_type = Nullable<Jsonb>)]
        input: Option<serde_json::Value>,
        #[diesel(sql_type = Array<Text>)]
        kinds: Vec<String>,
        #[diesel(sql_type = Timestamptz)]
        submit_time: chrono::DateTime<chrono::Utc>,
        #[diesel(sql_type = Text)]
        account: String,
    }
    let row: Option<Row> = query!(
        "feedback/begin",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.manager.to_uuid(),
        Double: due.pause.as_secs_f64(),
        Double: due.interval.as_secs_f64(),
    )
    .get_result(conn)
    .await
    .optional()?;
    let Some(row) = row else {
        return Ok(None);
    };
    let Some(input) = &row.input else {
        return Ok(None);
    };
    Ok(Some(Submission {
        manager: name,
        account: row.account,
        generation: row.generation,
        source: words::parse(&row.source)?,
        origin: Origin::Input(serde::Deserialize::deserialize(input).map_err(Error::Json)?),
        kinds: domain::screen::Kinds::stored(&row.kinds),
        submit_time: row.submit_time.into(),
    }))
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
    let applied: Option<Enabled> = query!(
        "feedback/reapply",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.manager.to_uuid(),
        BigInt: generation,
        Jsonb: stored,
        Timestamptz: now.to_chrono(),
    )
    .get_result(conn)
    .await
    .optional()?;
    let Some(Enabled { enable }) = applied else {
        return Ok(None);
    };
    content.check(conn).await?;
    managers::forget_verdicts(conn, name).await?;
    let watched = if enable { &*instructions.feeds } else { &[] };
    let version = plans::record_change(conn, name, watched, defaults, now).await?;
    Ok(Some(version))
}

/// Adds to the brief of a Manager's active instructions why they are not compiled again. The next compilation writes a
/// new brief.
pub async fn record_setback(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    reason: &str,
) -> QueryResult<()> {
    const NOT_AGAIN: &str = " They were not compiled again: ";
    let note = format!("{NOT_AGAIN}{}.", words::text(reason));
    let room = MAX_BRIEF_CHARS.saturating_sub(note.chars().count());
    query!(
        "feedback/record_setback",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.manager.to_uuid(),
        Text: NOT_AGAIN,
        Integer: i32::try_from(room).unwrap_or(i32::MAX),
        Text: note,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The customer's latest feedback, newest first. Served by the primary key of `scans`.
pub async fn verdicts(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
    limit: i64,
) -> Result<Vec<Verdict>, Error> {
    let rows: Vec<(bool, serde_json::Value)> = scans::table
        .filter(scans::namespace_id.eq(name.namespace.to_uuid()))
        .filter(scans::manager_id.eq(name.manager.to_uuid()))
        .filter(scans::update_time.gt(scans::create_time))
        .order((scans::create_time.desc(), scans::id.desc()))
        .limit(limit)
        .select((scans::value, scans::matched))
        .load(conn)
        .await?;
    let verdict = |(value, matched)| {
        let matched = serde_json::from_value(matched).map_err(Error::Json)?;
        Ok(Verdict { value, matched })
    };
    rows.into_iter().map(verdict).collect()
}
