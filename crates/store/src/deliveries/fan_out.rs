//! One delivery per Scan and Connection, made once however often the event comes.

use std::collections::{BTreeMap, BTreeSet};

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id, ManagerName, ScanName};
use uuid::Uuid;

use super::{EndpointRow, Opening, Task, endpoint_columns, time_of};
use crate::{
    QueryResult,
    lanes::Due,
    prepared::Prepared,
    scans::{PostRow, post_columns},
    seal::Sealer,
};

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    manager_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    scan_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
    #[diesel(sql_type = Bool)]
    clear: bool,
    #[diesel(sql_type = Bool)]
    due: bool,
    #[diesel(sql_type = Bool)]
    restrained: bool,
    #[diesel(sql_type = Bool)]
    erased: bool,
    #[diesel(embed)]
    endpoint: EndpointRow,
    #[diesel(embed)]
    post: PostRow,
}

/// A Scan that was made, and the traceparent of that, where it is traced.
#[derive(Debug, Clone)]
pub struct Made {
    pub scan: ScanName,
    pub traceparent: Option<String>,
}

impl From<&ScanName> for Made {
    fn from(scan: &ScanName) -> Self {
        Self {
            scan: *scan,
            traceparent: None,
        }
    }
}

impl From<&Made> for Made {
    fn from(made: &Made) -> Self {
        made.clone()
    }
}

/// Outcome of the deliveries of some Scans.
#[derive(Debug)]
pub struct FannedOut<P> {
    /// Leased, ready to be sent without another look at the database, each with its permit.
    pub tasks: Vec<(Task, P)>,
    /// Connections with waiting deliveries in the database: for [`crate::lanes::note_due`] after the
    /// commit. Not those that are disabled or whose breaker is open:
    /// they are looked at when that ends.
    pub waiting: BTreeSet<Due>,
}

/// Inserts the deliveries of Scans, one per Connection in the Manager's notices as they stand, and marks
/// the Scans. Those that `admit` gives a permit are leased to `replica`; it is asked only where the
/// Connection is enabled, its breaker closed, its rate not limited, and nothing waits for it in the
/// database. The others wait; those of a post that was deleted at its source meanwhile are cancelled. A Scan that was
/// marked before, or is gone, gives none.
///
/// Two statements, however many Scans. Call inside of a transaction of [`crate::keyed`], without which they are planned
/// each time: a Scan's row lock makes a second caller wait, and then find the mark.
///
/// # Errors
/// When the database does not answer: nothing is marked then.
pub async fn fan_out<P>(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    scans: impl IntoIterator<Item = impl Into<Made>>,
    replica: Uuid,
    mut admit: impl FnMut(ConnectionName, Id) -> Option<P>,
) -> QueryResult<FannedOut<P>> {
    let made = scans.into_iter().map(Into::into);
    let traces: BTreeMap<ScanName, Option<String>> = made
        .map(|made: Made| (made.scan, made.traceparent))
        .collect();
    let scans: BTreeSet<ScanName> = traces.keys().copied().collect();
    let column = |value: fn(&ScanName) -> Uuid| -> Vec<Uuid> { scans.iter().map(value).collect() };
    // The posts are looked up one by one: without statistics the planner would read all for each Scan. And of what is
    // not fanned out it often expects none, and would read that index rather than find a Scan by its
    // key; IS NOT TRUE keeps it from that.
    let rows: Vec<Row> = Prepared(
        sql_query(concat!(
            "WITH marked AS ( \
                 UPDATE scans AS s SET fanned_out = true \
                 FROM unnest($1, $2, $3, $4) AS given (namespace_id, manager_id, create_time, id) \
                 WHERE s.namespace_id = given.namespace_id AND s.manager_id = given.manager_id \
                   AND s.create_time = given.create_time AND s.id = given.id AND s.fanned_out IS NOT TRUE \
                 RETURNING s.namespace_id, s.manager_id, s.id, s.post_id, s.post_receive_time \
             ) \
             SELECT m.namespace_id, m.manager_id, m.id AS scan_id, c.id AS connection_id, l.account_id, \
                 c.state = 'ACTIVE' AND l.open_until IS NULL AND c.max_per_second IS NULL \
                     AND coalesce(l.next_due_time > statement_timestamp(), true) AS clear, \
                 c.state = 'ACTIVE' AND coalesce(l.open_until <= statement_timestamp(), true) AS due, \
                 l.open_until IS NOT NULL OR c.max_per_second IS NOT NULL AS restrained, \
                 p.erase_time IS NOT NULL AS erased, ",
            endpoint_columns!(),
            post_columns!(),
            " FROM marked AS m \
             CROSS JOIN LATERAL ( \
                 SELECT * FROM posts WHERE receive_time = m.post_receive_time AND id = m.post_id LIMIT 1 \
             ) AS p \
             JOIN manager_notices AS n ON n.namespace_id = m.namespace_id AND n.manager_id = m.manager_id \
             JOIN connections AS c ON c.namespace_id = n.namespace_id AND c.id = n.connection_id \
             JOIN connection_lanes AS l ON l.namespace_id = c.namespace_id AND l.connection_id = c.id \
             ORDER BY m.id, n.position"
        ))
        .bind::<Array<SqlUuid>, _>(column(|scan| scan.namespace.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|scan| scan.manager.to_uuid()))
        .bind::<Array<Timestamptz>, _>(
            scans.iter().map(|scan| time_of(scan.scan)).collect::<Vec<_>>(),
        )
        .bind::<Array<SqlUuid>, _>(column(|scan| scan.scan.to_uuid())),
    )
    .load(conn)
    .await?;

    let mut found = FannedOut {
        tasks: Vec::new(),
        waiting: BTreeSet::new(),
    };
    let mut inserts: Vec<Insert> = Vec::with_capacity(rows.len());
    for row in rows {
        let manager = ManagerName {
            namespace: Id::from_uuid(row.namespace_id),
            manager: Id::from_uuid(row.manager_id),
        };
        let delivery = DeliveryName {
            namespace: manager.namespace,
            connection: Id::from_uuid(row.connection_id),
            delivery: Id::generate(),
        };
        let scan = ScanName {
            namespace: manager.namespace,
            manager: manager.manager,
            scan: Id::from_uuid(row.scan_id),
        };
        // Of one Scan there may be several.
        let traceparent = traces.get(&scan).cloned().flatten();
        let account = Id::from_uuid(row.account_id);
        let connection = delivery.connection_name();
        let permit = if row.clear && !row.erased {
            admit(connection, account)
        } else {
            None
        };
        // One that cannot be read, for want of a key perhaps, waits in the database: neither the Scan's
        // other Connections nor anybody's event is held up.
        let task = permit.and_then(|permit| {
            let opening = Opening {
                delivery,
                scan,
                account,
                attempt_count: 0,
                schedule_base: 0,
                open_time: delivery.delivery.time(),
                urgent: false,
                traceparent: traceparent.clone(),
            };
            let task = row.endpoint.task(opening, row.post, sealer).ok()?;
            Some((task, permit))
        });
        inserts.push(Insert {
            delivery,
            scan,
            leased: task.is_some(),
            erased: row.erased,
            traceparent,
        });
        match task {
            Some(task) => found.tasks.push(task),
            None if row.due && !row.erased => {
                found.waiting.insert(Due {
                    connection,
                    account,
                    restrained: row.restrained,
                });
            }
            None => {}
        }
    }
    insert(conn, replica, &inserts).await?;
    Ok(found)
}

struct Insert {
    delivery: DeliveryName,
    scan: ScanName,
    leased: bool,
    erased: bool,
    traceparent: Option<String>,
}

/// Only the database's clock decides what is due, and others look by it; the id's time is only a
/// part of the key.
async fn insert(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    inserts: &[Insert],
) -> QueryResult<()> {
    if inserts.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&Insert) -> Uuid| -> Vec<Uuid> { inserts.iter().map(value).collect() };
    Prepared(
        sql_query(
            "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, \
                 state, leased_by, next_attempt_time, traceparent, last_error) \
             SELECT namespace_id, connection_id, id, create_time, clock_timestamp(), manager_id, scan_id, \
                 CASE WHEN erased THEN 'CANCELLED' WHEN leased THEN 'IN_FLIGHT' ELSE 'PENDING' END, \
                 CASE WHEN leased THEN $1 END, CASE WHEN NOT leased AND NOT erased THEN clock_timestamp() END, traceparent, \
                 CASE WHEN erased THEN 'post_deleted' END \
             FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10) \
                 AS d (namespace_id, connection_id, id, create_time, manager_id, scan_id, leased, traceparent, erased)",
        )
        .bind::<SqlUuid, _>(replica)
        .bind::<Array<SqlUuid>, _>(column(|one| one.delivery.namespace.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|one| one.delivery.connection.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|one| one.delivery.delivery.to_uuid()))
        .bind::<Array<Timestamptz>, _>(
            inserts.iter().map(|one| time_of(one.delivery.delivery)).collect::<Vec<_>>(),
        )
        .bind::<Array<SqlUuid>, _>(column(|one| one.scan.manager.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|one| one.scan.scan.to_uuid()))
        .bind::<Array<Bool>, _>(inserts.iter().map(|one| one.leased).collect::<Vec<_>>())
        .bind::<Array<Nullable<Text>>, _>(
            inserts.iter().map(|one| one.traceparent.as_deref()).collect::<Vec<_>>(),
        )
        .bind::<Array<Bool>, _>(inserts.iter().map(|one| one.erased).collect::<Vec<_>>()),
    )
    .execute(conn)
    .await?;
    Ok(())
}
