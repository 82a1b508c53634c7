//! Leases waiting deliveries: for each Connection as many as it has capacity for, the longest due first.

use std::{collections::HashMap, sync::Arc};

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName, sql_query,
    sql_types::{
        Array, BigInt, Bool, Integer, Nullable, SmallInt, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id, ScanName};
use uuid::Uuid;

use super::{
    Age, Claimed, EndpointRow, Opening, Unsendable, endpoint_columns, orphans::cancel_erased,
    time_of,
};
use crate::{
    QueryResult,
    connections::per_minute,
    fair::{Places, Round},
    lanes,
    prepared::Prepared,
    scans::{PostRow, post_columns},
    seal::Sealer,
};

/// Maximum number of a Connection's requested deliveries that a replica holds at a time.
pub const MAX_URGENT: i64 = 2;

/// Number of a Connection's deliveries that may be leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Want {
    pub connection: ConnectionName,
    pub count: u32,
}

// OFFSET makes the planner look up each Scan and post by its whole key. For partitions without statistics, for
// example of a new week, it would otherwise read all Scans of a Manager for each delivery.
macro_rules! lease {
    ($($due:expr),+) => {
        concat!(
            "WITH due AS (", $($due,)+ "), leased AS ( \
                 UPDATE deliveries AS d SET state = 'IN_FLIGHT', leased_by = $1, next_attempt_time = NULL, \
                     update_time = clock_timestamp() \
                 FROM due WHERE d.namespace_id = due.namespace_id AND d.connection_id = due.connection_id \
                   AND d.create_time = due.create_time AND d.id = due.id \
                 RETURNING d.namespace_id, d.connection_id, d.id, d.manager_id, d.scan_id, d.attempt_count, \
                     d.schedule_base, d.last_status_code, d.reopen_time, d.urgent, d.traceparent, due.due_time \
             ) \
             SELECT l.namespace_id, l.connection_id, l.id, l.manager_id, l.scan_id, l.attempt_count, \
                 l.schedule_base, l.last_status_code, l.reopen_time, l.urgent, l.traceparent, n.account_id, p.erase_time IS NOT NULL AS erased, \
                 statement_timestamp() AS now, ",
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

// The inner limit exceeds any requested count and exists only for the planner. For an unknown limit the planner
// assumes a tenth of all rows, and would sort a backlog instead of walking its index. Rows are locked as they are
// read.
macro_rules! due_of {
    ($($only:expr)?) => {
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

/// Leases due deliveries of these Connections to `replica`: up to each Connection's count, the longest due first.
/// Rows that another replica is about to lease are skipped. Nothing is leased for a Connection that is disabled,
/// has a rate limit, or has an open circuit breaker, even if the caller does not know that yet: its owner or
/// another replica may just have changed it. Deliveries of a deleted Manager are leased but not returned: its purge
/// or [`super::free_orphans`] cancels them. Deliveries of a post that was deleted at its source are cancelled at
/// once, and do not count as found.
///
/// One statement: one step of `deliveries_due_by_connection_idx` for each Connection, and then the rows that it
/// finds. The cost does not depend on how many deliveries wait.
pub async fn claim(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    wants: &[Want],
) -> QueryResult<Vec<Claimed>> {
    let sql = due_of!(concat!(
        "JOIN connections AS c ON c.namespace_id = given.namespace_id AND c.id = given.connection_id \
           AND c.state = 'ACTIVE' AND ",
        per_minute!(),
        " IS NULL \
         JOIN connection_lanes AS l ON l.namespace_id = given.namespace_id \
           AND l.connection_id = given.connection_id AND l.open_until IS NULL "
    ));
    claim_by(conn, sealer, replica, wants, sql).await
}

/// Same as [`claim`], for Connections whose lanes the transaction has locked. The caller knows what may be sent to
/// them.
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

/// Leases to `replica` deliveries that a person requested, even if their Connection has an open circuit breaker or a
/// rate limit, unless it is disabled. They ignore the limits of lanes, so the replica holds at most [`MAX_URGENT`] of
/// a Connection at a time, and `capacity` in total, which accounts share ([`crate::fair`]). `held` has an entry for
/// each one that it already holds. Leaves out the accounts that had a turn in this round; those that it finds get
/// theirs.
///
/// Served by `deliveries_urgent_idx`, which is mostly empty. Only the longest due are ranked, because a Connection
/// may have thousands; once it or its account has its share, a claim skips all of them and reaches the next. The
/// sum of an account's rank and of a delivery's turn is what it would hold and what others would have taken, which
/// together must be within the free capacity. The last conditions are written so that only the primary key can serve
/// them: by the other index each row of the share would be compared with all requested deliveries.
pub async fn claim_urgent(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    replica: Uuid,
    capacity: u32,
    held: &[(ConnectionName, Id)],
    round: &mut Round,
) -> QueryResult<Vec<Claimed>> {
    let mut places = Places::new(usize::try_from(capacity).unwrap_or(usize::MAX));
    let mut counts: HashMap<Uuid, i64> = HashMap::new();
    for (connection, account) in held {
        places.take(*account);
        *counts.entry(connection.connection.to_uuid()).or_default() += 1;
    }
    if places.free() == 0 {
        return Ok(Vec::new());
    }
    let (full, partial): (Vec<_>, Vec<_>) = counts
        .into_iter()
        .partition(|(_, count)| *count >= MAX_URGENT);
    let full: Vec<Uuid> = full.into_iter().map(|(connection, _)| connection).collect();
    let (partial, counts): (Vec<Uuid>, Vec<i64>) = partial.into_iter().unzip();
    let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    let refused = places.refused().chain(round.served());
    let refused: Vec<Uuid> = refused.map(|account| account.to_uuid()).collect();
    let (accounts, account_counts): (Vec<Uuid>, Vec<i64>) = places
        .holders()
        .map(|(account, count)| (account.to_uuid(), number(count)))
        .unzip();
    let rows: Vec<TaskRow> = Prepared(
        sql_query(lease!(
            "SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time AS due_time \
             FROM (SELECT * FROM ( \
                 SELECT by_account.*, row_number() OVER (ORDER BY account_rank, next_attempt_time, id) AS turn \
                 FROM ( \
                     SELECT by_connection.*, coalesce(holders.count, 0) + row_number() OVER ( \
                         PARTITION BY account_id ORDER BY next_attempt_time, id) AS account_rank \
                     FROM ( \
                         SELECT next.*, coalesce(held.count, 0) + row_number() OVER ( \
                             PARTITION BY next.connection_id ORDER BY next.next_attempt_time, next.id) AS rank, \
                             (SELECT account_id FROM namespaces WHERE id = next.namespace_id) AS account_id \
                         FROM ( \
                             SELECT d.namespace_id, d.connection_id, d.create_time, d.id, d.next_attempt_time \
                             FROM deliveries AS d WHERE d.urgent AND d.state IN ('PENDING', 'RETRYING') \
                               AND d.next_attempt_time <= statement_timestamp() AND d.connection_id <> ALL ($2) \
                               AND d.namespace_id NOT IN (SELECT id FROM namespaces WHERE account_id = ANY ($3)) \
                               AND EXISTS (SELECT FROM connections AS c WHERE c.namespace_id = d.namespace_id \
                                   AND c.id = d.connection_id AND c.state = 'ACTIVE') \
                             ORDER BY d.next_attempt_time LIMIT 1024 \
                         ) AS next LEFT JOIN unnest($4, $5) AS held (connection_id, count) USING (connection_id) \
                     ) AS by_connection LEFT JOIN unnest($6, $7) AS holders (account_id, count) USING (account_id) \
                     WHERE rank <= $8 \
                 ) AS by_account \
             ) AS in_turn WHERE account_rank + turn <= $9 + 1) AS share \
             JOIN deliveries AS d ON d.namespace_id = share.namespace_id AND d.connection_id = share.connection_id \
               AND d.create_time = share.create_time AND d.id = share.id \
             WHERE coalesce(d.urgent, false) AND d.state || '' IN ('PENDING', 'RETRYING') \
               AND d.next_attempt_time + interval '0' <= statement_timestamp() \
             ORDER BY d.next_attempt_time FOR UPDATE OF d SKIP LOCKED"
        ))
        .bind::<SqlUuid, _>(replica)
        .bind::<Array<SqlUuid>, _>(full)
        .bind::<Array<SqlUuid>, _>(refused)
        .bind::<Array<SqlUuid>, _>(partial)
        .bind::<Array<BigInt>, _>(counts)
        .bind::<Array<SqlUuid>, _>(accounts)
        .bind::<Array<BigInt>, _>(account_counts)
        .bind::<BigInt, _>(MAX_URGENT)
        .bind::<BigInt, _>(number(places.free())),
    )
    .load(conn)
    .await?;
    for row in &rows {
        round.serve(Id::from_uuid(row.account_id));
    }
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
    #[diesel(sql_type = Nullable<SmallInt>)]
    last_status_code: Option<i16>,
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
    #[diesel(sql_type = Timestamptz)]
    now: DateTime<Utc>,
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
        let opened = self
            .reopen_time
            .unwrap_or_else(|| time_of(delivery.delivery));
        let begin = opened.max(self.endpoint.connection_update_time);
        let age = Age::new(begin.into(), self.now.into());
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
            last_status_code: self.last_status_code.and_then(|code| code.try_into().ok()),
            reopened: self.reopen_time.is_some(),
            age,
            urgent: self.urgent,
            traceparent: self.traceparent,
        };
        let post = self.post.into_post();
        let task = post.and_then(|post| self.endpoint.task(opening, Arc::new(post), sealer));
        task.map_err(|error| {
            Box::new(Unsendable {
                delivery,
                attempt_count,
                schedule_base,
                age,
                error,
            })
        })
    }
}
