//! Replays, as resources and as jobs.
//!
//! A job runs in batches. Each batch is one transaction that reopens deliveries and moves the position forward. So
//! each delivery of the window is reopened once, even if a process dies. Any replica may run the next batch;
//! `next_batch_time` sets the common pace.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Double, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    ConnectionName, DeliveryState, Id, Replay, ReplayName, list::ListQuery, replay::CreateReplay,
};
use uuid::Uuid;

use crate::{
    Error, QueryResult,
    listing::{Listing, Page, Rows, column, no_other_index},
    prepared::query,
    schema::{connections, replays},
    words,
};

mod advance;

pub use advance::{Advanced, Pace, advance, postpone};

/// Maximum number of replays that run at a time for one Connection.
pub const MAX_RUNNING: i64 = 10;
/// Maximum number of deliveries read to count the total. For a larger window the job counts the rest.
const COUNTED_AT_ONCE: i64 = 20_000;

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = replays)]
struct ReplayRow {
    namespace_id: Uuid,
    connection_id: Uuid,
    id: Uuid,
    create_time: DateTime<Utc>,
    update_time: DateTime<Utc>,
    start_time: DateTime<Utc>,
    end_time: DateTime<Utc>,
    states: Option<Vec<String>>,
    state: String,
    total: i64,
    done: i64,
}

impl ReplayRow {
    fn into_replay(self) -> Result<Replay, Error> {
        let parse = |states: Vec<String>| states.iter().map(|word| words::parse(word)).collect();
        Ok(Replay {
            name: ReplayName {
                namespace: Id::from_uuid(self.namespace_id),
                connection: Id::from_uuid(self.connection_id),
                replay: Id::from_uuid(self.id),
            },
            create_time: self.create_time.into(),
            update_time: self.update_time.into(),
            start_time: self.start_time.into(),
            end_time: self.end_time.into(),
            states: self.states.map(parse).transpose()?,
            state: words::parse(&self.state)?,
            total: self.total.try_into().unwrap_or(0),
            done: self.done.try_into().unwrap_or(0),
        })
    }
}

/// Starts a replay. Returns `None` if [`MAX_RUNNING`] replays of the Connection already run. The window ends now at
/// the latest: later deliveries have not been missed, and must not be sent twice.
///
/// Call inside a transaction: it locks the Connection's row, so that the limit holds.
///
/// # Errors
/// If the database does not answer, or there is no such Connection.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    draft: &CreateReplay,
) -> Result<Option<Replay>, Error> {
    let parents = (
        connection.namespace.to_uuid(),
        connection.connection.to_uuid(),
    );
    connections::table
        .find(parents)
        .select(connections::id)
        .for_no_key_update()
        .get_result::<Uuid>(conn)
        .await?;
    let id = Id::generate();
    let inserted: Option<ReplayRow> = query!(
        "replays/insert",
        SqlUuid: parents.0,
        SqlUuid: parents.1,
        SqlUuid: id.to_uuid(),
        Timestamptz: draft.start_time.to_chrono(),
        Nullable<Timestamptz>: draft.end_time.map(|time| time.to_chrono()),
        Nullable<Array<Text>>: draft.states.as_deref().map(states),
        Timestamptz: id.time().to_chrono(),
        BigInt: COUNTED_AT_ONCE,
        BigInt: MAX_RUNNING,
    )
    .get_result(conn)
    .await
    .optional()?;
    inserted.map(ReplayRow::into_replay).transpose()
}

fn states(states: &[DeliveryState]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}

/// Returns a replay. By primary key.
pub async fn get(conn: &mut AsyncPgConnection, name: ReplayName) -> Result<Option<Replay>, Error> {
    replays::table
        .find(key(name))
        .select(ReplayRow::as_select())
        .first(conn)
        .await
        .optional()?
        .map(ReplayRow::into_replay)
        .transpose()
}

fn key(name: ReplayName) -> (Uuid, Uuid, Uuid) {
    (
        name.namespace.to_uuid(),
        name.connection.to_uuid(),
        name.replay.to_uuid(),
    )
}

/// Cancels a running replay. Deliveries that it has reopened are still sent. A replay that has ended stays unchanged.
/// Waits for a batch in progress. Returns false if there is no replay of this name.
pub async fn cancel(conn: &mut AsyncPgConnection, name: ReplayName) -> QueryResult<bool> {
    let (namespace, connection, id) = key(name);
    let found = query!(
        "replays/cancel",
        SqlUuid: namespace,
        SqlUuid: connection,
        SqlUuid: id,
    )
    .execute(conn)
    .await?;
    Ok(found > 0)
}

pub(crate) const LISTING: Listing = Listing {
    select: "SELECT namespace_id, connection_id, id, create_time, update_time, start_time, end_time, states, state, \
         total, done \
         FROM replays WHERE namespace_id = $1 AND connection_id = $2",
    rows: "SELECT FROM replays WHERE namespace_id = $1 AND connection_id = $2",
    columns: &[
        column(
            "name",
            "('namespaces/' || ulid(namespace_id) || '/connections/' || ulid(connection_id) || '/replays/' || ulid(id))",
        )
        .taking(90),
        column("createTime", "create_time"),
        column("updateTime", "update_time"),
        column("startTime", "start_time"),
        column("endTime", "end_time"),
        column("state", "state"),
        column("total", "total::float8"),
        column("done", "done::float8"),
    ],
    id: "id",
    is_indexed: no_other_index,
};

/// Lists the replays of a Connection. `replays_list_idx` serves the default order.
pub async fn list(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    list: &ListQuery,
) -> Result<Page<Replay>, Error> {
    let parents = [
        connection.namespace.to_uuid(),
        connection.connection.to_uuid(),
    ];
    let Rows::<ReplayRow> { rows, more } = LISTING.page(&parents, list).read(conn, list).await?;
    let items = rows
        .into_iter()
        .map(|row| Ok((Id::from_uuid(row.id), row.into_replay()?)))
        .collect::<Result<_, Error>>()?;
    Ok(Page::new(list, items, more))
}

/// Maximum cost of [`list`].
pub async fn cost(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    list: &ListQuery,
) -> QueryResult<u64> {
    let parents = [
        connection.namespace.to_uuid(),
        connection.connection.to_uuid(),
    ];
    LISTING.cost(conn, &parents, list, "").await
}

/// Returns the time until a replay needs a batch; `None` if none runs. Served by `replays_due_idx`.
pub async fn next_due(conn: &mut AsyncPgConnection) -> QueryResult<Option<Duration>> {
    #[derive(QueryableByName)]
    struct Next {
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
    }
    let next: Next = query!("replays/next_due").get_result(conn).await?;
    // The time is negative for a replay that is due.
    let until = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(next.seconds.map(until))
}

/// Makes running replays due after the database's clock went back: otherwise their next batches would be late by the
/// difference. Returns their number. A batch that was not due yet may be early, so call it only then.
pub async fn follow_clock(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!("replays/follow_clock").execute(conn).await
}
