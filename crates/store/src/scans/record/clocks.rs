//! Clocks of Managers: they make createTimes ascend in the order of the commits, and count a day's Scans.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, NaiveDate, Utc};
use diesel::{
    QueryableByName,
    sql_types::{
        Array, BigInt, Bool, Date, Double, Integer, Nullable, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, ManagerName};
use uuid::Uuid;

use super::{NewScan, accounts::Account};
use crate::{
    QueryResult,
    prepared::query,
    scans::{
        likes::Key,
        quota::{Quota, State},
    },
};

/// Locked clocks of Managers.
pub(super) struct Clocks {
    /// Daily limit of each Manager that has a clock; `None` if it has no limit.
    pub(super) quotas: HashMap<ManagerName, Option<Quota>>,
    /// The Managers that collapse duplicates.
    pub(super) collapsing: BTreeSet<ManagerName>,
    pub(super) accounts: HashMap<ManagerName, Account>,
}

/// Locks the existing clocks of these Managers. All limits are read here, so that a changed limit applies at once.
pub(super) async fn lock_clocks(
    conn: &mut AsyncPgConnection,
    fresh: &BTreeSet<Key>,
) -> QueryResult<Clocks> {
    #[derive(QueryableByName)]
    struct Locked {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        now: DateTime<Utc>,
        #[diesel(sql_type = Nullable<Integer>)]
        max_scans_per_day: Option<i32>,
        #[diesel(sql_type = Nullable<Date>)]
        quota_day: Option<NaiveDate>,
        #[diesel(sql_type = Integer)]
        quota_made: i32,
        #[diesel(sql_type = Integer)]
        quota_suppressed: i32,
        #[diesel(sql_type = Nullable<Double>)]
        quota_lowest: Option<f64>,
        #[diesel(sql_type = Nullable<Double>)]
        quota_highest: Option<f64>,
        #[diesel(sql_type = Bool)]
        collapses: bool,
        #[diesel(sql_type = Nullable<SqlUuid>)]
        account_id: Option<Uuid>,
        #[diesel(sql_type = Nullable<Integer>)]
        quota_scans_per_day: Option<i32>,
        #[diesel(sql_type = BigInt)]
        account_scans: i64,
    }
    let managers: BTreeSet<ManagerName> = fresh.iter().map(|(manager, _)| *manager).collect();
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        managers.iter().map(|name| id(name).to_uuid()).collect()
    };
    let rows: Vec<Locked> = query!(
        "scans/lock_clocks",
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
    )
    .load(conn)
    .await?;
    let count = |count: i32| u32::try_from(count).unwrap_or_default();
    let mut collapsing = BTreeSet::new();
    let mut accounts = HashMap::new();
    let quotas = rows
        .into_iter()
        .map(|row| {
            let name = ManagerName {
                namespace: Id::from_uuid(row.namespace_id),
                manager: Id::from_uuid(row.manager_id),
            };
            if row.collapses {
                collapsing.insert(name);
            }
            if let Some(account) = row.account_id {
                let account = Account {
                    id: Id::from_uuid(account),
                    quota: row.quota_scans_per_day.map(count),
                    scans: row.account_scans,
                };
                accounts.insert(name, account);
            }
            let stored = row.quota_day.map(|day| State {
                day,
                made: count(row.quota_made),
                suppressed: count(row.quota_suppressed),
                range: row.quota_lowest.zip(row.quota_highest),
            });
            let max = row.max_scans_per_day.map(count);
            (name, max.map(|max| Quota::new(max, row.now, stored)))
        })
        .collect();
    Ok(Clocks {
        quotas,
        collapsing,
        accounts,
    })
}

/// Advances the locked clock of each Manager by one microsecond per Scan, and stores the state of its day. Returns
/// the first new time of each. Uses the database's clock after the lock, so that later commits have later times.
pub(super) async fn advance_clocks(
    conn: &mut AsyncPgConnection,
    scans: &[(Key, &NewScan<'_>)],
    locked: &HashMap<ManagerName, Option<Quota>>,
) -> QueryResult<HashMap<ManagerName, DateTime<Utc>>> {
    #[derive(QueryableByName)]
    struct Clock {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        first_time: DateTime<Utc>,
    }
    let mut counts: BTreeMap<ManagerName, i32> = BTreeMap::new();
    for (_, one) in scans {
        *counts.entry(one.manager).or_default() += 1;
    }
    for (manager, _) in locked.iter().filter(|(_, quota)| quota.is_some()) {
        counts.entry(*manager).or_default();
    }
    let states: Vec<Option<&State>> = counts
        .keys()
        .map(|name| Some(&locked.get(name)?.as_ref()?.state))
        .collect();
    let number = |number: fn(&State) -> u32| -> Vec<Option<i32>> {
        let numbers = states.iter().map(|state| state.map(number));
        numbers
            .map(|n| n.map(|n| i32::try_from(n).unwrap_or(i32::MAX)))
            .collect()
    };
    let score = |score: fn((f64, f64)) -> f64| -> Vec<Option<f64>> {
        let ranges = states
            .iter()
            .map(|state| state.and_then(|state| state.range));
        ranges.map(|range| range.map(score)).collect()
    };
    let days: Vec<_> = states
        .iter()
        .map(|state| state.map(|state| state.day))
        .collect();
    let namespaces: Vec<Uuid> = counts.keys().map(|name| name.namespace.to_uuid()).collect();
    let managers: Vec<Uuid> = counts.keys().map(|name| name.manager.to_uuid()).collect();
    // The clock of a Manager whose Scans are all held back keeps its time.
    let clocks: Vec<Clock> = query!(
        "scans/advance_clocks",
        Array<SqlUuid>: &namespaces,
        Array<SqlUuid>: &managers,
        Array<Integer>: counts.values().copied().collect::<Vec<_>>(),
        Array<Nullable<Date>>: days,
        Array<Nullable<Integer>>: number(|state| state.made),
        Array<Nullable<Integer>>: number(|state| state.suppressed),
        Array<Nullable<Double>>: score(|(low, _)| low),
        Array<Nullable<Double>>: score(|(_, high)| high),
    )
    .load(conn)
    .await?;
    Ok(clocks
        .into_iter()
        .map(|clock| {
            let name = ManagerName {
                namespace: Id::from_uuid(clock.namespace_id),
                manager: Id::from_uuid(clock.manager_id),
            };
            (name, clock.first_time)
        })
        .collect())
}

/// Records on the locked clocks since when posts were refused.
pub(super) async fn record_refused(
    conn: &mut AsyncPgConnection,
    since: &BTreeMap<ManagerName, DateTime<Utc>>,
) -> QueryResult<()> {
    if since.is_empty() {
        return Ok(());
    }
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        since.keys().map(|name| id(name).to_uuid()).collect()
    };
    query!(
        "scans/record_refused",
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
        Array<Timestamptz>: since.values().copied().collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
