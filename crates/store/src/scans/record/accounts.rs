//! The daily quota of Scans of an account.
//!
//! A transaction decides by the counter's value when the clocks were read, without a lock on it, and adds its Scans
//! in its last statement. If that exceeds a quota, because another transaction added to the counter meanwhile, the
//! transaction fails and is repeated. So no quota is ever exceeded, and transactions of one account wait for each
//! other only while they commit. The counters are locked in the order of the accounts, and nothing is locked after
//! them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, ManagerName};
use uuid::Uuid;

use crate::{Error, prepared::query, refused_posts::Written};

/// Scans of one transaction that are not yet in their accounts' counters.
///
/// Pass it to each [`super::record_from`] of the transaction. After a rollback to a savepoint, continue with a
/// clone from before the savepoint. Call [`ScanCounter::store`] as the last statement before the commit.
#[derive(Debug, Clone)]
#[must_use = "Scans that are not stored in the counters exceed the quota"]
pub struct ScanCounter {
    /// Quota of accounts without an override.
    default_quota: u32,
    uncounted: BTreeMap<Id, Uncounted>,
    /// Namespaces whose matches are refused in any case.
    refused: Arc<HashSet<Id>>,
    /// Accounts whose matches are refused in any case.
    refused_accounts: HashSet<Id>,
    /// Posts of refused matches that the transaction stores.
    pub refused_posts: Written,
}

#[derive(Debug, Clone, Copy)]
struct Uncounted {
    scans: i64,
    quota: u32,
}

impl ScanCounter {
    pub fn new(default_quota: u32) -> Self {
        Self {
            default_quota,
            uncounted: BTreeMap::new(),
            refused: Arc::default(),
            refused_accounts: HashSet::new(),
            refused_posts: Written::default(),
        }
    }

    /// Refuses all matches of these Namespaces: their accounts had no Scans left, so that the matches have no
    /// explanation. If there are Scans left again, a backfill makes them.
    pub fn refusing(mut self, namespaces: Arc<HashSet<Id>>) -> Self {
        self.refused = namespaces;
        self
    }

    /// Refuses all matches of these accounts, as if they had no Scans left.
    pub fn refusing_accounts(mut self, accounts: HashSet<Id>) -> Self {
        self.refused_accounts = accounts;
        self
    }

    /// Adds the Scans to the counters of today (UTC). The counters stay locked to the end of the transaction.
    ///
    /// # Errors
    /// [`Error::QuotaRace`] with the accounts whose quota that exceeds: roll back, and repeat the transaction. It then
    /// decides by the new counter. Each failure means that another transaction made Scans, so repeating ends when the
    /// quota is used up. Other errors if the database does not answer.
    pub async fn store(self, conn: &mut AsyncPgConnection) -> Result<(), Error> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = SqlUuid)]
            account_id: Uuid,
            #[diesel(sql_type = BigInt)]
            scans: i64,
        }
        let uncounted = self.uncounted;
        if uncounted.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = uncounted.keys().map(|id| id.to_uuid()).collect();
        let scans: Vec<i64> = uncounted.values().map(|account| account.scans).collect();
        let rows: Vec<Row> = query!(
            "scans/count_by_account",
            Array<SqlUuid>: ids,
            Array<BigInt>: scans,
        )
        .load(conn)
        .await?;
        let exceeds = |row: &&Row| {
            let account = uncounted.get(&Id::from_uuid(row.account_id));
            account.is_some_and(|account| row.scans > i64::from(account.quota))
        };
        let racing = rows.iter().filter(exceeds);
        let racing: Vec<Id> = racing.map(|row| Id::from_uuid(row.account_id)).collect();
        if racing.is_empty() {
            Ok(())
        } else {
            Err(Error::QuotaRace(racing))
        }
    }
}

/// Account of a Manager.
#[derive(Debug, Clone, Copy)]
pub(super) struct Account {
    pub(super) id: Id,
    /// Quota that was set for the account.
    pub(super) quota: Option<u32>,
    /// Scans of today that other transactions counted.
    pub(super) scans: i64,
}

/// Scans that each account may still have today.
pub(super) struct Capacity<'a> {
    counter: &'a mut ScanCounter,
    accounts: HashMap<ManagerName, Account>,
}

impl<'a> Capacity<'a> {
    pub(super) fn new(
        counter: &'a mut ScanCounter,
        accounts: HashMap<ManagerName, Account>,
    ) -> Self {
        Self { counter, accounts }
    }

    /// Returns true if the Manager's account may have one more Scan. An unknown account was deleted.
    pub(super) fn is_left(&self, manager: &ManagerName) -> bool {
        if self.counter.refused.contains(&manager.namespace) {
            return false;
        }
        self.accounts.get(manager).is_none_or(|account| {
            if self.counter.refused_accounts.contains(&account.id) {
                return false;
            }
            let own = self.counter.uncounted.get(&account.id);
            let own = own.map_or(0, |own| own.scans);
            account.scans + own < i64::from(self.quota(account))
        })
    }

    /// Counts one Scan of the Manager.
    pub(super) fn spend(&mut self, manager: &ManagerName) {
        let Some(account) = self.accounts.get(manager) else {
            return;
        };
        let quota = self.quota(account);
        let uncounted =
            { self.counter.uncounted.entry(account.id) }.or_insert(Uncounted { scans: 0, quota });
        uncounted.scans += 1;
        uncounted.quota = quota;
    }

    fn quota(&self, account: &Account) -> u32 {
        account.quota.unwrap_or(self.counter.default_quota)
    }
}
