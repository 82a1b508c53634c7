//! Test deliveries of Connections: requested by the gateway, sent by a dispatcher, and answered through a row of
//! `connection_tests` that lives for a minute.

use std::time::Duration;

use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Bool, Double, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, trial_delivery::TestResult};
use uuid::Uuid;

use crate::{Error, QueryResult, prepared::query, schema::connection_tests, words};

/// Longest time that a client waits for the answer.
pub const PATIENCE: Duration = Duration::from_secs(12);

/// Maximum number of unanswered tests of one account.
pub const MAX_PER_ACCOUNT: i64 = 4;

/// Requests a test. Returns `None` if the account already waits for [`MAX_PER_ACCOUNT`] tests, or the Namespace does
/// not exist. Fails by foreign key if the Connection does not exist.
///
/// Call it in a transaction: the account's row stays locked until the end, so two replicas cannot both start the
/// last allowed test.
pub async fn request(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
) -> QueryResult<Option<Id>> {
    query!(
        "connection_tests/lock_account",
        SqlUuid: connection.namespace.to_uuid(),
    )
    .execute(conn)
    .await?;
    let id = Id::generate();
    // A separate statement, because it must see what was committed while this one waited for the lock.
    let inserted = query!(
        "connection_tests/insert",
        SqlUuid: id.to_uuid(),
        SqlUuid: connection.namespace.to_uuid(),
        SqlUuid: connection.connection.to_uuid(),
        BigInt: MAX_PER_ACCOUNT,
        Double: PATIENCE.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok((inserted > 0).then_some(id))
}

/// Progress of a test.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// No dispatcher has taken it.
    Waiting,
    Taken,
    Answered(TestResult),
    /// Its row is gone, perhaps with its Connection.
    Gone,
}

/// Returns the progress of a test. By primary key.
pub async fn progress(conn: &mut AsyncPgConnection, id: Id) -> Result<Progress, Error> {
    let row: Option<(Option<Uuid>, Option<serde_json::Value>)> = connection_tests::table
        .find(id.to_uuid())
        .select((connection_tests::taken_by, connection_tests::answer))
        .first(conn)
        .await
        .optional()?;
    Ok(match row {
        None => Progress::Gone,
        Some((_, Some(answer))) => {
            Progress::Answered(serde_json::from_value(answer).map_err(Error::Json)?)
        }
        Some((Some(_), None)) => Progress::Taken,
        Some((None, None)) => Progress::Waiting,
    })
}

/// Ends a test that no one waits for any more. Returns false if a dispatcher has already taken it, and its request
/// may be in flight.
pub async fn withdraw(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<bool> {
    let waiting = connection_tests::table
        .find(id.to_uuid())
        .filter(connection_tests::taken_by.is_null());
    let gone = diesel::delete(waiting).execute(conn).await?;
    Ok(gone > 0)
}

/// Returns true if any replica of these services is alive.
pub async fn is_any_alive(conn: &mut AsyncPgConnection, services: &[&str]) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        alive: bool,
    }
    let found: Found = query!(
        "replicas/is_any_alive",
        Array<Text>: services,
    )
    .get_result(conn)
    .await?;
    Ok(found.alive)
}

/// Takes waiting tests. Each goes to one replica only, so it never runs twice. A test that is too old for anyone to
/// wait for is left to [`purge`]. Served by `connection_tests_waiting_idx`.
pub async fn take(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    limit: i64,
) -> QueryResult<Vec<(Id, ConnectionName)>> {
    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
    }
    let taken: Vec<Taken> = query!(
        "connection_tests/take",
        SqlUuid: replica,
        Double: PATIENCE.as_secs_f64(),
        BigInt: limit,
    )
    .load(conn)
    .await?;
    let name = |taken: &Taken| ConnectionName {
        namespace: Id::from_uuid(taken.namespace_id),
        connection: Id::from_uuid(taken.connection_id),
    };
    Ok(taken
        .iter()
        .map(|taken| (Id::from_uuid(taken.id), name(taken)))
        .collect())
}

/// Stores the result of a test for the gateway that waits for it.
pub async fn answer(
    conn: &mut AsyncPgConnection,
    id: Id,
    result: &TestResult,
) -> Result<(), Error> {
    let answer = serde_json::to_value(result).map_err(Error::Json)?;
    diesel::update(connection_tests::table.find(id.to_uuid()))
        .set(connection_tests::answer.eq(words::json(answer)))
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes the rows that are older than a minute.
pub async fn purge(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!("connection_tests/purge").execute(conn).await
}
