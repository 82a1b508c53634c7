//! Leases what waits: of each Connection as much as it may have, the longest due first.

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id, ScanName};
use uuid::Uuid;

use super::{Claimed, EndpointRow, Opening, Unsendable, endpoint_columns, orphans::cancel_erased};
use crate::{
    QueryResult, lanes,
    prepared::Prepared,
    scans::{PostRow, post_columns},
    seal::Sealer,
};

/// How much of a Connection's may be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    pub connection: ConnectionName,
    pub count: u32,
}

// The offsets keep each Scan and post looked up by its whole key. Of partitions that it knows little of, as those of a
// new week, the planner would rather read all Scans of a Manager, once for each delivery.
macro_rules! lease {
    ($($due:literal),+) => {
        concat!(
            "WITH due AS (", $($due,)+ "), leased AS ( \
                 UPDATE deliveries AS d SET state = 'IN_FLIGHT', leased_by = $1, next_attempt_time = NULL, \
                     update_time = clock_timestamp() \
                 FROM due WHERE d.namespace_id = due.namespace_id AND d.connection_id = due.connection_id \
                   AND d.create_time = due.create_time AND d.id = due.id \
                 RETURNING d.namespace_id, d.connection_id, d.id, d.manager_id, d.scan_id, d.attempt_count, \
                     d.schedule_base, d.reopen_time, d.urgent, d.traceparent, due.due_time \
             ) \
             SELECT l.namespace_id, l.connection_id, l.id, l.manager_id, l.scan_id, l.attempt_count, \
                 l.schedule_base, l.reopen_time, l.urgent, l.traceparent, n.account_id, p.erase_time IS NOT NULL AS erased, ",
            endpoint_columns!(),
            post_columns!(),
            " FROM leased AS l \
             JOIN connections AS c ON c.namespace_id = l.namespace_id AND c.id = l.connection_id \
             JOIN namespaces AS n ON n.id = l.namespace_id \
             JOIN managers AS m ON m.namespace_id = l.namespace_id AND m.id = l.manager_id \
             CROSS JOIN LATERAL ( \
                 SELECT s.post_receive_time, s.post_id FROM scans AS s \
                 WHERE s.namespace_id = l.namespace_id AND s.manager_id = l.manager_id \
                   AND s.create_time = id_time(l.scan_id) AND s.id = l.scan_id OFFSET 0 \
             ) AS s \
             CROSS JOIN LATERAL ( \
                 SELECT p.* FROM posts AS p WHERE p.receive_time = s.post_receive_time AND p.id = s.post_id OFFSET 0 \
             ) AS p \
             ORDER BY l.due_time"
        )
    };
}

// The inner limit, above any count that is asked for, is for the planner alone: of one that it does not know it
// expects a tenth of all, and then sorts a backlog rather than walk its index. Rows are locked as they are taken.
macro_rules! due_of {
    ($($only:literal)?) => {
        lease!(
            "SELECT due.* FROM unnest($2, $3, $4) AS given (namespace_id, connection_id, count) ",
            $($only,)?
            "CROSS JOIN LATERAL ( \
                 SELECT * FROM ( \
                     SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time AS due_time \
                     FROM deliveries AS d \
                     WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id \
                       AND d.state IN ('PENDING', 'RETRYING') AND d.next_attempt_time <= statement_timestamp() \
                     ORDER BY d.next_attempt_time LIMIT 1024 FOR UPDATE SKIP LOCKED \
                 ) AS next LIMIT given.count \
             ) AS due"
        )
    };
}

/// Leases to `replica` what is due of these Connections, of each up to its count and the longest due
/// first. Rows that another replica is about to lease are skipped. Nothing is leased of a Connection that
/// is disabled, whose rate is limited or whose breaker is open, even if the caller does not know it: an owner may
/// just have said so, or another replica. What is left of a deleted Manager is leased and given to no one:
/// its purge cancels it, or [`super::free_orphans`] does. What is leased of a post that was deleted at its source is
/// cancelled at once, and counts as nothing found.
///
/// One statement; a step of `deliveries_due_by_connection_idx` for each Connection, and then what it
/// finds: however much waits, for these or for others, costs nothing.
///
/// # Errors
/// When the database does not answer.
pub async fn claim(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    wants: &[Want],
) -> QueryResult<Vec<Claimed>> {
    let sql = due_of!(
        "JOIN connections AS c ON c.namespace_id = given.namespace_id AND c.id = given.connection_id \
           AND c.state = 'ACTIVE' AND c.max_per_second IS NULL \
         JOIN connection_lanes AS l ON l.namespace_id = given.namespace_id \
           AND l.connection_id = given.connection_id AND l.open_until IS NULL "
    );
    claim_by(conn, sealer, replica, wants, sql).await
}

/// Same as [`claim`], for Connections whose lanes the transaction has locked: what they may be sent is the
/// caller's to know.
///
/// # Errors
/// When the database does not answer.
pub async fn claim_locked(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    wants: &[Want],
) -> QueryResult<Vec<Claimed>> {
    claim_by(conn, sealer, replica, wants, due_of!()).await
}

async fn claim_by(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    wants: &[Want],
    sql: &'static str,
) -> QueryResult<Vec<Claimed>> {
    if wants.is_empty() {
        return Ok(Vec::new());
    }
    let [namespaces, ids] = lanes::keys(wants.iter().map(|want| want.connection));
    let counts: Vec<i32> = wants
        .iter()
        .map(|want| want.count.try_into().unwrap_or(i32::MAX))
        .collect();
    let rows: Vec<TaskRow> = Prepared(
        sql_query(sql)
            .bind::<SqlUuid, _>(replica)
            .bind::<Array<SqlUuid>, _>(namespaces)
            .bind::<Array<SqlUuid>, _>(ids)
            .bind::<Array<Integer>, _>(counts),
    )
    .load(conn)
    .await?;
    without_erased(conn, sealer, replica, rows).await
}

/// Leases to `replica` up to `limit` deliveries that a person asked for, even if their Connection is held
/// up, unless it is disabled. Served by `deliveries_urgent_idx`, which is mostly empty.
///
/// # Errors
/// When the database does not answer.
pub async fn claim_urgent(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    limit: i64,
) -> QueryResult<Vec<Claimed>> {
    let rows: Vec<TaskRow> = Prepared(
        sql_query(lease!(
            "SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time AS due_time \
             FROM deliveries AS d WHERE d.urgent AND d.state IN ('PENDING', 'RETRYING') \
               AND d.next_attempt_time <= statement_timestamp() \
               AND EXISTS (SELECT FROM connections AS c WHERE c.namespace_id = d.namespace_id \
                   AND c.id = d.connection_id AND c.state = 'ACTIVE') \
             ORDER BY d.next_attempt_time LIMIT $2 FOR UPDATE OF d SKIP LOCKED"
        ))
        .bind::<SqlUuid, _>(replica)
        .bind::<BigInt, _>(limit),
    )
    .load(conn)
    .await?;
    without_erased(conn, sealer, replica, rows).await
}

/// Returns the leased deliveries that can be sent. A crash before the cancellation leaves leases that
/// [`super::free_orphans`] cancels.
async fn without_erased(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    rows: Vec<TaskRow>,
) -> QueryResult<Vec<Claimed>> {
    let (erased, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.erased);
    let erased: Vec<DeliveryName> = erased.iter().map(TaskRow::delivery).collect();
    cancel_erased(conn, replica, &erased).await?;
    Ok(rows.into_iter().map(|row| row.into_task(sealer)).collect())
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
    #[diesel(sql_type = Nullable<Timestamptz>)]
    reopen_time: Option<DateTime<Utc>>,
    #[diesel(sql_type = Bool)]
    urgent: bool,
    #[diesel(sql_type = Nullable<Text>)]
    traceparent: Option<String>,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
    #[diesel(sql_type = Bool)]
    erased: bool,
    #[diesel(embed)]
    endpoint: EndpointRow,
    #[diesel(embed)]
    post: PostRow,
}

impl TaskRow {
    fn delivery(&self) -> DeliveryName {
        DeliveryName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
            delivery: Id::from_uuid(self.id),
        }
    }

    fn into_task(self, sealer: &Sealer) -> Claimed {
        let delivery = self.delivery();
        let attempt_count = self.attempt_count.try_into().unwrap_or(0);
        let schedule_base = self.schedule_base.try_into().unwrap_or(0);
        let open_time = match self.reopen_time {
            Some(time) => time.into(),
            None => delivery.delivery.time(),
        };
        let opening = Opening {
            delivery,
            scan: ScanName {
                namespace: delivery.namespace,
                manager: Id::from_uuid(self.manager_id),
                scan: Id::from_uuid(self.scan_id),
            },
            account: Id::from_uuid(self.account_id),
            attempt_count,
            schedule_base,
            open_time,
            urgent: self.urgent,
            traceparent: self.traceparent,
        };
        let task = self.endpoint.task(opening, self.post, sealer);
        task.map_err(|error| {
            Box::new(Unsendable {
                delivery,
                attempt_count,
                schedule_base,
                open_time,
                error,
            })
        })
    }
}
