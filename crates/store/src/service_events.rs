//! Service events: stored in the transaction of their cause, and moved into deliveries by the dispatcher.
//!
//! Nothing is stored if no Connection of the Namespace receives the type. So events cost nothing where no one asked for
//! them.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Jsonb, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, FeedName, Id, ServiceEventType, Timestamp, service_event::Details};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, words};

/// Stores an event about the resource with this name. Call in the transaction of its cause. Reads the Connections of
/// the Namespace.
pub(crate) async fn record(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    event_type: ServiceEventType,
    name: &str,
    details: &Details,
) -> QueryResult<()> {
    query!(
        "service_events/record",
        SqlUuid: namespace.to_uuid(),
        Text: event_type.as_str(),
        Text: name,
        Jsonb: stored(details),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Stores an event about a feed, for each Namespace that watches it. A gap in it starts no earlier than the first watch
/// of the Namespace's account. Call in the transaction of its cause. Served by `connections_events_idx` and by primary
/// key.
pub(crate) async fn record_of_feed(
    conn: &mut AsyncPgConnection,
    feed: &FeedName,
    event_type: ServiceEventType,
    details: &Details,
) -> QueryResult<()> {
    let gap = details.gap.as_ref();
    query!(
        "service_events/record_of_feed",
        Text: feed.as_str(),
        Text: event_type.as_str(),
        Jsonb: stored(details),
        Nullable<Timestamptz>: gap.and_then(|gap| gap.from).map(Timestamp::to_chrono),
        Nullable<Timestamptz>: gap.map(|gap| gap.to.to_chrono()),
    )
    .execute(conn)
    .await?;
    Ok(())
}

fn stored(details: &Details) -> Value {
    // Our details always have a JSON form.
    words::json(serde_json::to_value(details).unwrap_or_default())
}

/// Result of [`fan_out`].
#[derive(Debug)]
pub struct FannedOut {
    /// Number of events.
    pub events: usize,
    /// Active Connections with new deliveries, for [`crate::lanes::mark_due`] after the commit.
    pub waiting: Vec<ConnectionName>,
}

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct TakenRow {
    #[diesel(sql_type = BigInt)]
    id: i64,
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = Text)]
    event_type: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Jsonb)]
    details: Value,
    #[diesel(sql_type = Timestamptz)]
    create_time: DateTime<Utc>,
    #[diesel(sql_type = Nullable<SqlUuid>)]
    connection_id: Option<Uuid>,
    #[diesel(sql_type = Bool)]
    active: bool,
}

impl TakenRow {
    /// Returns the body. It is not parsed, so that an event of a later release blocks no other.
    fn body(&self, id: Id) -> Value {
        let mut fields = match &self.details {
            Value::Object(details) => details.clone(),
            _ => Map::new(),
        };
        let time = Timestamp::from(self.create_time);
        for (field, value) in [
            ("type", json!(self.event_type)),
            ("id", json!(id)),
            ("time", json!(time)),
            ("name", json!(self.name)),
        ] {
            fields.insert(field.to_owned(), value);
        }
        Value::Object(fields)
    }
}

#[derive(QueryableByName)]
struct IdRow {
    #[diesel(sql_type = BigInt)]
    id: i64,
}

/// Returns up to `limit` events, oldest first, except some: one, or as many as have at most `deliveries` together. Served
/// by `connections_events_idx`.
pub async fn list(
    conn: &mut AsyncPgConnection,
    limit: i64,
    except: &[i64],
    deliveries: i64,
) -> QueryResult<Vec<i64>> {
    let list = query!(
        "service_events/list",
        BigInt: limit,
        Array<BigInt>: except,
        BigInt: deliveries,
    );
    let rows: Vec<IdRow> = list.load(conn).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Moves these events into deliveries to the Connections that receive their type. Those that another replica is moving
/// are skipped. Two statements; call inside a transaction.
pub async fn fan_out(conn: &mut AsyncPgConnection, events: &[i64]) -> QueryResult<FannedOut> {
    let rows: Vec<TakenRow> = query!("service_events/take", Array<BigInt>: events)
        .load(conn)
        .await?;
    let (mut namespaces, mut connections, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    let (mut times, mut bodies) = (Vec::new(), Vec::new());
    let mut waiting = BTreeSet::new();
    let mut events = 0;
    for of_event in rows.chunk_by(|one, next| one.id == next.id) {
        events += 1;
        let event = Id::generate();
        for row in of_event {
            let Some(connection) = row.connection_id else {
                continue;
            };
            let delivery = Id::generate();
            namespaces.push(row.namespace_id);
            connections.push(connection);
            ids.push(delivery.to_uuid());
            times.push(delivery.time().to_chrono());
            bodies.push(row.body(event));
            if row.active {
                waiting.insert(ConnectionName {
                    namespace: Id::from_uuid(row.namespace_id),
                    connection: Id::from_uuid(connection),
                });
            }
        }
    }
    if !ids.is_empty() {
        query!(
            "service_events/insert_deliveries",
            Array<SqlUuid>: namespaces,
            Array<SqlUuid>: connections,
            Array<SqlUuid>: ids,
            Array<Timestamptz>: times,
            Array<Jsonb>: bodies,
        )
        .execute(conn)
        .await?;
    }
    Ok(FannedOut {
        events,
        waiting: waiting.into_iter().collect(),
    })
}
