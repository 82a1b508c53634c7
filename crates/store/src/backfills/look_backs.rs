//! Look-backs: reads of a feed's older posts with a separate cursor, next to the polls of its new posts.
//!
//! They are leased like feeds, one step at a time. A step stores its Scans, the cursor and the end of the lease in
//! one transaction.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Jsonb, Nullable, SmallInt, Text, Timestamptz,
        Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, ManagerName, Timestamp};
use uuid::Uuid;

use super::Waiting;
use crate::{
    QueryResult, words,
    work::{self, Candidate, Claim, Claimed, Leased, MAX_CANDIDATES, SUSPECT},
};

/// A leased look-back.
#[derive(Debug, Clone, PartialEq)]
pub struct LookBack {
    pub id: i64,
    pub feed: FeedName,
    /// One of the accounts that wait for it.
    pub account: Id,
    /// True if its Scans are delivered.
    pub notify: bool,
    pub since: Timestamp,
    pub cursor: Option<serde_json::Value>,
    /// Number of failed steps in a row.
    pub failure_count: u32,
}

/// A Manager that the look-back serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    pub manager: ManagerName,
    /// Start of the Manager's backfill. Other Managers may need the look-back to go further.
    pub since: Timestamp,
    /// End of the period: this look-back leaves newer posts out.
    pub before: Timestamp,
    /// Start of the posts that the quota of the account refused.
    pub catch_up_since: Option<Timestamp>,
}

/// Returns the look-back of a feed that has not begun, or a new one. It goes back at least to `since`.
pub(super) async fn join(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    since: Timestamp,
) -> QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        id: i64,
    }
    // A leased one may be reading already. Served by look_backs_feed_idx.
    let joined: Option<Row> = sql_query(
        "UPDATE look_backs SET since = least(since, $3) WHERE id = ( \
             SELECT id FROM look_backs WHERE feed = $1 AND notify = $2 AND cursor IS NULL AND leased_by IS NULL \
             LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id",
    )
    .bind::<Text, _>(waiting.feed.as_str())
    .bind::<Bool, _>(waiting.notify)
    .bind::<Timestamptz, _>(since.to_chrono())
    .get_result(conn)
    .await
    .optional()?;
    if let Some(Row { id }) = joined {
        return Ok(id);
    }
    let made: Row =
        sql_query("INSERT INTO look_backs (feed, notify, since) VALUES ($1, $2, $3) RETURNING id")
            .bind::<Text, _>(waiting.feed.as_str())
            .bind::<Bool, _>(waiting.notify)
            .bind::<Timestamptz, _>(since.to_chrono())
            .get_result(conn)
            .await?;
    Ok(made.id)
}

/// Leases due look-backs of these platforms, up to the capacity of the claim's room; of one account, the longest due.
/// Reads all that are due; served by `look_backs_due_idx` and `backfills_look_back_idx`.
pub async fn lease(
    conn: &mut AsyncPgConnection,
    platforms: &[&str],
    claim: &mut Claim<'_>,
) -> QueryResult<Claimed<LookBack>> {
    #[derive(QueryableByName)]
    struct Due {
        #[diesel(sql_type = Array<SqlUuid>)]
        accounts: Vec<Uuid>,
        #[diesel(sql_type = BigInt)]
        id: i64,
        #[diesel(sql_type = Bool)]
        is_suspect: bool,
    }
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = BigInt)]
        id: i64,
        #[diesel(sql_type = Text)]
        feed: String,
        #[diesel(sql_type = Bool)]
        notify: bool,
        #[diesel(sql_type = Timestamptz)]
        since: DateTime<Utc>,
        #[diesel(sql_type = Nullable<Jsonb>)]
        cursor: Option<serde_json::Value>,
        #[diesel(sql_type = Integer)]
        failure_count: i32,
        #[diesel(sql_type = SmallInt)]
        crash_count: i16,
    }
    let free = format!(
        "next_time <= clock_timestamp() AND id::text <> ALL ($3) AND {}",
        work::is_free("leased_by", "$1", "$2")
    );
    let crashes = work::crashes("crash_count", "leased_by", "$1");
    // A look-back whose Managers were deleted belongs to no account.
    let due: Vec<Due> = sql_query(format!(
        "WITH due AS MATERIALIZED ( \
             SELECT id, next_time, {crashes} >= {SUSPECT} AS is_suspect FROM look_backs \
             WHERE split_part(feed, ':', 1) = ANY ($4) AND {free}), \
         readers AS ( \
             SELECT DISTINCT due.id, due.next_time, due.is_suspect, \
                 coalesce(n.account_id, '00000000-0000-0000-0000-000000000000') AS account_id \
             FROM due LEFT JOIN backfills AS b ON b.look_back_id = due.id \
             LEFT JOIN namespaces AS n ON n.id = b.namespace_id), \
         ranked AS ( \
             SELECT *, row_number() OVER (PARTITION BY account_id, is_suspect ORDER BY next_time, id) AS rank \
             FROM readers WHERE account_id <> ALL ($5)) \
         SELECT id, is_suspect, array_agg(account_id) AS accounts FROM ranked \
         WHERE rank <= CASE WHEN is_suspect THEN $7 ELSE $6 END \
         GROUP BY id, is_suspect, next_time ORDER BY min(rank), next_time LIMIT $8"
    ))
    .bind::<SqlUuid, _>(claim.replica)
    .bind::<Bool, _>(claim.take_over)
    .bind::<Array<Text>, _>(claim.known)
    .bind::<Array<Text>, _>(platforms)
    .bind::<Array<SqlUuid>, _>(claim.room.refused(false))
    .bind::<BigInt, _>(claim.room.free(false))
    .bind::<BigInt, _>(claim.room.suspects())
    .bind::<BigInt, _>(MAX_CANDIDATES)
    .load(conn)
    .await?;
    let candidates = due.into_iter().map(|due| Candidate {
        key: due.id,
        slow: false,
        is_suspect: due.is_suspect,
        accounts: due.accounts.into_iter().map(Id::from_uuid).collect(),
    });
    let chosen = claim.room.choose(candidates.collect(), claim.turns);
    if chosen.is_empty() {
        return Ok(Claimed::default());
    }
    let ids: Vec<i64> = chosen.iter().map(|(id, _)| *id).collect();
    let rows: Vec<Row> = sql_query(format!(
        "WITH due AS (SELECT id FROM look_backs WHERE id = ANY ($4) AND {free} FOR UPDATE SKIP LOCKED) \
         UPDATE look_backs AS l SET leased_by = $1, crash_count = {crashes} FROM due WHERE l.id = due.id \
         RETURNING l.id, feed, notify, since, cursor, failure_count, crash_count"
    ))
    .bind::<SqlUuid, _>(claim.replica)
    .bind::<Bool, _>(claim.take_over)
    .bind::<Array<Text>, _>(claim.known)
    .bind::<Array<BigInt>, _>(ids)
    .load(conn)
    .await?;
    let accounts: HashMap<i64, Id> = chosen.into_iter().collect();
    let items: Vec<Leased<LookBack>> = { rows.into_iter() }
        .filter_map(|row| {
            let account = *accounts.get(&row.id)?;
            Some(Leased {
                key: row.id.to_string(),
                account,
                is_slow: false,
                crashes: work::count(row.crash_count),
                item: LookBack {
                    id: row.id,
                    // Names were parsed before they were stored.
                    feed: row.feed.parse().ok()?,
                    account,
                    notify: row.notify,
                    since: row.since.into(),
                    cursor: row.cursor,
                    failure_count: u32::try_from(row.failure_count).unwrap_or(u32::MAX),
                },
            })
        })
        .collect();
    Ok(Claimed {
        is_contended: items.len() < accounts.len(),
        items,
        next_due: None,
    })
}

/// Returns the Managers that the look-back serves. Served by `backfills_look_back_idx`.
pub async fn readers(conn: &mut AsyncPgConnection, id: i64) -> QueryResult<Vec<Reader>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        since: DateTime<Utc>,
        #[diesel(sql_type = Timestamptz)]
        before: DateTime<Utc>,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        catch_up_since: Option<DateTime<Utc>>,
    }
    let rows: Vec<Row> = sql_query(
        "SELECT namespace_id, manager_id, since, before, catch_up_since FROM backfills \
         WHERE look_back_id = $1 AND since IS NOT NULL AND before IS NOT NULL",
    )
    .bind::<BigInt, _>(id)
    .load(conn)
    .await?;
    let readers = rows.into_iter().map(|row| Reader {
        manager: ManagerName {
            namespace: Id::from_uuid(row.namespace_id),
            manager: Id::from_uuid(row.manager_id),
        },
        since: row.since.into(),
        before: row.before.into(),
        catch_up_since: row.catch_up_since.map(Into::into),
    });
    Ok(readers.collect())
}

/// Locks a look-back for the rest of the transaction. Returns true if `replica` still holds its lease and the
/// cursor is still the one that it read from: after a failover the database may be older than what a replica knows.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    look_back: &LookBack,
    replica: Uuid,
) -> QueryResult<bool> {
    let held = sql_query(
        "SELECT FROM look_backs WHERE id = $1 AND leased_by = $2 AND cursor IS NOT DISTINCT FROM $3 FOR UPDATE",
    )
    .bind::<BigInt, _>(look_back.id)
    .bind::<SqlUuid, _>(replica)
    .bind::<Nullable<Jsonb>, _>(look_back.cursor.clone().map(words::json))
    .execute(conn)
    .await?;
    // Before any clock, as a deletion of Managers does. Served by `backfills_look_back_idx`.
    sql_query(
        "SELECT FROM backfills WHERE look_back_id = $1 \
         ORDER BY namespace_id, manager_id, feed, notify FOR UPDATE",
    )
    .bind::<BigInt, _>(look_back.id)
    .execute(conn)
    .await?;
    Ok(held > 0)
}

/// Removes Managers from a look-back. They start again when they are due and their account has Scans
/// left. Call after [`lock`].
/// Returns how many Managers remain in it.
pub async fn start_again(
    conn: &mut AsyncPgConnection,
    id: i64,
    managers: &BTreeSet<ManagerName>,
) -> QueryResult<i64> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        managers.iter().map(|name| id(name).to_uuid()).collect()
    };
    sql_query(
        "UPDATE backfills SET state = 'WAITING', look_back_id = NULL, before = NULL, \
             create_time = clock_timestamp(), update_time = clock_timestamp() \
         WHERE look_back_id = $1 AND (namespace_id, manager_id) IN (SELECT * FROM unnest($2, $3))",
    )
    .bind::<BigInt, _>(id)
    .bind::<Array<SqlUuid>, _>(column(|name| name.namespace))
    .bind::<Array<SqlUuid>, _>(column(|name| name.manager))
    .execute(conn)
    .await?;
    let left: Count = sql_query("SELECT count(*) AS count FROM backfills WHERE look_back_id = $1")
        .bind::<BigInt, _>(id)
        .get_result(conn)
        .await?;
    Ok(left.count)
}

/// Ends a step with more to read, from `cursor` on. Stores that the platform could not return posts before
/// `unreached`.
pub async fn go_on(
    conn: &mut AsyncPgConnection,
    id: i64,
    cursor: serde_json::Value,
    unreached: Option<Timestamp>,
    wait: Duration,
) -> QueryResult<()> {
    sql_query(
        "UPDATE look_backs SET cursor = $2, leased_by = NULL, failure_count = 0, crash_count = 0, \
             reach_time = greatest(reach_time, $3), \
             next_time = clock_timestamp() + $4 * interval '1 second' WHERE id = $1",
    )
    .bind::<BigInt, _>(id)
    .bind::<Jsonb, _>(words::json(cursor))
    .bind::<Nullable<Timestamptz>, _>(unreached.map(Timestamp::to_chrono))
    .bind::<Double, _>(wait.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends the look-back: everything was read, except posts before `unreached`, which cannot be read.
pub async fn finish(
    conn: &mut AsyncPgConnection,
    id: i64,
    unreached: Option<Timestamp>,
) -> QueryResult<()> {
    sql_query(
        "WITH gone AS (DELETE FROM look_backs WHERE id = $1 RETURNING id, reach_time) \
         UPDATE backfills AS b SET state = 'DONE', look_back_id = NULL, update_time = clock_timestamp(), \
             reach_time = least(b.before, greatest(b.since, gone.reach_time, $2)) \
         FROM gone WHERE b.look_back_id = gone.id",
    )
    .bind::<BigInt, _>(id)
    .bind::<Nullable<Timestamptz>, _>(unreached.map(Timestamp::to_chrono))
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a look-back that cannot be stored, and sets aside its backfills.
pub async fn give_up(conn: &mut AsyncPgConnection, id: i64, error: &str) -> QueryResult<()> {
    sql_query(
        "WITH gone AS (DELETE FROM look_backs WHERE id = $1 RETURNING id) \
         UPDATE backfills AS b SET state = 'FAILED', look_back_id = NULL, error = $2, \
             update_time = clock_timestamp() \
         FROM gone WHERE b.look_back_id = gone.id",
    )
    .bind::<BigInt, _>(id)
    .bind::<Text, _>(words::text(error))
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a failed step, which the next one repeats. A step that a budget has `put_off` does not count as a failure.
/// Does nothing if `replica` has lost the lease.
pub async fn fail(
    conn: &mut AsyncPgConnection,
    id: i64,
    replica: Uuid,
    put_off: bool,
    wait: Duration,
) -> QueryResult<()> {
    sql_query(
        "UPDATE look_backs SET leased_by = NULL, failure_count = failure_count + $3, crash_count = 0, \
             next_time = clock_timestamp() + $4 * interval '1 second' WHERE id = $1 AND leased_by = $2",
    )
    .bind::<BigInt, _>(id)
    .bind::<SqlUuid, _>(replica)
    .bind::<Integer, _>(i32::from(!put_off))
    .bind::<Double, _>(wait.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}
