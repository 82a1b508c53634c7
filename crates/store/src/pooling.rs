//! Finds out whether a pooler between us and the server gives each transaction another session.
//!
//! Settings, advisory locks and prepared statements belong to a session: without one of its own, a connection loses
//! them, or finds those of another program.

use diesel_async::{AsyncPgConnection, SimpleAsyncConnection as _};
use uuid::Uuid;

use crate::{Pool, QueryError, QueryResult};

/// Message for operators if [`keeps_sessions`] returns false.
pub const SHARES_SESSIONS: &str = "the pooler at database.url gives each transaction another session, as PgBouncer \
    does with pool_mode = transaction: set it to session mode, or connect to PostgreSQL directly";

/// Number of tries: in one of them, a session that another client gives back can hide that sessions are shared.
const TRIES: u32 = 5;
/// Text of the error that our own statements raise.
const MARK: &str = "earshot: another session";

/// Returns false if the server that `pool` connects to is a pooler whose connections share sessions. It opens two
/// connections for this, and closes them.
pub async fn pool_keeps_sessions(pool: &Pool) -> Result<bool, crate::Error> {
    // Out of the pool, so that none returns to it in the middle of a transaction.
    let mut first = crate::Connection::take(pool.get().await?);
    let mut second = crate::Connection::take(pool.get().await?);
    Ok(keeps_sessions(&mut first, &mut second).await?)
}

/// Returns false if two new connections share a session, or if one does not find what it set there. Only simple
/// queries are used, because prepared statements may fail in this case.
///
/// Sessions that are not shared never give false. If a pooler is busy with other clients, shared sessions may give
/// true.
pub(crate) async fn keeps_sessions(
    first: &mut AsyncPgConnection,
    second: &mut AsyncPgConnection,
) -> QueryResult<bool> {
    for _ in 0..TRIES {
        if !keeps_session(first, second).await? {
            return Ok(false);
        }
    }
    Ok(true)
}

async fn keeps_session(
    first: &mut AsyncPgConnection,
    second: &mut AsyncPgConnection,
) -> QueryResult<bool> {
    let mark = Uuid::new_v4();
    let set = format!("SET earshot.session = '{mark}'");
    first.batch_execute(&set).await?;
    // A pooler that shares sessions gives the first connection's session, which is free, to the second one, which keeps
    // it during its transaction.
    second.batch_execute("BEGIN").await?;
    let found = raise_if(&format!("= '{mark}'"));
    if !passes(second.batch_execute(&found).await)? {
        return Ok(false);
    }
    let lost = raise_if(&format!("IS DISTINCT FROM '{mark}'"));
    let kept = passes(first.batch_execute(&lost).await)?;
    second.batch_execute("ROLLBACK").await?;
    Ok(kept)
}

fn raise_if(condition: &str) -> String {
    let setting = "current_setting('earshot.session', true)";
    format!("DO $$ BEGIN IF {setting} {condition} THEN RAISE '{MARK}'; END IF; END $$")
}

fn passes(result: QueryResult<()>) -> QueryResult<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(QueryError::DatabaseError(_, info)) if info.message() == MARK => Ok(false),
        Err(error) => Err(error),
    }
}
