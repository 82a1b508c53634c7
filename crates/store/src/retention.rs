//! How long things are kept: partitions are dropped, key tables purged in batches.
//!
//! One replica at a time has the turn ([`begin_turn`]) and asks for the steps, each a short statement or transaction by
//! itself: if a process dies in between, the next turn goes on from what it finds. Nothing here waits for
//! a lock for longer than a fifth of a second, since everybody else would wait behind it; what was not
//! had is tried again.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Bool, Timestamptz},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;

use crate::QueryResult;

mod keys;
mod partitions;
mod unfinished;

pub use keys::{Pages, purge_audit_events, purge_post_keys, purge_scan_keys, purge_scan_likes};
pub use partitions::{Dropped, Partition, drop_partition, kept_from, older_than};
pub use unfinished::{exhaust_expired, exhaust_without_scan};

/// The tables that are partitioned by week.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    Posts,
    Scans,
    Deliveries,
    DeliveryAttempts,
}

impl Table {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Posts => "posts",
            Self::Scans => "scans",
            Self::Deliveries => "deliveries",
            Self::DeliveryAttempts => "delivery_attempts",
        }
    }
}

const LOCK: &str = "hashtext('earshot.retention')";

/// Takes the turn, unless another replica has it. It belongs to this connection, and ends with it.
///
/// # Errors
/// When the database does not answer.
pub async fn begin_turn(conn: &mut AsyncPgConnection) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Had {
        #[diesel(sql_type = Bool)]
        had: bool,
    }
    let had: Had = sql_query(format!("SELECT pg_try_advisory_lock({LOCK}) AS had"))
        .get_result(conn)
        .await?;
    Ok(had.had)
}

/// # Errors
/// When the database does not answer; then the turn ends with the connection.
pub async fn end_turn(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    sql_query(format!("SELECT pg_advisory_unlock({LOCK})"))
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes replays that ended before `before`.
///
/// # Errors
/// When the database does not answer.
pub async fn purge_replays(conn: &mut AsyncPgConnection, before: Timestamp) -> QueryResult<usize> {
    sql_query("DELETE FROM replays WHERE state <> 'RUNNING' AND update_time < $1")
        .bind::<Timestamptz, _>(before.to_chrono())
        .execute(conn)
        .await
}
