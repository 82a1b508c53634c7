//! Deliveries: made once per Scan and Connection, leased while their request is open, and every
//! attempt recorded.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Double, Integer, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, DeliveryName, Id, Post, ScanName, Timestamp,
    connection::{Format, Headers, Method, SigningSecret},
};
use uuid::Uuid;

use crate::{
    Error, QueryResult, connections, replicas,
    scans::{PostRow, post_columns},
    seal::Sealer,
};

mod fan_out;
mod log;
mod reopen;
mod results;

pub use fan_out::fan_out;
pub(crate) use log::LISTING;
pub use log::{get, get_with_attempts, list, list_all};
pub use reopen::reopen;
pub(crate) use reopen::{reopened, scan_is_there};
pub use results::{Attempt, AttemptResult, Verdict, move_on, record_results};

/// All that a dispatcher needs to make one attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub delivery: DeliveryName,
    pub scan: ScanName,
    /// Attempts made so far.
    pub attempt_count: u32,
    /// Of these, those before it was last reopened: the schedule goes by the others.
    pub schedule_base: u32,
    /// When it was made, or last reopened: its greatest age counts from then.
    pub open_time: Timestamp,
    pub url: String,
    pub method: Method,
    pub headers: Headers,
    pub format: Format,
    pub max_per_second: Option<u32>,
    pub signing_secrets: Vec<SigningSecret>,
    pub post: Post,
}

/// A leased delivery of which no request can be made: its Connection's headers, say, are sealed with a
/// key that is not configured.
#[derive(Debug, thiserror::Error)]
#[error("no request can be made for {delivery}")]
pub struct Unsendable {
    pub delivery: DeliveryName,
    /// Attempts made so far, and of these, those before it was last reopened.
    pub attempt_count: u32,
    pub schedule_base: u32,
    pub open_time: Timestamp,
    #[source]
    pub error: Error,
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct TaskRow {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    manager_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    scan_id: Uuid,
    #[diesel(sql_type = Integer)]
    attempt_count: i32,
    #[diesel(sql_type = Integer)]
    schedule_base: i32,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Timestamptz>)]
    reopen_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Text)]
    url: String,
    #[diesel(sql_type = Text)]
    method: String,
    #[diesel(sql_type = diesel::sql_types::Bytea)]
    headers_sealed: Vec<u8>,
    #[diesel(sql_type = Text)]
    format: String,
    #[diesel(sql_type = diesel::sql_types::Nullable<Integer>)]
    max_per_second: Option<i32>,
    #[diesel(sql_type = diesel::sql_types::Nullable<diesel::sql_types::Bytea>)]
    signing_secrets_sealed: Option<Vec<u8>>,
    #[diesel(embed)]
    post: PostRow,
}

impl TaskRow {
    fn into_task(self, sealer: &Sealer) -> Result<Task, Unsendable> {
        let delivery = DeliveryName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
            delivery: Id::from_uuid(self.id),
        };
        let attempt_count = self.attempt_count.try_into().unwrap_or(0);
        let schedule_base = self.schedule_base.try_into().unwrap_or(0);
        let open_time = match self.reopen_time {
            Some(time) => time.into(),
            None => delivery.delivery.time(),
        };
        self.open(sealer, delivery)
            .map(|task| Task {
                attempt_count,
                schedule_base,
                open_time,
                ..task
            })
            .map_err(|error| Unsendable {
                delivery,
                attempt_count,
                schedule_base,
                open_time,
                error,
            })
    }

    /// As if it were new.
    fn open(self, sealer: &Sealer, delivery: DeliveryName) -> Result<Task, Error> {
        let connection = delivery.connection_name();
        Ok(Task {
            delivery,
            scan: ScanName {
                namespace: delivery.namespace,
                manager: Id::from_uuid(self.manager_id),
                scan: Id::from_uuid(self.scan_id),
            },
            attempt_count: 0,
            schedule_base: 0,
            open_time: delivery.delivery.time(),
            url: self.url,
            method: connections::method(&self.method)?,
            headers: connections::open_headers(&self.headers_sealed, connection, sealer)?,
            format: connections::format(&self.format)?,
            max_per_second: connections::max_per_second(self.max_per_second),
            signing_secrets: connections::open_secrets(
                self.signing_secrets_sealed.as_deref(),
                connection,
                sealer,
            )?,
            post: self.post.into_post()?,
        })
    }
}

/// Leases up to `limit` deliveries that are due to `replica`, the longest due first, save those of
/// `full` Connections. Those of disabled ones wait. Served by `deliveries_due_idx`.
///
/// A delivery whose headers cannot be opened is returned as the error, leased like the others.
///
/// # Errors
/// When the database does not answer.
pub async fn claim_due(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    full: &[ConnectionName],
    limit: i64,
) -> QueryResult<Vec<Result<Task, Unsendable>>> {
    let rows: Vec<TaskRow> = sql_query(concat!(
        "WITH due AS ( \
             SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time AS due_time \
             FROM deliveries AS d \
             WHERE d.state IN ('PENDING', 'RETRYING') AND d.next_attempt_time <= clock_timestamp() \
               AND d.connection_id <> ALL ($3) AND EXISTS (SELECT FROM connections AS c \
                   WHERE c.namespace_id = d.namespace_id AND c.id = d.connection_id AND c.state = 'ACTIVE') \
             ORDER BY d.next_attempt_time LIMIT $2 FOR UPDATE OF d SKIP LOCKED \
         ), leased AS ( \
             UPDATE deliveries AS d SET state = 'IN_FLIGHT', leased_by = $1, next_attempt_time = NULL, \
                 update_time = clock_timestamp() \
             FROM due WHERE d.namespace_id = due.namespace_id AND d.connection_id = due.connection_id \
               AND d.create_time = due.create_time AND d.id = due.id \
             RETURNING d.namespace_id, d.connection_id, d.id, d.manager_id, d.scan_id, d.attempt_count, \
                 d.schedule_base, d.reopen_time, due.due_time \
         ) \
         SELECT l.namespace_id, l.connection_id, l.id, l.manager_id, l.scan_id, l.attempt_count, l.schedule_base, l.reopen_time, \
             c.url, c.method, c.headers_sealed, c.format, c.max_per_second, c.signing_secrets_sealed, ",
        post_columns!(),
        " FROM leased AS l \
         JOIN connections AS c ON c.namespace_id = l.namespace_id AND c.id = l.connection_id \
         JOIN scans AS s ON s.namespace_id = l.namespace_id AND s.manager_id = l.manager_id \
           AND s.create_time = id_time(l.scan_id) AND s.id = l.scan_id \
         JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
         ORDER BY l.due_time"
    ))
    .bind::<SqlUuid, _>(replica)
    .bind::<BigInt, _>(limit)
    .bind::<Array<SqlUuid>, _>(full.iter().map(|name| name.connection.to_uuid()).collect::<Vec<_>>())
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(|row| row.into_task(sealer)).collect())
}

/// Frees what `replica` holds for longer than `at_most`, and, if it may `take_over`, what dead replicas
/// hold: those requests are repeated, since nobody knows how they ended. Nothing of what it has in hand
/// is freed, however silent it was itself. Returns how many there were. Served by
/// `deliveries_in_flight_idx`.
///
/// # Errors
/// When the database does not answer.
pub async fn free_orphans(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    in_hand: &[Id],
    at_most: Duration,
    take_over: bool,
) -> QueryResult<usize> {
    let alive = replicas::ALIVE;
    sql_query(format!(
        "UPDATE deliveries SET leased_by = NULL, next_attempt_time = clock_timestamp(), \
             update_time = clock_timestamp(), \
             state = CASE WHEN attempt_count = 0 THEN 'PENDING' ELSE 'RETRYING' END \
         WHERE state = 'IN_FLIGHT' AND id <> ALL ($2) AND ( \
             leased_by = $1 AND update_time < clock_timestamp() - $3 * interval '1 second' \
             OR $4 AND leased_by <> $1 AND NOT leased_by {alive})"
    ))
    .bind::<SqlUuid, _>(replica)
    .bind::<Array<SqlUuid>, _>(in_hand.iter().map(|id| id.to_uuid()).collect::<Vec<_>>())
    .bind::<Double, _>(at_most.as_secs_f64())
    .bind::<Bool, _>(take_over)
    .execute(conn)
    .await
}

/// Gives leased deliveries back, due at once: there was no place for them.
///
/// # Errors
/// When the database does not answer.
pub async fn hand_back(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    deliveries: &[DeliveryName],
) -> QueryResult<()> {
    sql_query(
        "UPDATE deliveries AS d SET leased_by = NULL, next_attempt_time = clock_timestamp(), \
             state = CASE WHEN attempt_count = 0 THEN 'PENDING' ELSE 'RETRYING' END \
         FROM unnest($1, $2, $3) AS given (namespace_id, connection_id, id) \
         WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id \
           AND d.create_time = id_time(given.id) AND d.id = given.id AND d.leased_by = $4",
    )
    .bind::<Array<SqlUuid>, _>(
        deliveries
            .iter()
            .map(|name| name.namespace.to_uuid())
            .collect::<Vec<_>>(),
    )
    .bind::<Array<SqlUuid>, _>(
        deliveries
            .iter()
            .map(|name| name.connection.to_uuid())
            .collect::<Vec<_>>(),
    )
    .bind::<Array<SqlUuid>, _>(
        deliveries
            .iter()
            .map(|name| name.delivery.to_uuid())
            .collect::<Vec<_>>(),
    )
    .bind::<SqlUuid, _>(replica)
    .execute(conn)
    .await?;
    Ok(())
}

/// How long until the next delivery falls due, save those of `full` Connections; zero when one is,
/// `None` when none waits. Served by `deliveries_due_idx`.
///
/// # Errors
/// When the database does not answer.
pub async fn next_due(
    conn: &mut AsyncPgConnection,
    full: &[ConnectionName],
) -> QueryResult<Option<Duration>> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = Double)]
        seconds: f64,
    }
    // The first in the order of the index, where a minimum over the join would read the whole backlog.
    let due: Option<Due> = sql_query(
        "SELECT extract(epoch FROM d.next_attempt_time - clock_timestamp())::float8 AS seconds \
         FROM deliveries AS d WHERE d.state IN ('PENDING', 'RETRYING') \
           AND d.connection_id <> ALL ($1) AND EXISTS (SELECT FROM connections AS c \
               WHERE c.namespace_id = d.namespace_id AND c.id = d.connection_id AND c.state = 'ACTIVE') \
         ORDER BY d.next_attempt_time LIMIT 1",
    )
    .bind::<Array<SqlUuid>, _>(full.iter().map(|name| name.connection.to_uuid()).collect::<Vec<_>>())
    .get_result(conn)
    .await
    .optional()?;
    Ok(due.map(|due| Duration::try_from_secs_f64(due.seconds).unwrap_or_default()))
}

/// The time of a row, from the id that carries it.
fn time_of(id: Id) -> DateTime<Utc> {
    id.time().to_chrono()
}
