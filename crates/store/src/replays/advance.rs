//! One batch of one replay.

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Double, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl, SimpleAsyncConnection};
use domain::{DeliveryState, Id, ReplayName};
use uuid::Uuid;

use crate::{
    QueryResult,
    deliveries::{reopened, scan_is_there},
    error::{is_cut_off, is_passing},
    fair::Round,
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
/// turn. Returns `None` if none is due.
///
/// Call inside a transaction: its row stays locked until the commit, and a row that another replica holds is
/// skipped. Served by `replays_due_idx` and `deliveries_pkey`.
pub async fn advance(
    conn: &mut AsyncPgConnection,
    pace: Pace,
    round: &mut Round,
) -> QueryResult<Option<(ReplayName, Advanced)>> {
    let job = match take(conn, round).await? {
        None if round.end() => take(conn, round).await?,
        job => job,
    };
    let Some(job) = job else { return Ok(None) };
    round.serve(Id::from_uuid(job.account_id));
    // A savepoint, so that a replay that cannot continue does not block the others.
    let advanced = conn.transaction(async |conn| job.advance(conn, pace).await);
    let advanced = match advanced.await {
        Err(error) if !is_passing(&error) => {
            tracing::error!(replay.name = %job.name(), retry_in = ?FAILED_PAUSE, "a replay cannot go on: {error}");
            job.come_again(conn, FAILED_PAUSE).await?;
            Advanced::Waiting
        }
        advanced => advanced?,
    };
    Ok(Some((job.name(), advanced)))
}

async fn take(conn: &mut AsyncPgConnection, round: &Round) -> QueryResult<Option<Job>> {
    sql_query(
        "SELECT r.namespace_id, r.connection_id, r.id, r.start_time, r.end_time, r.states, r.counted, r.place_time, \
             r.place_id, n.account_id \
         FROM replays AS r JOIN namespaces AS n ON n.id = r.namespace_id \
         WHERE r.state = 'RUNNING' AND r.next_batch_time <= clock_timestamp() \
             AND r.namespace_id NOT IN (SELECT id FROM namespaces WHERE account_id = ANY ($1)) \
         ORDER BY r.next_batch_time LIMIT 1 FOR UPDATE OF r SKIP LOCKED",
    )
    .bind::<Array<SqlUuid>, _>(round.served().map(Id::to_uuid).collect::<Vec<_>>())
    .get_result(conn)
    .await
    .optional()
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
            self.come_again(conn, pause).await?;
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
                sql_query(
                    "UPDATE replays SET total = ( \
                         SELECT count(*) FROM deliveries WHERE namespace_id = $1 AND connection_id = $2 \
                             AND create_time BETWEEN $4 AND $5 AND state = ANY ($6)) \
                     WHERE namespace_id = $1 AND connection_id = $2 AND id = $3",
                )
                .bind::<SqlUuid, _>(self.namespace_id)
                .bind::<SqlUuid, _>(self.connection_id)
                .bind::<SqlUuid, _>(self.id)
                .bind::<Timestamptz, _>(self.start_time)
                .bind::<Timestamptz, _>(self.end_time)
                .bind::<Array<Text>, _>(self.states())
                .execute(conn)
                .await
            })
            .await;
        match counted {
            Err(error) if !is_cut_off(&error) => return Err(error),
            _ => {}
        }
        sql_query(
            "UPDATE replays SET counted = true, update_time = clock_timestamp() \
             WHERE namespace_id = $1 AND connection_id = $2 AND id = $3",
        )
        .bind::<SqlUuid, _>(self.namespace_id)
        .bind::<SqlUuid, _>(self.connection_id)
        .bind::<SqlUuid, _>(self.id)
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
        let found: Found = sql_query(
            "SELECT EXISTS (SELECT FROM connections WHERE namespace_id = $1 AND id = $2 AND state = 'ACTIVE') AS active, \
                 (SELECT count(*) FROM (SELECT FROM deliveries WHERE namespace_id = $1 AND connection_id = $2 \
                     AND state IN ('PENDING', 'RETRYING') AND next_attempt_time <= clock_timestamp() LIMIT $3) AS due \
                 ) AS waiting",
        )
        .bind::<SqlUuid, _>(self.namespace_id)
        .bind::<SqlUuid, _>(self.connection_id)
        .bind::<BigInt, _>(pace.backlog)
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

    async fn come_again(&self, conn: &mut AsyncPgConnection, after: Duration) -> QueryResult<()> {
        sql_query(
            "UPDATE replays SET next_batch_time = clock_timestamp() + $4 * interval '1 second' \
             WHERE namespace_id = $1 AND connection_id = $2 AND id = $3",
        )
        .bind::<SqlUuid, _>(self.namespace_id)
        .bind::<SqlUuid, _>(self.connection_id)
        .bind::<SqlUuid, _>(self.id)
        .bind::<Double, _>(after.as_secs_f64())
        .execute(conn)
        .await?;
        Ok(())
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
        let moved: Moved = sql_query(concat!(
            "WITH chosen AS MATERIALIZED ( \
                 SELECT create_time, id FROM ( \
                     SELECT create_time, id, state FROM deliveries \
                     WHERE namespace_id = $1 AND connection_id = $2 AND (create_time, id) > ($4, $5) AND create_time <= $6 \
                     ORDER BY create_time, id LIMIT $8 \
                 ) AS page WHERE state = ANY ($7) ORDER BY create_time, id LIMIT $9 \
             ), sent AS ( \
                 UPDATE deliveries AS d SET urgent = false, ",
            reopened!(),
            "    FROM chosen AS c WHERE d.namespace_id = $1 AND d.connection_id = $2 \
                     AND d.create_time = c.create_time AND d.id = c.id AND ",
            scan_is_there!(),
            " ), counts AS ( \
                 SELECT count(*) AS chosen FROM chosen \
             ), seen AS MATERIALIZED ( \
                 SELECT page.* FROM counts AS n CROSS JOIN LATERAL ( \
                     SELECT create_time, id FROM deliveries \
                     WHERE n.chosen < $9 AND namespace_id = $1 AND connection_id = $2 \
                         AND (create_time, id) > ($4, $5) AND create_time <= $6 \
                     ORDER BY create_time, id LIMIT $8 \
                 ) AS page \
             ), place AS ( \
                 (SELECT create_time, id FROM chosen, counts AS n WHERE n.chosen = $9 ORDER BY create_time DESC, id DESC LIMIT 1) \
                 UNION ALL \
                 (SELECT create_time, id FROM seen ORDER BY create_time DESC, id DESC LIMIT 1) \
             ), moved AS ( \
                 SELECT n.chosen, n.chosen < $9 AND (SELECT count(*) FROM seen) < $8 AS done FROM counts AS n \
             ), sharing AS ( \
                 SELECT greatest(1, count(*)) AS replays FROM replays AS o JOIN connections AS c \
                     ON c.namespace_id = o.namespace_id AND c.id = o.connection_id AND c.state = 'ACTIVE' \
                 WHERE o.state = 'RUNNING' AND o.counted AND o.namespace_id IN ( \
                     SELECT id FROM namespaces WHERE account_id = (SELECT account_id FROM namespaces WHERE id = $1)) \
             ) \
             UPDATE replays AS r SET done = r.done + m.chosen, update_time = clock_timestamp(), \
                 place_time = coalesce((SELECT create_time FROM place), r.place_time), \
                 place_id = coalesce((SELECT id FROM place), r.place_id), \
                 state = CASE WHEN m.done THEN 'DONE' ELSE r.state END, \
                 total = CASE WHEN m.done THEN r.done + m.chosen ELSE greatest(r.total, r.done + m.chosen) END, \
                 next_batch_time = clock_timestamp() + CASE WHEN m.chosen > 0 THEN $10 * s.replays ELSE 0 END * interval '1 second' \
             FROM moved AS m, sharing AS s WHERE r.namespace_id = $1 AND r.connection_id = $2 AND r.id = $3 \
             RETURNING m.chosen, m.done"
        ))
        .bind::<SqlUuid, _>(self.namespace_id)
        .bind::<SqlUuid, _>(self.connection_id)
        .bind::<SqlUuid, _>(self.id)
        .bind::<Timestamptz, _>(self.place_time)
        .bind::<SqlUuid, _>(self.place_id)
        .bind::<Timestamptz, _>(self.end_time)
        .bind::<Array<Text>, _>(self.states())
        .bind::<BigInt, _>(LOOKED_AT)
        .bind::<BigInt, _>(pace.batch)
        .bind::<Double, _>(pace.pause.as_secs_f64())
        .get_result(conn)
        .await?;
        Ok(if moved.done {
            Advanced::Done
        } else {
            Advanced::Reopened(moved.chosen)
        })
    }
}
