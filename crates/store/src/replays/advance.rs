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
    reads::is_cut_off,
};

/// How fast replays are worked off.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Deliveries reopened in one batch, at most.
    pub batch: i64,
    /// No batch is taken while so many of the Connection's deliveries are due and wait: a replay feeds its
    /// lane, and does not come before new deliveries.
    pub backlog: i64,
    /// Interval between two batches of all replays of an account together.
    pub pause: Duration,
    /// A replay whose deliveries cannot be counted in this time keeps its lower bound.
    pub count_timeout: Duration,
}

/// Outcome of a replay's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advanced {
    /// Number of deliveries that were reopened, or skipped because their Scan is gone.
    Reopened(i64),
    /// The Connection has enough to do, or is disabled.
    Waiting,
    /// Its deliveries were counted, or are too many to count.
    Counted,
    Done,
}

/// Deliveries that a batch reads, in any state.
const LOOKED_AT: i64 = 2_000;
/// Interval after which a disabled Connection is checked again.
const DISABLED_PAUSE: Duration = Duration::from_secs(2);
const ENOUGH_PAUSE: Duration = Duration::from_millis(250);

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
}

/// Takes the replay that is due the longest and gives it its turn; `None` when none is due.
///
/// Call inside of a transaction: its row stays locked until the commit, and one that another replica
/// holds is skipped. Served by `replays_due_idx`, and by `deliveries_pkey`.
///
/// # Errors
/// When the database does not answer.
pub async fn advance(
    conn: &mut AsyncPgConnection,
    pace: Pace,
) -> QueryResult<Option<(ReplayName, Advanced)>> {
    let job: Option<Job> = sql_query(
        "SELECT namespace_id, connection_id, id, start_time, end_time, states, counted, place_time, place_id \
         FROM replays WHERE state = 'RUNNING' AND next_batch_time <= clock_timestamp() \
         ORDER BY next_batch_time LIMIT 1 FOR UPDATE SKIP LOCKED",
    )
    .get_result(conn)
    .await
    .optional()?;
    let Some(job) = job else { return Ok(None) };
    let advanced = job.advance(conn, pace).await?;
    Ok(Some((job.name(), advanced)))
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

    /// Counts in a savepoint: a count that is cut off must not stop this replay, or those after it.
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

    /// Returns true if the Connection has enough to do, and when to look again. Served by
    /// `deliveries_due_by_connection_idx`.
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

    /// Looks at the next deliveries of the window, reopens those in question, and moves on to the last
    /// one looked at; or, where there are more than a batch holds, to the last one reopened, and looks no further.
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
