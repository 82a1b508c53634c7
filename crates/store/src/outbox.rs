//! Events that are true but not yet published.
//!
//! Whoever changes state enqueues the event in the same transaction; the relay of any process takes it
//! from there. Rows leave in about the order in which they came, but with several relays in no order
//! that a reader could rely on.

use chrono::{DateTime, Utc};
use diesel::{
    ExpressionMethods, QueryDsl, QueryResult, Queryable, Selectable, SelectableHelper, sql_query,
    sql_types::{Array, Binary, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Timestamp;
use events::{AnyEvent, Message, TraceContext};
use uuid::Uuid;

use crate::{prepared::Prepared, schema::outbox};

/// An event that waits for its relay.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = outbox, check_for_backend(diesel::pg::Pg))]
pub struct OutboxRow {
    pub id: i64,
    /// The routing key.
    pub event: String,
    pub message_id: Uuid,
    pub payload: Vec<u8>,
    /// The trace that the event came from.
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

/// Enqueues `event` with the trace of the current span. Call in the transaction that makes it true, and
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

/// Deletes and returns up to `limit` events, oldest first.
///
/// Call inside a transaction: rows stay locked until its end, and rows that another relay holds are
/// skipped. Served by the primary key.
pub async fn take(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<Vec<OutboxRow>> {
    outbox::table
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

/// How much waits, and since when. Reads the whole table, which is nearly empty while relays run.
pub async fn pending(conn: &mut AsyncPgConnection) -> QueryResult<Pending> {
    let (count, oldest): (i64, Option<DateTime<Utc>>) = outbox::table
        .select((
            diesel::dsl::count_star(),
            diesel::dsl::min(outbox::create_time),
        ))
        .first(conn)
        .await?;
    Ok(Pending {
        count,
        oldest: oldest.map(Timestamp::from),
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
