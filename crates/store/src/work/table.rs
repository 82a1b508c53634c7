//! Leases of kinds of work whose rows have no columns for them. A row of `leases` exists while an item is in hand or
//! set aside.
//!
//! A kind lists the items that are due, each with a key that names it within its kind. [`lease`] chooses among them.
//! A lease is no lock: a replica that lost its heartbeat may still work on the item. So what an item stores must be
//! protected by its own rows, as before.

use std::{collections::HashMap, time::Duration};

use diesel::{
    prelude::*,
    sql_types::{Array, Bool, Double, SmallInt, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;
use uuid::Uuid;

use super::{Candidate, Claim, Claimed, Leased, SUSPECT, count};
use crate::{QueryResult, prepared::query, schema::leases, words};

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
    let keys: Vec<&str> = due.iter().map(|one| one.key.as_str()).collect();
    let states: Vec<State> = query!(
        "leases/states",
        Text: kind,
        Array<Text>: keys,
        SqlUuid: claim.replica,
        Bool: claim.take_over,
    )
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
    let taken: Vec<Taken> = query!(
        "leases/take",
        Text: kind,
        Array<Text>: keys,
        SqlUuid: claim.replica,
        Bool: claim.take_over,
    )
    .load(conn)
    .await?;
    let taken: HashMap<String, i16> = { taken.into_iter() }
        .map(|one| (one.key, one.crash_count))
        .collect();
    let accounts: HashMap<String, Id> = chosen.into_iter().collect();
    let items: Vec<Leased<T>> = { due.into_iter() }
        .filter_map(|one| {
            let crash_count = *taken.get(&one.key)?;
            Some(Leased {
                account: *accounts.get(&one.key)?,
                crashes: count(crash_count),
                is_suspect: i32::from(crash_count) >= SUSPECT,
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
    diesel::delete(leases::table)
        .filter(leases::kind.eq(kind))
        .filter(leases::key.eq_any(keys.iter().copied()))
        .filter(leases::leased_by.eq(replica))
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
    query!(
        "leases/set_aside",
        Text: kind,
        Text: key,
        SqlUuid: replica,
        Text: words::text(reason),
        Double: retry_in.as_secs_f64(),
    )
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
    query!(
        "leases/count_crash",
        Text: kind,
        Text: key,
        SqlUuid: replica,
        Double: retry_in.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes rows of items that have not been due for a month: they are gone. Returns their number.
pub async fn purge(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!("leases/purge").execute(conn).await
}
