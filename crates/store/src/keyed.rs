//! Transactions whose statements find each row by its key, and are planned once.
//!
//! PostgreSQL plans a prepared statement again at each execution while it expects a generic plan to cost more than
//! planning. Of arrays, whose length it knows only then, it always does: fanning out one Scan took 0.1 ms to run and
//! 1 to 3 to plan, more the more partitions there are. And a plan of an empty table reads all of it, in a new week until
//! the new partition is first analysed. Here a connection plans each statement once, and looks rows up by index.
//!
//! Not for statements that read by range, in an order or up to a limit: their plans should know the values.

use diesel_async::{AnsiTransactionManager, AsyncPgConnection, TransactionManager};

use crate::{QueryError, QueryResult};

/// One round trip. Joins of what was given to tables must not read these whole; and a step that has no index, of a
/// table with a row or two, must not be thought worth compiling.
const BEGIN: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; \
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off";

/// Begins one; [`end`] ends it. A connection that is dropped in between is closed.
///
/// # Errors
/// When the database does not answer, or a transaction is open.
pub async fn begin(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    AnsiTransactionManager::begin_transaction_sql(conn, BEGIN).await
}

/// Commits what [`begin`] began, or takes it back where `result` is an error.
///
/// # Errors
/// `result`'s own, and when the database does not answer.
pub async fn end<T, E: From<QueryError>>(
    conn: &mut AsyncPgConnection,
    result: Result<T, E>,
) -> Result<T, E> {
    let Err(error) = result else {
        AnsiTransactionManager::commit_transaction(conn).await?;
        return result;
    };
    match AnsiTransactionManager::rollback_transaction(conn).await {
        // The first error tells why.
        Ok(()) | Err(QueryError::BrokenTransactionManager) => Err(error),
        Err(error) => Err(error.into()),
    }
}
