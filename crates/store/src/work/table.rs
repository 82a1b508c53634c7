//! Leases of kinds of work whose rows have no columns for them. A row of `leases` exists while an item is in hand or
//! set aside.
//!
//! A kind lists the items that are due, each with a key that names it within its kind. [`lease`] chooses among them.
//! A lease is no lock: a replica that lost its heartbeat may still work on the item. So what an item stores must be
//! protected by its own rows, as before.

use std::{collections::HashMap, time::Duration};

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Double, SmallInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;
use uuid::Uuid;

use super::{Candidate, Claim, Claimed, Leased, RESTED, SUSPECT, count, crashes, is_free};
use crate::{QueryResult, words};

/// An item that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due<T> {
    pub key: String,
    /// The accounts that it may count for.
    pub accounts: Vec<Id>,
    pub item: T,
}

/// Leases some of the items, which must be in the order in which an account's items are worked on. By primary key.
pub async fn lease<T>(
    conn: &mut AsyncPgConnection,
    kind: &str,
    mut due: Vec<Due<T>>,
    claim: &mut Claim<'_>,
) -> QueryResult<Claimed<T>> {
    #[derive(QueryableByName)]
    struct State {
        #[diesel(sql_type = Text)]
        key: String,
        #[diesel(sql_type = Bool)]
        is_free: bool,
        #[diesel(sql_type = Bool)]
        is_suspect: bool,
    }
    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = Text)]
        key: String,
        #[diesel(sql_type = SmallInt)]
        crash_count: i16,
    }
    due.retain(|one| !claim.known.contains(&one.key));
    if due.is_empty() {
        return Ok(Claimed::default());
    }
    let free = format!(
        "(l.leased_by IS NOT NULL OR l.next_time <= clock_timestamp()) AND {}",
        is_free("l.leased_by", "$3", "$4")
    );
    let crashes = crashes("l.crash_count", "l.leased_by", "$3");
    let keys: Vec<&str> = due.iter().map(|one| one.key.as_str()).collect();
    let states: Vec<State> = sql_query(format!(
        "SELECT key, {free} AS is_free, {crashes} >= {SUSPECT} AS is_suspect FROM leases AS l \
         WHERE kind = $1 AND key = ANY ($2)"
    ))
    .bind::<Text, _>(kind)
    .bind::<Array<Text>, _>(keys)
    .bind::<SqlUuid, _>(claim.replica)
    .bind::<Bool, _>(claim.take_over)
    .load(conn)
    .await?;
    let states: HashMap<&str, &State> = states.iter().map(|one| (one.key.as_str(), one)).collect();
    let candidates = { due.iter() }.filter_map(|one| {
        let state = states.get(one.key.as_str());
        state.is_none_or(|state| state.is_free).then(|| Candidate {
            key: one.key.clone(),
            slow: false,
            is_suspect: state.is_some_and(|state| state.is_suspect),
            accounts: one.accounts.clone(),
        })
    });
    let chosen = claim.room.choose(candidates.collect(), claim.turns);
    if chosen.is_empty() {
        return Ok(Claimed::default());
    }
    // Sorted, as two replicas may insert the same keys.
    let mut keys: Vec<&str> = chosen.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    let taken: Vec<Taken> = sql_query(format!(
        "INSERT INTO leases AS l (kind, key, leased_by) SELECT $1, given.key, $3 FROM unnest($2) AS given (key) \
         ON CONFLICT (kind, key) DO UPDATE SET leased_by = $3, crash_count = {crashes} WHERE {free} \
         RETURNING key, crash_count"
    ))
    .bind::<Text, _>(kind)
    .bind::<Array<Text>, _>(keys)
    .bind::<SqlUuid, _>(claim.replica)
    .bind::<Bool, _>(claim.take_over)
    .load(conn)
    .await?;
    let taken: HashMap<String, i16> = { taken.into_iter() }
        .map(|one| (one.key, one.crash_count))
        .collect();
    let accounts: HashMap<String, Id> = chosen.into_iter().collect();
    let items: Vec<Leased<T>> = { due.into_iter() }
        .filter_map(|one| {
            Some(Leased {
                account: *accounts.get(&one.key)?,
                crashes: count(*taken.get(&one.key)?),
                is_slow: false,
                key: one.key,
                item: one.item,
            })
        })
        .collect();
    Ok(Claimed {
        is_contended: items.len() < accounts.len(),
        items,
        next_due: None,
    })
}

/// Ends leases whose items are done. By primary key.
pub async fn release(
    conn: &mut AsyncPgConnection,
    kind: &str,
    keys: &[&str],
    replica: Uuid,
) -> QueryResult<()> {
    sql_query("DELETE FROM leases WHERE kind = $1 AND key = ANY ($2) AND leased_by = $3")
        .bind::<Text, _>(kind)
        .bind::<Array<Text>, _>(keys)
        .bind::<SqlUuid, _>(replica)
        .execute(conn)
        .await?;
    Ok(())
}

/// Ends a lease whose item is set aside for a while. By primary key.
pub async fn set_aside(
    conn: &mut AsyncPgConnection,
    kind: &str,
    key: &str,
    replica: Uuid,
    reason: &str,
    retry_in: Duration,
) -> QueryResult<()> {
    sql_query(format!(
        "UPDATE leases SET leased_by = NULL, crash_count = {RESTED}, error = $4, \
             next_time = clock_timestamp() + $5 * interval '1 second' \
         WHERE kind = $1 AND key = $2 AND leased_by = $3",
    ))
    .bind::<Text, _>(kind)
    .bind::<Text, _>(key)
    .bind::<SqlUuid, _>(replica)
    .bind::<Text, _>(words::text(reason))
    .bind::<Double, _>(retry_in.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a lease whose item panicked, which counts like a crash. By primary key.
pub async fn count_crash(
    conn: &mut AsyncPgConnection,
    kind: &str,
    key: &str,
    replica: Uuid,
    retry_in: Duration,
) -> QueryResult<()> {
    sql_query(
        "UPDATE leases SET leased_by = NULL, crash_count = crash_count + 1, \
             next_time = clock_timestamp() + $4 * interval '1 second' \
         WHERE kind = $1 AND key = $2 AND leased_by = $3",
    )
    .bind::<Text, _>(kind)
    .bind::<Text, _>(key)
    .bind::<SqlUuid, _>(replica)
    .bind::<Double, _>(retry_in.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes rows of items that have not been due for a month: they are gone. Returns their number.
pub async fn purge(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    sql_query(format!(
        "DELETE FROM leases WHERE next_time < clock_timestamp() - interval '30 days' \
         AND (leased_by IS NULL OR NOT leased_by {})",
        crate::replicas::ALIVE
    ))
    .execute(conn)
    .await
}
