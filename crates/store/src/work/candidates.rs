//! SQL that finds the items to choose from, fairly by account, without reading all that are due.
//!
//! One account may have a hundred thousand items due. So a kind walks over the Namespaces with items
//! ([`namespaces`]), takes the first few of each, and ranks them by account ([`by_account`]).

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Text, Uuid as SqlUuid},
};
use domain::{Id, ManagerName};
use uuid::Uuid;

use super::{Candidate, MAX_CANDIDATES, Room};

/// A row of [`by_account`].
#[derive(Debug, QueryableByName)]
pub(crate) struct CandidateRow {
    #[diesel(sql_type = Text)]
    pub(crate) key: String,
    #[diesel(sql_type = Bool)]
    slow: bool,
    #[diesel(sql_type = Bool)]
    is_suspect: bool,
    #[diesel(sql_type = Array<SqlUuid>)]
    accounts: Vec<Uuid>,
}

impl CandidateRow {
    pub(crate) fn accounts(&self) -> Vec<Id> {
        self.accounts.iter().copied().map(Id::from_uuid).collect()
    }

    /// Reads the key `namespace_id || ' ' || id` of a Manager.
    pub(crate) fn manager(&self) -> Option<ManagerName> {
        let (namespace, manager) = self.key.split_once(' ')?;
        Some(ManagerName {
            namespace: Id::from_uuid(namespace.parse().ok()?),
            manager: Id::from_uuid(manager.parse().ok()?),
        })
    }

    pub(crate) fn with_key<K>(self, key: K) -> Candidate<K> {
        Candidate {
            key,
            slow: self.slow,
            is_suspect: self.is_suspect,
            accounts: self.accounts(),
        }
    }
}

/// Selects each value of `group` as `key`, with its first `order` as `first`. Costs one step of an index for each
/// value, regardless of its number of rows. The index must begin with `group` and `order`, after columns that
/// `condition` compares for equality.
pub(crate) fn first_of_each(group: &str, order: &str, table: &str, condition: &str) -> String {
    let next = |after: &str| {
        format!(
            "SELECT {group} AS key, {order} AS first FROM {table} WHERE {condition}{after} ORDER BY {group}, {order} LIMIT 1"
        )
    };
    walk(&next(""), &next(&format!(" AND {group} > one.key")))
}

/// Selects `key` and `first` of the row that `first` selects, and of each row that `next` selects after the row `one`.
pub(crate) fn walk(first: &str, next: &str) -> String {
    format!(
        "WITH RECURSIVE one AS (({first}) UNION ALL SELECT next.* FROM one CROSS JOIN LATERAL ({next}) AS next) \
         SELECT key, first FROM one"
    )
}

/// Selects `namespace_id` and `account_id` of Namespaces with rows in `table` that meet `condition`, up to
/// [`MAX_CANDIDATES`]: one Namespace of each account before any second, ordered by `by`, such as their `first` `order`.
/// `accounts` continues `FROM namespaces AS n`, up to a `WHERE` condition. Costs what [`first_of_each`] does.
pub(crate) fn namespaces(
    table: &str,
    order: &str,
    condition: &str,
    accounts: &str,
    by: &str,
    room: &Room,
) -> String {
    format!(
        "SELECT namespace_id, account_id FROM ( \
             SELECT n.id AS namespace_id, n.account_id, {by} AS place, \
                 row_number() OVER (PARTITION BY n.account_id ORDER BY {by}, n.id) AS rank \
             FROM ({}) AS one JOIN namespaces AS n ON n.id = one.key {accounts} AND n.account_id <> ALL ({}) \
         ) AS waiting ORDER BY rank, place LIMIT {MAX_CANDIDATES}",
        first_of_each("namespace_id", order, table, condition),
        refused(room, false)
    )
}

/// Selects candidates: of each account the longest due, up to the capacity of `room`. `items` selects `key`, `time`,
/// `slow`, `is_suspect` and `account_id`. A row of `items` is an item and one of its accounts.
pub(crate) fn by_account(items: &str, room: &Room) -> String {
    format!(
        "WITH ranked AS ( \
             SELECT *, row_number() OVER (PARTITION BY account_id, slow, is_suspect ORDER BY time, key) AS rank \
             FROM ({items}) AS items WHERE account_id <> ALL (CASE WHEN slow THEN {} ELSE {} END) \
         ) SELECT key, slow, is_suspect, array_agg(account_id) AS accounts FROM ranked \
         WHERE rank <= CASE WHEN is_suspect THEN {} WHEN slow THEN {} ELSE {} END \
         GROUP BY key, slow, is_suspect, time ORDER BY min(rank), time, key LIMIT {MAX_CANDIDATES}",
        refused(room, true),
        refused(room, false),
        room.suspects(),
        room.free(true),
        room.free(false)
    )
}

/// Wraps a condition on rows that are read in the order of an index up to a limit. The planner takes it for rarely
/// true, and would rather read all rows and sort them.
pub(crate) fn often(condition: &str) -> String {
    format!("CASE WHEN {condition} THEN true ELSE false END")
}

/// Array of the accounts that may not start another item.
pub(crate) fn refused(room: &Room, slow: bool) -> String {
    let refused: Vec<String> = room.refused(slow).iter().map(Uuid::to_string).collect();
    format!("'{{{}}}'::uuid[]", refused.join(","))
}
