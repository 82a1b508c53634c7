//! Retention: partitions are dropped, and key tables purged in batches.
//!
//! One replica at a time has the turn ([`begin_turn`]) and runs the steps. Each step is a short, separate
//! statement or transaction. If a process dies in between, the next turn continues from what it finds. No step waits
//! longer than a fifth of a second for a lock, because everyone else would wait behind it; a step that got no lock
//! is tried again.

use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Bool, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;

use crate::{QueryResult, prepared::query, replicas};

mod keys;
mod partitions;
mod unfinished;

pub use keys::{Purge, Unpartitioned};
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
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Posts => "posts",
            Self::Scans => "scans",
            Self::Deliveries => "deliveries",
            Self::DeliveryAttempts => "delivery_attempts",
        }
    }
}

/// A difference between clocks is reported if it is at least so large.
const MAX_SKEW: Duration = Duration::from_hours(1);

/// Deliveries are dropped by whole weeks.
const WEEK: Duration = Duration::from_hours(7 * 24);

const LOCK: &str = "earshot.retention";

/// Takes the turn, unless another replica has it. The turn belongs to this connection, and ends with it.
pub async fn begin_turn(conn: &mut AsyncPgConnection) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Had {
        #[diesel(sql_type = Bool)]
        had: bool,
    }
    let had: Had = query!(
        "retention/begin_turn",
        Text: LOCK,
    )
    .get_result(conn)
    .await?;
    Ok(had.had)
}

/// Returns the earlier of the database's clock and `own`, this process's clock. Removed data cannot be restored, so
/// a single wrong clock must not make anything count as old.
pub async fn earlier_now(conn: &mut AsyncPgConnection, own: Timestamp) -> QueryResult<Timestamp> {
    let database = replicas::clock(conn).await?;
    let difference = database.since(own).max(own.since(database));
    if difference > MAX_SKEW {
        tracing::warn!(
            ?difference,
            "the clocks of the database and of this machine differ: nothing is removed before both agree that it is old"
        );
    }
    Ok(database.min(own))
}

/// Ends the turn.
///
/// # Errors
/// If the database does not answer; then the turn ends with the connection.
pub async fn end_turn(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    query!(
        "retention/end_turn",
        Text: LOCK,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Removes replays that ended before `before`.
pub async fn purge_replays(conn: &mut AsyncPgConnection, before: Timestamp) -> QueryResult<usize> {
    query!(
        "retention/purge_replays",
        Timestamptz: before.to_chrono(),
    )
    .execute(conn)
    .await
}

/// Deletes up to `limit` Scans of digests whose deliveries from before `before` are dropped, and as many that have waited
/// since then for a Connection that is disabled or gone. Returns their number. Served by `digest_scans_delivery_idx` and
/// `digest_scans_gathered_idx`.
pub async fn purge_digests(
    conn: &mut AsyncPgConnection,
    before: Timestamp,
    limit: i64,
) -> QueryResult<usize> {
    // A delivery that is sent again needs its Scans.
    let first = keys::first_id_of(before.minus(WEEK).to_chrono());
    query!(
        "retention/purge_digests",
        SqlUuid: first,
        Timestamptz: before.to_chrono(),
        BigInt: limit,
    )
    .execute(conn)
    .await
}
