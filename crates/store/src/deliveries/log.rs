//! The delivery log for clients: lists, and single deliveries with their attempts.
//!
//! In the order of `createTime`, with a filter by time, by Scan, or for exhausted or cancelled deliveries, a page
//! costs only its own rows, at any depth and size of the log. A filter by status among exhausted or cancelled ones
//! costs one index entry each, without reading the row. Other filters read until the page is full.

use chrono::{DateTime, TimeDelta, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, Delivery, DeliveryName, DeliveryWithAttempts, Id, ScanName,
    delivery::{AttemptPhases, DeliveryAttempt},
    field::{Literal, Op},
    filter::{Clause, Comparison},
    list::ListQuery,
};
use uuid::Uuid;

use super::time_of;
use crate::{
    Error, QueryResult,
    listing::{Column, Listing, MAX_COST, Page, ROW, Rows, column, is_by_create_time, nullable},
    schema::{connections, deliveries, delivery_attempts},
    words,
};

/// Maximum number of attempts shown with a delivery, the newest: replays may add many.
const MAX_ATTEMPTS: i64 = 100;
/// Number of rows that take as long to read as finding the first row of a Connection.
const ROWS_OF_LOOKUP: u64 = 10;

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = deliveries)]
pub(super) struct DeliveryRow {
    namespace_id: Uuid,
    connection_id: Uuid,
    id: Uuid,
    create_time: DateTime<Utc>,
    update_time: DateTime<Utc>,
    manager_id: Option<Uuid>,
    scan_id: Option<Uuid>,
    event: Option<serde_json::Value>,
    state: String,
    attempt_count: i32,
    last_attempt_time: Option<DateTime<Utc>>,
    next_attempt_time: Option<DateTime<Utc>>,
    last_status_code: Option<i16>,
    last_error: Option<String>,
}

impl DeliveryRow {
    pub(super) fn into_delivery(self) -> Result<Delivery, Error> {
        Ok(Delivery {
            name: DeliveryName {
                namespace: Id::from_uuid(self.namespace_id),
                connection: Id::from_uuid(self.connection_id),
                delivery: Id::from_uuid(self.id),
            },
            create_time: self.create_time.into(),
            update_time: self.update_time.into(),
            scan: self
                .manager_id
                .zip(self.scan_id)
                .map(|(manager, scan)| ScanName {
                    namespace: Id::from_uuid(self.namespace_id),
                    manager: Id::from_uuid(manager),
                    scan: Id::from_uuid(scan),
                }),
            // An event of a later release is left out.
            event: self
                .event
                .and_then(|event| serde_json::from_value(event).ok()),
            state: words::parse(&self.state)?,
            attempt_count: self.attempt_count.try_into().unwrap_or(0),
            last_attempt_time: self.last_attempt_time.map(Into::into),
            next_attempt_time: self.next_attempt_time.map(Into::into),
            last_status_code: self.last_status_code.and_then(|code| code.try_into().ok()),
            last_error: self.last_error,
        })
    }
}

const COLUMNS: &[Column] = &[
    column(
        "name",
        "('namespaces/' || ulid(d.namespace_id) || '/connections/' || ulid(d.connection_id) || '/deliveries/' || ulid(d.id))",
    )
    .taking(90),
    column("createTime", "d.create_time"),
    column("updateTime", "d.update_time"),
    nullable(
        "scan",
        "('namespaces/' || ulid(d.namespace_id) || '/managers/' || ulid(d.manager_id) || '/scans/' || ulid(d.scan_id))",
    )
    .taking(90),
    column("state", "d.state"),
    column("attemptCount", "d.attempt_count::float8"),
    nullable("lastAttemptTime", "d.last_attempt_time"),
    nullable("nextAttemptTime", "d.next_attempt_time"),
    nullable("lastStatusCode", "d.last_status_code::float8"),
    nullable("lastError", "d.last_error"),
];

pub(crate) const LISTING: Listing = Listing {
    select: "SELECT d.namespace_id, d.connection_id, d.id, d.create_time, d.update_time, d.manager_id, d.scan_id, d.event, \
             d.state, d.attempt_count, d.last_attempt_time, d.next_attempt_time, d.last_status_code, d.last_error \
         FROM deliveries AS d WHERE d.namespace_id = $1 AND d.connection_id = $2",
    rows: "SELECT FROM deliveries AS d WHERE d.namespace_id = $1 AND d.connection_id = $2",
    columns: COLUMNS,
    id: "d.id",
    is_indexed: is_given_up,
};

/// Selects one Scan. A filter by its name would have to build the name of every row.
const OF_SCAN: Listing = Listing {
    select: "SELECT d.namespace_id, d.connection_id, d.id, d.create_time, d.update_time, d.manager_id, d.scan_id, d.event, \
             d.state, d.attempt_count, d.last_attempt_time, d.next_attempt_time, d.last_status_code, d.last_error \
         FROM deliveries AS d WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.manager_id = $3 AND d.scan_id = $4",
    rows: "SELECT FROM deliveries AS d WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.manager_id = $3 \
           AND d.scan_id = $4",
    columns: COLUMNS,
    id: "d.id",
    is_indexed: is_given_up,
};

/// Selects all Connections of a Namespace; [`CLOSE`] ends it.
const OF_EACH: Listing = Listing {
    select: "SELECT d.namespace_id, d.connection_id, d.id, d.create_time, d.update_time, d.manager_id, d.scan_id, d.event, \
             d.state, d.attempt_count, d.last_attempt_time, d.next_attempt_time, d.last_status_code, d.last_error \
         FROM (SELECT id FROM connections WHERE namespace_id = $1) AS c CROSS JOIN LATERAL ( \
             SELECT d.* FROM deliveries AS d WHERE d.namespace_id = $1 AND d.connection_id = c.id",
    rows: "SELECT FROM (SELECT id FROM connections WHERE namespace_id = $1) AS c CROSS JOIN LATERAL ( \
               SELECT FROM deliveries AS d WHERE d.namespace_id = $1 AND d.connection_id = c.id",
    columns: COLUMNS,
    id: "d.id",
    is_indexed: is_given_up,
};
const CLOSE: &str = ") AS d";

/// Selects one Scan, on any Connection.
const OF_SCAN_ON_ANY: Listing = Listing {
    select: "SELECT d.namespace_id, d.connection_id, d.id, d.create_time, d.update_time, d.manager_id, d.scan_id, d.event, \
             d.state, d.attempt_count, d.last_attempt_time, d.next_attempt_time, d.last_status_code, d.last_error \
         FROM deliveries AS d WHERE d.namespace_id = $1 AND d.manager_id = $2 AND d.scan_id = $3",
    rows: "SELECT FROM deliveries AS d WHERE d.namespace_id = $1 AND d.manager_id = $2 AND d.scan_id = $3",
    columns: COLUMNS,
    id: "d.id",
    is_indexed: is_given_up,
};

/// Returns true for a filter that `deliveries_given_up_status_idx` serves: a terminal state without success, and
/// its status.
fn is_given_up(list: &ListQuery, comparison: &Comparison) -> bool {
    let given_up = |one: &Comparison| {
        let is_state = one.field == "state" && one.op == Op::Equal && !one.negated;
        is_state
            && matches!(&one.literal, Literal::Text(state) if state == "EXHAUSTED" || state == "CANCELLED")
    };
    let is_listed = |clause: &Clause| matches!(&clause.0[..], [one] if given_up(one));
    given_up(comparison)
        || comparison.field == "lastStatusCode" && list.filter.0.iter().any(is_listed)
}

/// Lists the deliveries of a Connection. `deliveries_pkey` serves orders by `createTime`,
/// `deliveries_given_up_status_idx` filters for unsuccessful terminal states, and `deliveries_scan_idx` one Scan.
pub async fn list(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    list: &ListQuery,
) -> Result<Page<Delivery>, Error> {
    let (listing, parents) = of_one(connection, list);
    page(listing.page(&parents, list).read(conn, list).await?, list)
}

/// Maximum cost of [`list()`].
pub async fn cost(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    list: &ListQuery,
) -> QueryResult<u64> {
    let (listing, parents) = of_one(connection, list);
    listing.cost(conn, &parents, list, "").await
}

fn of_one(connection: ConnectionName, list: &ListQuery) -> (Listing, Vec<Uuid>) {
    let mut parents = vec![
        connection.namespace.to_uuid(),
        connection.connection.to_uuid(),
    ];
    match scan_of(list) {
        Some(scan) => {
            parents.extend([scan.manager.to_uuid(), scan.scan.to_uuid()]);
            (OF_SCAN, parents)
        }
        None => (LISTING, parents),
    }
}

/// Same as [`list()`], for all existing Connections of `namespace`. Costs one look-up per Connection.
pub async fn list_all(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> Result<Page<Delivery>, Error> {
    let query = match scan_of(list) {
        Some(scan) => OF_SCAN_ON_ANY.page(&on_any(namespace, scan), list),
        None => OF_EACH.page_of_each(&[namespace.to_uuid()], list, CLOSE),
    };
    page(query.read(conn, list).await?, list)
}

/// Maximum cost of [`list_all`]. In the order of `createTime` that is a page of each Connection, which is always
/// allowed.
pub async fn cost_of_all(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> QueryResult<u64> {
    match scan_of(list) {
        Some(scan) => {
            let parents = on_any(namespace, scan);
            OF_SCAN_ON_ANY.cost(conn, &parents, list, "").await
        }
        None if is_by_create_time(list) => {
            let connections: i64 = connections::table
                .filter(connections::namespace_id.eq(namespace.to_uuid()))
                .count()
                .get_result(conn)
                .await?;
            let rows = u64::from(list.page_size) + ROWS_OF_LOOKUP;
            Ok((connections.unsigned_abs() * rows * ROW).min(MAX_COST))
        }
        None => {
            let parents = [namespace.to_uuid()];
            OF_EACH.cost(conn, &parents, list, CLOSE).await
        }
    }
}

fn on_any(namespace: Id, scan: ScanName) -> [Uuid; 3] {
    [namespace, scan.manager, scan.scan].map(|id| id.to_uuid())
}

/// Returns the Scan that the filter selects, if it selects one.
fn scan_of(list: &ListQuery) -> Option<ScanName> {
    list.filter.0.iter().find_map(|clause| match &clause.0[..] {
        [one] if one.field == "scan" && one.op == Op::Equal && !one.negated => match &one.literal {
            Literal::Text(name) => name.parse().ok(),
            _ => None,
        },
        _ => None,
    })
}

fn page(read: Rows<DeliveryRow>, list: &ListQuery) -> Result<Page<Delivery>, Error> {
    let items = read
        .rows
        .into_iter()
        .map(|row| Ok((Id::from_uuid(row.id), row.into_delivery()?)))
        .collect::<Result<_, Error>>()?;
    Ok(Page::new(list, items, read.more))
}

/// Returns a delivery. By primary key, because the id contains the time of its partition.
pub async fn get(
    conn: &mut AsyncPgConnection,
    name: DeliveryName,
) -> Result<Option<Delivery>, Error> {
    deliveries::table
        .find((
            name.namespace.to_uuid(),
            name.connection.to_uuid(),
            time_of(name.delivery),
            name.delivery.to_uuid(),
        ))
        .select(DeliveryRow::as_select())
        .first(conn)
        .await
        .optional()?
        .map(DeliveryRow::into_delivery)
        .transpose()
}

/// Returns a delivery with its newest attempts, in ascending order.
pub async fn get_with_attempts(
    conn: &mut AsyncPgConnection,
    name: DeliveryName,
) -> Result<Option<DeliveryWithAttempts>, Error> {
    let Some(delivery) = get(conn, name).await? else {
        return Ok(None);
    };
    let attempts = attempts(conn, name).await?;
    Ok(Some(DeliveryWithAttempts { delivery, attempts }))
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = delivery_attempts)]
struct AttemptRow {
    time: DateTime<Utc>,
    status_code: Option<i16>,
    error: Option<String>,
    latency_ms: i32,
    dns_ms: Option<i32>,
    connect_ms: Option<i32>,
    tls_ms: Option<i32>,
    first_byte_ms: Option<i32>,
    address: Option<String>,
    response_body: Option<String>,
}

/// Reads `delivery_attempts_pkey` in each partition since the delivery was created, with a minute's tolerance for
/// clocks.
async fn attempts(
    conn: &mut AsyncPgConnection,
    name: DeliveryName,
) -> QueryResult<Vec<DeliveryAttempt>> {
    let since = time_of(name.delivery) - TimeDelta::minutes(1);
    let rows: Vec<AttemptRow> = delivery_attempts::table
        .filter(delivery_attempts::delivery_id.eq(name.delivery.to_uuid()))
        .filter(delivery_attempts::time.ge(since))
        .order((
            delivery_attempts::time.desc(),
            delivery_attempts::number.desc(),
        ))
        .limit(MAX_ATTEMPTS)
        .select(AttemptRow::as_select())
        .load(conn)
        .await?;
    let millis = |value: Option<i32>| value.and_then(|value| value.try_into().ok());
    let attempt = |row: AttemptRow| DeliveryAttempt {
        time: row.time.into(),
        status_code: row.status_code.and_then(|code| code.try_into().ok()),
        error: row.error,
        latency_ms: row.latency_ms.try_into().unwrap_or(0),
        phases: AttemptPhases {
            dns_ms: millis(row.dns_ms),
            connect_ms: millis(row.connect_ms),
            tls_ms: millis(row.tls_ms),
            first_byte_ms: millis(row.first_byte_ms),
        },
        address: row.address,
        response_body: row.response_body,
    };
    Ok(rows.into_iter().rev().map(attempt).collect())
}
