//! Tests of Connections: requested by the gateway, run by a dispatcher, and answered through a row that lives for a
//! minute.

use std::time::Duration;

use diesel::{
    OptionalExtension, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Double, Jsonb, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Id, connection_test::TestResult};
use uuid::Uuid;

use crate::{Error, QueryResult, replicas};

/// Longest time that a client waits for the answer.
pub const PATIENCE: Duration = Duration::from_secs(12);

/// Unanswered tests that one account may have at a time.
pub const MAX_PER_ACCOUNT: i64 = 4;

/// Requests a test. Returns `None` if the account of the Namespace already waits for [`MAX_PER_ACCOUNT`] tests, or
/// the Namespace is gone. Fails by foreign key if the Connection is gone.
///
/// Call it in a transaction: the account's row stays locked until the end, so two replicas cannot both start the
/// last allowed test.
pub async fn ask(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
) -> QueryResult<Option<Id>> {
    sql_query(
        "SELECT FROM accounts WHERE id = (SELECT account_id FROM namespaces WHERE id = $1) \
         FOR NO KEY UPDATE",
    )
    .bind::<SqlUuid, _>(connection.namespace.to_uuid())
    .execute(conn)
    .await?;
    let id = Id::generate();
    // A separate statement, because it must see what was committed while this one waited for the lock.
    let inserted = sql_query(
        "INSERT INTO connection_tests (id, namespace_id, connection_id, create_time) \
         SELECT $1, $2, $3, clock_timestamp() WHERE $4 > ( \
             SELECT count(*) FROM connection_tests AS t JOIN namespaces AS n ON n.id = t.namespace_id \
             WHERE n.account_id = (SELECT account_id FROM namespaces WHERE id = $2) AND t.answer IS NULL \
             AND t.create_time > clock_timestamp() - $5 * interval '1 second')",
    )
    .bind::<SqlUuid, _>(id.to_uuid())
    .bind::<SqlUuid, _>(connection.namespace.to_uuid())
    .bind::<SqlUuid, _>(connection.connection.to_uuid())
    .bind::<BigInt, _>(MAX_PER_ACCOUNT)
    .bind::<Double, _>(PATIENCE.as_secs_f64())
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

/// Reads by primary key.
pub async fn progress(conn: &mut AsyncPgConnection, id: Id) -> Result<Progress, Error> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Bool)]
        taken: bool,
        #[diesel(sql_type = Nullable<Jsonb>)]
        answer: Option<serde_json::Value>,
    }
    let row: Option<Row> = sql_query(
        "SELECT taken_by IS NOT NULL AS taken, answer FROM connection_tests WHERE id = $1",
    )
    .bind::<SqlUuid, _>(id.to_uuid())
    .get_result(conn)
    .await
    .optional()?;
    Ok(match row {
        None => Progress::Gone,
        Some(Row {
            answer: Some(answer),
            ..
        }) => Progress::Answered(serde_json::from_value(answer).map_err(Error::Json)?),
        Some(row) if row.taken => Progress::Taken,
        Some(_) => Progress::Waiting,
    })
}

/// Ends a test that no one waits for any more. Returns false if a dispatcher has already taken it, and its request
/// may be in flight.
pub async fn withdraw(conn: &mut AsyncPgConnection, id: Id) -> QueryResult<bool> {
    let gone = sql_query("DELETE FROM connection_tests WHERE id = $1 AND taken_by IS NULL")
        .bind::<SqlUuid, _>(id.to_uuid())
        .execute(conn)
        .await?;
    Ok(gone > 0)
}

/// Returns true if any replica of these services is alive.
pub async fn is_any_alive(conn: &mut AsyncPgConnection, services: &[&str]) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        alive: bool,
    }
    let alive = replicas::ALIVE;
    let found: Found = sql_query(format!(
        "SELECT EXISTS (SELECT FROM replicas WHERE service = ANY ($1) AND id {alive}) AS alive"
    ))
    .bind::<Array<Text>, _>(services)
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
    let taken: Vec<Taken> = sql_query(
        "UPDATE connection_tests AS t SET taken_by = $1 FROM ( \
             SELECT id FROM connection_tests \
             WHERE taken_by IS NULL AND create_time > clock_timestamp() - $2 * interval '1 second' \
             ORDER BY create_time LIMIT $3 FOR UPDATE SKIP LOCKED \
         ) AS waiting WHERE t.id = waiting.id RETURNING t.id, t.namespace_id, t.connection_id",
    )
    .bind::<SqlUuid, _>(replica)
    .bind::<Double, _>(PATIENCE.as_secs_f64())
    .bind::<BigInt, _>(limit)
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
    sql_query("UPDATE connection_tests SET answer = $2 WHERE id = $1")
        .bind::<SqlUuid, _>(id.to_uuid())
        .bind::<Jsonb, _>(crate::words::json(answer))
        .execute(conn)
        .await?;
    Ok(())
}

/// Removes the rows that are older than a minute.
pub async fn purge(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    sql_query(
        "DELETE FROM connection_tests WHERE create_time < clock_timestamp() - interval '1 minute'",
    )
    .execute(conn)
    .await
}
