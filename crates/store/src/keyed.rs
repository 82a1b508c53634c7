//! Transactions whose statements find each row by its key, and are planned once.
//!
//! PostgreSQL plans a prepared statement again at each execution while it expects a generic plan to cost more than
//! planning. For arrays, whose length it does not know in advance, it always does. Fanning out one Scan took 0.1 ms
//! to run and 1 to 3 ms to plan, more with more partitions. A plan for an empty table reads all of it, which lasts
//! in a new week until the new partition is first analysed. Here a connection plans each statement once, and looks
//! rows up by index.
//!
//! Do not use this for statements that read a range, an order or up to a limit: their plans should know the values.

use diesel_async::{
    AnsiTransactionManager, AsyncPgConnection, SimpleAsyncConnection, TransactionManager,
};

use crate::{QueryError, QueryResult};

/// One round trip. Joins of parameters with tables must not read whole tables. And a step on a table with a row or
/// two, which has no index, must not trigger JIT compilation.
const BEGIN: &str = "BEGIN; SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = off; \
    SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off";

/// Begins such a transaction; [`end`] ends it. A connection that is dropped in between is closed.
///
/// # Errors
/// If the database does not answer, or a transaction is open.
pub async fn begin(conn: &mut AsyncPgConnection) -> QueryResult<()> {
    begin_with(conn, BEGIN).await
}

/// Begins a transaction with several statements, the first of which is `BEGIN`. If a later statement fails, diesel
/// does not know that a transaction is open. So it is rolled back here; otherwise the connection would refuse all
/// further statements.
pub(crate) async fn begin_with(conn: &mut AsyncPgConnection, sql: &str) -> QueryResult<()> {
    let begun = AnsiTransactionManager::begin_transaction_sql(conn, sql).await;
    let is_unknown = !matches!(begun, Ok(()) | Err(QueryError::AlreadyInTransaction));
    if is_unknown && conn.batch_execute("ROLLBACK").await.is_err() {
        AnsiTransactionManager::transaction_manager_status_mut(conn).set_in_error();
    }
    begun
}

/// Commits the transaction of [`begin`], or rolls it back if `result` is an error.
///
/// # Errors
/// The error of `result`, or if the database does not answer.
pub async fn end<T, E: From<QueryError>>(
    conn: &mut AsyncPgConnection,
    result: Result<T, E>,
) -> Result<T, E> {
    let Err(error) = result else {
        AnsiTransactionManager::commit_transaction(conn).await?;
        return result;
    };
    match AnsiTransactionManager::rollback_transaction(conn).await {
        // The first error names the cause.
        Ok(()) | Err(QueryError::BrokenTransactionManager) => Err(error),
        Err(error) => Err(error.into()),
    }
}
