//! The quota of Scans a day, which is an account's.
//!
//! A day's counter is locked after the clocks, in the order of the accounts, and held to the end of the transaction: of
//! two scanners that want the last Scan, one gets it.

use std::collections::{BTreeMap, HashMap};

use chrono::NaiveDate;
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Date, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;
use uuid::Uuid;

use crate::{QueryResult, prepared::Prepared};

/// Scans that the transaction may still make, by account.
#[derive(Default)]
pub(super) struct Room {
    accounts: HashMap<Id, Taken>,
}

struct Taken {
    day: NaiveDate,
    left: i64,
    /// Number of Scans that were counted and not made yet.
    unused: i64,
}

impl Room {
    /// Counts as many Scans as each account wants at most; `wanted` has that number and the quota.
    pub(super) async fn take(
        conn: &mut AsyncPgConnection,
        wanted: &BTreeMap<Id, (i64, u32)>,
    ) -> QueryResult<Self> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = SqlUuid)]
            account_id: Uuid,
            #[diesel(sql_type = Date)]
            day: NaiveDate,
            #[diesel(sql_type = BigInt)]
            scans: i64,
        }
        if wanted.is_empty() {
            return Ok(Self::default());
        }
        let rows: Vec<Row> = Prepared(
            sql_query(
                "INSERT INTO account_days AS d (account_id, day, scans) \
                 SELECT account_id, (clock_timestamp() AT TIME ZONE 'UTC')::date, scans \
                 FROM unnest($1, $2) AS given (account_id, scans) ORDER BY account_id \
                 ON CONFLICT (account_id, day) DO UPDATE SET scans = d.scans + excluded.scans \
                 RETURNING account_id, day, scans",
            )
            .bind::<Array<SqlUuid>, _>(wanted.keys().map(|id| id.to_uuid()).collect::<Vec<_>>())
            .bind::<Array<BigInt>, _>(wanted.values().map(|(n, _)| *n).collect::<Vec<_>>()),
        )
        .load(conn)
        .await?;
        let taken = rows.into_iter().filter_map(|row| {
            let account = Id::from_uuid(row.account_id);
            let (wanted, quota) = *wanted.get(&account)?;
            let before = row.scans - wanted;
            let taken = Taken {
                day: row.day,
                left: (i64::from(quota) - before).max(0),
                unused: wanted,
            };
            Some((account, taken))
        });
        Ok(Self {
            accounts: taken.collect(),
        })
    }

    /// Returns true if the account may have one more Scan. An account that is not known was deleted.
    pub(super) fn is_left(&self, account: Option<Id>) -> bool {
        let taken = account.and_then(|account| self.accounts.get(&account));
        taken.is_none_or(|taken| taken.left > 0)
    }

    pub(super) fn spend(&mut self, account: Option<Id>) {
        let taken = account.and_then(|account| self.accounts.get_mut(&account));
        if let Some(taken) = taken {
            taken.left -= 1;
            taken.unused -= 1;
        }
    }

    /// Takes back from the counters what was not spent.
    pub(super) async fn give_back(self, conn: &mut AsyncPgConnection) -> QueryResult<()> {
        let mut unused: Vec<(Id, Taken)> = self.accounts.into_iter().collect();
        unused.retain(|(_, taken)| taken.unused != 0);
        if unused.is_empty() {
            return Ok(());
        }
        let ids: Vec<Uuid> = unused.iter().map(|(id, _)| id.to_uuid()).collect();
        let days: Vec<NaiveDate> = unused.iter().map(|(_, taken)| taken.day).collect();
        let scans: Vec<i64> = unused.iter().map(|(_, taken)| taken.unused).collect();
        Prepared(
            sql_query(
                "UPDATE account_days AS d SET scans = d.scans - given.scans \
                 FROM unnest($1, $2, $3) AS given (account_id, day, scans) \
                 WHERE d.account_id = given.account_id AND d.day = given.day",
            )
            .bind::<Array<SqlUuid>, _>(ids)
            .bind::<Array<Date>, _>(days)
            .bind::<Array<BigInt>, _>(scans),
        )
        .execute(conn)
        .await?;
        Ok(())
    }
}
