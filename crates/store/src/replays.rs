//! Replays, as resources and as jobs.
//!
//! A job runs in batches. Each batch is one transaction that reopens deliveries and moves the position forward. So
//! each delivery of the window is reopened once, even if a process dies. Any replica may run the next batch;
//! `next_batch_time` sets the common pace.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName, sql_query,
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
    words,
};

mod advance;

pub use advance::{Advanced, Pace, advance};

/// Maximum number of replays that run at a time for one Connection.
pub const MAX_RUNNING: i64 = 10;
/// Maximum number of deliveries read to count the total. For a larger window the job counts the rest.
const COUNTED_AT_ONCE: i64 = 20_000;

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    create_time: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    update_time: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    start_time: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    end_time: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Array<Text>>)]
    states: Option<Vec<String>>,
    #[diesel(sql_type = Text)]
    state: String,
    #[diesel(sql_type = BigInt)]
    total: i64,
    #[diesel(sql_type = BigInt)]
    done: i64,
}

macro_rules! replay_columns {
    () => {
        "namespace_id, connection_id, id, create_time, update_time, start_time, end_time, states, state, total, done"
    };
}

impl Row {
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
    let locked =
        sql_query("SELECT FROM connections WHERE namespace_id = $1 AND id = $2 FOR NO KEY UPDATE")
            .bind::<SqlUuid, _>(parents.0)
            .bind::<SqlUuid, _>(parents.1)
            .execute(conn)
            .await?;
    if locked == 0 {
        return Err(diesel::result::Error::NotFound.into());
    }
    let id = Id::generate();
    let inserted: Option<Row> = sql_query(concat!(
        "WITH bounds AS (SELECT least(coalesce($5, clock_timestamp()), clock_timestamp()) AS end_time), \
         looked_at AS ( \
             SELECT d.state FROM deliveries AS d, bounds AS b \
             WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.create_time BETWEEN $4 AND b.end_time \
             LIMIT $8 + 1 \
         ), counted AS ( \
             SELECT count(*) FILTER (WHERE $6 IS NULL OR state = ANY ($6)) AS total, count(*) <= $8 AS counted \
             FROM looked_at \
         ) \
         INSERT INTO replays (namespace_id, connection_id, id, create_time, update_time, start_time, end_time, states, \
             total, counted, place_time, place_id, next_batch_time) \
         SELECT $1, $2, $3, $7, $7, least($4, end_time), end_time, $6, total, counted, least($4, end_time), \
             '00000000-0000-0000-0000-000000000000', clock_timestamp() \
         FROM bounds, counted \
         WHERE $9 > (SELECT count(*) FROM replays \
             WHERE namespace_id = $1 AND connection_id = $2 AND state = 'RUNNING') \
         RETURNING ",
        replay_columns!()
    ))
    .bind::<SqlUuid, _>(parents.0)
    .bind::<SqlUuid, _>(parents.1)
    .bind::<SqlUuid, _>(id.to_uuid())
    .bind::<Timestamptz, _>(draft.start_time.to_chrono())
    .bind::<Nullable<Timestamptz>, _>(draft.end_time.map(|time| time.to_chrono()))
    .bind::<Nullable<Array<Text>>, _>(draft.states.as_deref().map(states))
    .bind::<Timestamptz, _>(id.time().to_chrono())
    .bind::<BigInt, _>(COUNTED_AT_ONCE)
    .bind::<BigInt, _>(MAX_RUNNING)
    .get_result(conn)
    .await
    .optional()?;
    inserted.map(Row::into_replay).transpose()
}

fn states(states: &[DeliveryState]) -> Vec<&'static str> {
    states.iter().map(|state| state.as_str()).collect()
}

/// Reads by primary key.
pub async fn get(conn: &mut AsyncPgConnection, name: ReplayName) -> Result<Option<Replay>, Error> {
    sql_query(concat!(
        "SELECT ",
        replay_columns!(),
        " FROM replays WHERE namespace_id = $1 AND connection_id = $2 AND id = $3"
    ))
    .bind::<SqlUuid, _>(name.namespace.to_uuid())
    .bind::<SqlUuid, _>(name.connection.to_uuid())
    .bind::<SqlUuid, _>(name.replay.to_uuid())
    .get_result::<Row>(conn)
    .await
    .optional()?
    .map(Row::into_replay)
    .transpose()
}

/// Cancels a running replay; reopened deliveries stay reopened. A replay that has ended stays unchanged. Waits for
/// a batch in progress. Returns false if there is no replay of this name.
pub async fn cancel(conn: &mut AsyncPgConnection, name: ReplayName) -> QueryResult<bool> {
    let found = sql_query(
        "UPDATE replays SET update_time = CASE state WHEN 'RUNNING' THEN clock_timestamp() ELSE update_time END, \
             state = CASE state WHEN 'RUNNING' THEN 'CANCELLED' ELSE state END \
         WHERE namespace_id = $1 AND connection_id = $2 AND id = $3",
    )
    .bind::<SqlUuid, _>(name.namespace.to_uuid())
    .bind::<SqlUuid, _>(name.connection.to_uuid())
    .bind::<SqlUuid, _>(name.replay.to_uuid())
    .execute(conn)
    .await?;
    Ok(found > 0)
}

pub(crate) const LISTING: Listing = Listing {
    select: concat!(
        "SELECT ",
        replay_columns!(),
        " FROM replays WHERE namespace_id = $1 AND connection_id = $2"
    ),
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

/// Default order served by `replays_list_idx`.
pub async fn list(
    conn: &mut AsyncPgConnection,
    connection: ConnectionName,
    list: &ListQuery,
) -> Result<Page<Replay>, Error> {
    let parents = [
        connection.namespace.to_uuid(),
        connection.connection.to_uuid(),
    ];
    let Rows::<Row> { rows, more } = LISTING.page(&parents, list).read(conn, list).await?;
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
    let next: Next = sql_query(
        "SELECT extract(epoch FROM min(next_batch_time) - clock_timestamp())::float8 AS seconds \
         FROM replays WHERE state = 'RUNNING'",
    )
    .get_result(conn)
    .await?;
    // Negative for one that is due.
    let until = |seconds| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(next.seconds.map(until))
}

/// Makes running replays due after the database's clock went back: otherwise their next batches would be late by the
/// difference. Returns their number. A batch that was not due yet may be early, so call it only then.
pub async fn follow_clock(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    sql_query(
        "UPDATE replays SET next_batch_time = clock_timestamp() \
         WHERE state = 'RUNNING' AND next_batch_time > clock_timestamp()",
    )
    .execute(conn)
    .await
}
