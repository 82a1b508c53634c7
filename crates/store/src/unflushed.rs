//! Transactions whose commit does not wait for the disk.
//!
//! For work that is found and done again when it is lost: what a Scan becomes, and who sends it. Such a commit is on
//! disk some moments later, or at once with the next one that waits. Were PostgreSQL to die before, it comes up
//! without the last of them, at most three times `wal_writer_delay` (0.6 s) of work: then the sweeps find those
//! Scans and deliveries as they were, and what was already sent is sent again, as if a dispatcher had died. What
//! was answered is always written before the answer counts; docs/adr/0024.

use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// A source of one row for a `FROM`, which makes the transaction of its statement one of these. Not to be dropped by
/// the planner, which keeps what has effects.
macro_rules! unflushed {
    () => {
        "(SELECT set_config('synchronous_commit', 'off', true) OFFSET 0) AS unflushed"
    };
}
pub(crate) use unflushed;

/// The same for the transaction that is open, at the cost of a round trip.
///
/// # Errors
/// When the database does not answer.
pub(crate) async fn do_not_flush(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    diesel::sql_query(concat!("SELECT FROM ", unflushed!()))
        .execute(conn)
        .await?;
    Ok(())
}
