//! One batch of one replay.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName,
    sql_types::{Array, BigInt, Bool, Double, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use domain::{DeliveryState, Id, ReplayName};
use uuid::Uuid;

use crate::{
    QueryResult,
    error::{is_cut_off, is_passing},
    fair::Round,
    prepared::query,
};

/// Speed of replays.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Maximum number of deliveries reopened in one batch.
    pub batch: i64,
    /// Number of due deliveries of the Connection from which on no batch runs, so that a replay does not push back
    /// new deliveries.
    pub backlog: i64,
    /// Interval between two batches of all replays of an account together.
    pub pause: Duration,
    /// Time limit for counting a replay's deliveries. After it, the replay keeps its lower bound.
    pub count_timeout: Duration,
}

/// Outcome of a replay's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// Number of deliveries that were reopened, or skipped because their Scan is gone.
    Reopened(i64),
    /// The Connection has enough due deliveries or is disabled, or the replay cannot continue now.
    Waiting,
    /// Its deliveries were counted, or are too many to count.
    Counted,
    Done,
}

/// Number of deliveries, in any state, that a batch reads.
const LOOKED_AT: i64 = 2_000;
/// Interval after which a disabled Connection is checked again.
const DISABLED_PAUSE: Duration = Duration::from_secs(2);
const ENOUGH_PAUSE: Duration = Duration::from_millis(250);
const FAILED_PAUSE: Duration = Duration::from_secs(60);

#[derive(QueryableByName)]
struct Job {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Timestamptz)]
    start_time: DateTime<Utc>,
    #[diesel(sql_type = Timestamptz)]
    end_time: DateTime<Utc>,
    #[diesel(sql_type = Nullable<Array<Text>>)]
    states: Option<Vec<String>>,
    #[diesel(sql_type = Bool)]
    counted: bool,
    #[diesel(sql_type = Timestamptz)]
    place_time: DateTime<Utc>,
    #[diesel(sql_type = SqlUuid)]
    place_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    account_id: Uuid,
}

/// Takes the replay that has been due the longest, of the accounts that had no turn in this round, and gives it one
/// turn, after a call of `begin` with its name. Returns `None` if none is due.
///
/// Call inside a transaction: its row stays locked until the commit, and a row that another replica holds is
/// skipped. Served by `replays_due_idx` and `deliveries_pkey`.
pub async fn advance(
    conn: &mut AsyncPgConnection,
    pace: Pace,
    round: &mut Round,
    begin: impl FnOnce(ReplayName),
) -> QueryResult<Option<(ReplayName, Advanced)>> {
    let job = match take(conn, round).await? {
        None if round.end() => take(conn, round).await?,
        job => job,
    };
    let Some(job) = job else { return Ok(None) };
    round.serve(Id::from_uuid(job.account_id));
    begin(job.name());
    // A savepoint, so that a replay that cannot continue does not block the others.
    let advanced = conn.transaction(async |conn| job.advance(conn, pace).await);
    let advanced = match advanced.await {
        Err(error) if !is_passing(&error) => {
            tracing::error!(replay.name = %job.name(), retry_in = ?FAILED_PAUSE, "a replay cannot go on: {error}");
            postpone(conn, job.name(), FAILED_PAUSE).await?;
            Advanced::Waiting
        }
        advanced => advanced?,
    };
    Ok(Some((job.name(), advanced)))
}

async fn take(conn: &mut AsyncPgConnection, round: &Round) -> QueryResult<Option<Job>> {
    query!(
        "replays/take",
        Array<SqlUuid>: round.served().map(Id::to_uuid).collect::<Vec<_>>(),
    )
    .get_result(conn)
    .await
    .optional()
}

/// Postpones the next batch of a replay. By primary key.
pub async fn postpone(
    conn: &mut AsyncPgConnection,
    replay: ReplayName,
    wait: Duration,
) -> QueryResult<()> {
    query!(
        "replays/postpone",
        SqlUuid: replay.namespace.to_uuid(),
        SqlUuid: replay.connection.to_uuid(),
        SqlUuid: replay.replay.to_uuid(),
        Double: wait.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

impl Job {
    fn name(&self) -> ReplayName {
        ReplayName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
            replay: Id::from_uuid(self.id),
        }
    }

    fn states(&self) -> Vec<&str> {
        match &self.states {
            Some(states) => states.iter().map(String::as_str).collect(),
            None => DeliveryState::ALL.map(DeliveryState::as_str).to_vec(),
        }
    }

    async fn advance(&self, conn: &mut AsyncPgConnection, pace: Pace) -> QueryResult<Advanced> {
        if !self.counted {
            self.count(conn, pace.count_timeout).await?;
            return Ok(Advanced::Counted);
        }
        if let Some(pause) = self.enough(conn, pace).await? {
            postpone(conn, self.name(), pause).await?;
            return Ok(Advanced::Waiting);
        }
        self.reopen(conn, pace).await
    }

    /// Counts in a savepoint, so that a count that is cut off stops neither this replay nor the ones after it.
    async fn count(&self, conn: &mut AsyncPgConnection, timeout: Duration) -> QueryResult<()> {
        let counted = conn
            .transaction(async |conn| {
                let timeout = format!("SET LOCAL statement_timeout = {}", timeout.as_millis());
                conn.batch_execute(&timeout).await?;
                query!(
                    "replays/count",
                    SqlUuid: self.namespace_id,
                    SqlUuid: self.connection_id,
                    SqlUuid: self.id,
                    Timestamptz: self.start_time,
                    Timestamptz: self.end_time,
                    Array<Text>: self.states(),
                )
                .execute(conn)
                .await
            })
            .await;
        match counted {
            Err(error) if !is_cut_off(&error) => return Err(error),
            _ => {}
        }
        query!(
            "replays/set_counted",
            SqlUuid: self.namespace_id,
            SqlUuid: self.connection_id,
            SqlUuid: self.id,
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// Returns when to check again if the Connection has enough due deliveries or is disabled, otherwise `None`.
    /// Served by `deliveries_due_by_connection_idx`.
    async fn enough(
        &self,
        conn: &mut AsyncPgConnection,
        pace: Pace,
    ) -> QueryResult<Option<Duration>> {
        #[derive(QueryableByName)]
        struct Found {
            #[diesel(sql_type = Bool)]
            active: bool,
            #[diesel(sql_type = BigInt)]
            waiting: i64,
        }
        let found: Found = query!(
            "replays/backlog",
            SqlUuid: self.namespace_id,
            SqlUuid: self.connection_id,
            BigInt: pace.backlog,
        )
        .get_result(conn)
        .await?;
        Ok(if !found.active {
            Some(DISABLED_PAUSE)
        } else if found.waiting >= pace.backlog {
            Some(ENOUGH_PAUSE)
        } else {
            None
        })
    }

    /// Reads the next deliveries of the window, reopens the relevant ones, and moves to the last one read. If there
    /// are more than a batch holds, it moves to the last one reopened and reads no further.
    async fn reopen(&self, conn: &mut AsyncPgConnection, pace: Pace) -> QueryResult<Advanced> {
        #[derive(QueryableByName)]
        struct Moved {
            #[diesel(sql_type = BigInt)]
            chosen: i64,
            #[diesel(sql_type = Bool)]
            done: bool,
        }
        let moved: Moved = query!(
            "replays/reopen",
            SqlUuid: self.namespace_id,
            SqlUuid: self.connection_id,
            SqlUuid: self.id,
            Timestamptz: self.place_time,
            SqlUuid: self.place_id,
            Timestamptz: self.end_time,
            Array<Text>: self.states(),
            BigInt: LOOKED_AT,
            BigInt: pace.batch,
            Double: pace.pause.as_secs_f64(),
        )
        .get_result(conn)
        .await?;
        Ok(if moved.done {
            Advanced::Done
        } else {
            Advanced::Reopened(moved.chosen)
        })
    }
}
