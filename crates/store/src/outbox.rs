//! Events that have happened but are not published yet.
//!
//! Code that changes state enqueues the event in the same transaction, and the relay of any process publishes it.
//! Rows leave in about the order of their arrival. With several relays, no reader can rely on an order.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use diesel::{
    ExpressionMethods, QueryDsl, QueryResult, Queryable, QueryableByName, Selectable,
    SelectableHelper, sql_query,
    sql_types::{Array, BigInt, Binary, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;
use events::{AnyEvent, Message, TraceContext};
use uuid::Uuid;

use crate::{prepared::Prepared, schema::outbox};

/// Bounds the cost of counting a long outbox, which every process does.
const MAX_COUNTED: i64 = 10_000;

/// An event that waits for its relay.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = outbox, check_for_backend(diesel::pg::Pg))]
pub struct OutboxRow {
    pub id: i64,
    /// The routing key.
    pub event: String,
    pub message_id: Uuid,
    pub payload: Vec<u8>,
    /// Trace of the event's origin.
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
    pub create_time: DateTime<Utc>,
}

struct NewRow {
    event: String,
    message_id: Uuid,
    payload: Vec<u8>,
    traceparent: Option<String>,
    tracestate: Option<String>,
}

/// Contents of the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pending {
    pub count: i64,
    pub oldest: Option<Timestamp>,
}

/// Enqueues `event` with the trace of the current span. Call it in the transaction that makes the event true, and
/// wake the relay after the commit.
pub async fn enqueue(
    conn: &mut AsyncPgConnection,
    event: &(impl Into<AnyEvent> + Clone + Sync),
) -> QueryResult<()> {
    insert(
        conn,
        vec![NewRow::new(event.clone(), TraceContext::current())],
    )
    .await
}

/// Enqueues many events at once, all with the trace of the current span.
pub async fn enqueue_all<E: Into<AnyEvent>>(
    conn: &mut AsyncPgConnection,
    events: impl IntoIterator<Item = E>,
) -> QueryResult<()> {
    let trace = TraceContext::current();
    let rows = events
        .into_iter()
        .map(|event| NewRow::new(event, trace.clone()))
        .collect();
    insert(conn, rows).await
}

/// Locks and returns up to `limit` events from the id `floor` on, oldest first, except those with the routing keys in
/// `except`.
///
/// Call inside a transaction: rows stay locked until its end, and rows that another relay holds are
/// skipped. Served by the primary key.
pub async fn take(
    conn: &mut AsyncPgConnection,
    floor: i64,
    limit: i64,
    except: &BTreeSet<String>,
) -> QueryResult<Vec<OutboxRow>> {
    outbox::table
        .filter(outbox::id.ge(floor))
        .filter(diesel::dsl::not(outbox::event.eq_any(except)))
        .order(outbox::id.asc())
        .limit(limit)
        .select(OutboxRow::as_select())
        .for_update()
        .skip_locked()
        .load(conn)
        .await
}

/// Deletes events that were published. Served by the primary key.
pub async fn delete(conn: &mut AsyncPgConnection, ids: &[i64]) -> QueryResult<()> {
    if ids.is_empty() {
        return Ok(());
    }
    diesel::delete(outbox::table.filter(outbox::id.eq_any(ids)))
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns the number of waiting events from the id `floor` on, and the time of the first. Above [`MAX_COUNTED`], the number is estimated
/// from the ascending ids.
///
/// Every process calls this every few seconds, even while the broker is away and the table grows: the limit bounds
/// the cost. Served by the primary key.
pub async fn pending(conn: &mut AsyncPgConnection, floor: i64) -> QueryResult<Pending> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        count: i64,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        oldest: Option<DateTime<Utc>>,
    }
    let row: Row = sql_query(format!(
        "SELECT CASE WHEN count < {MAX_COUNTED} THEN count \
                     ELSE greatest(count, (SELECT max(id) - min(id) + 1 FROM outbox WHERE id >= $1)) END AS count, \
                (SELECT create_time FROM outbox WHERE id >= $1 ORDER BY id LIMIT 1) AS oldest \
         FROM (SELECT count(*) AS count FROM (SELECT FROM outbox WHERE id >= $1 LIMIT {MAX_COUNTED}) AS waiting) AS counted"
    ))
    .bind::<BigInt, _>(floor)
    .get_result(conn)
    .await?;
    Ok(Pending {
        count: row.count,
        oldest: row.oldest.map(Timestamp::from),
    })
}

async fn insert(conn: &mut AsyncPgConnection, rows: Vec<NewRow>) -> QueryResult<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let (mut events, mut ids, mut payloads) = (Vec::new(), Vec::new(), Vec::new());
    let (mut parents, mut states) = (Vec::new(), Vec::new());
    for row in rows {
        events.push(row.event);
        ids.push(row.message_id);
        payloads.push(row.payload);
        parents.push(row.traceparent);
        states.push(row.tracestate);
    }
    Prepared(
        sql_query(
            "INSERT INTO outbox (event, message_id, payload, traceparent, tracestate) \
             SELECT * FROM unnest($1, $2, $3, $4, $5)",
        )
        .bind::<Array<Text>, _>(events)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<Binary>, _>(payloads)
        .bind::<Array<Nullable<Text>>, _>(parents)
        .bind::<Array<Nullable<Text>>, _>(states),
    )
    .execute(conn)
    .await?;
    Ok(())
}

impl NewRow {
    fn new(event: impl Into<AnyEvent>, trace: TraceContext) -> Self {
        let message = Message::new(event).encode();
        Self {
            event: message.key,
            message_id: message.id,
            payload: message.payload.into(),
            traceparent: trace.traceparent,
            tracestate: trace.tracestate,
        }
    }
}
