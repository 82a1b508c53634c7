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
    prelude::*,
    sql_query,
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
    QueryResult,
    prepared::query,
    schema::{backfills, look_backs},
    words,
    work::{
        self, Claim, Claimed, Leased, SUSPECT,
        candidates::{self, CandidateRow},
    },
};

/// A leased look-back.
#[derive(Debug, Clone, PartialEq)]
pub struct LookBack {
    pub id: i64,
    pub feed: FeedName,
    /// The account whose Managers it serves; [`Id::NIL`] if they were all deleted.
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

/// Returns the account's look-back of a feed that has not begun, or a new one. It goes back at least to `since`. Two
/// accounts never share a look-back: its steps count for one account, and its Managers would wait for those of the other.
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
    // A leased one may be reading already. Served by look_backs_feed_idx, and for each look-back of the feed by one step
    // of backfills_look_back_idx.
    let joined: Option<Row> = query!(
        "look_backs/join",
        Text: waiting.feed.as_str(),
        Bool: waiting.notify,
        Timestamptz: since.to_chrono(),
        SqlUuid: waiting.account.to_uuid(),
    )
    .get_result(conn)
    .await
    .optional()?;
    if let Some(Row { id }) = joined {
        return Ok(id);
    }
    diesel::insert_into(look_backs::table)
        .values((
            look_backs::feed.eq(waiting.feed.as_str()),
            look_backs::notify.eq(waiting.notify),
            look_backs::since.eq(since.to_chrono()),
        ))
        .returning(look_backs::id)
        .get_result(conn)
        .await
}

/// Number of look-backs that a claim reads regardless of their accounts.
const LONGEST_DUE: usize = 200;

/// Leases due look-backs of these platforms, up to the capacity of the claim's room; of one account, the longest due.
/// If more than [`LONGEST_DUE`] are due, these may all be of one account, so the oldest look-back of each Namespace is
/// read too, with the accounts in random order. That costs a step of `backfills_reading_idx` for each Namespace with
/// look-backs, and some more for those that it takes.
pub async fn lease(
    conn: &mut AsyncPgConnection,
    platforms: &[&str],
    claim: &mut Claim<'_>,
) -> QueryResult<Claimed<LookBack>> {
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
    let (suspect, room) = (format!("{crashes} >= {SUSPECT}"), &*claim.room);
    let is_due = format!("{free} AND split_part(feed, ':', 1) = ANY ($4)");
    let reading = "look_back_id IS NOT NULL";
    let namespaces = candidates::namespaces(
        "backfills",
        "look_back_id",
        reading,
        "WHERE true",
        "random()",
        room,
    );
    // A comparison of rows keeps the planner from `backfills_look_back_idx`, through which it would read past those of
    // other Namespaces.
    let next = |after: &str| {
        format!(
            "SELECT look_back_id FROM backfills WHERE {reading} AND namespace_id <= n.namespace_id \
               AND (namespace_id, look_back_id) > (n.namespace_id, {after}) ORDER BY namespace_id, look_back_id LIMIT 1"
        )
    };
    let look_backs = format!(
        "WITH RECURSIVE one AS (({}) UNION ALL SELECT next.* FROM one CROSS JOIN LATERAL ({}) AS next) SELECT * FROM one",
        next("0"),
        next("one.look_back_id")
    );
    // Suspects are few. A look-back whose Managers were deleted belongs to no account. It is found once it is one of
    // the longest due, because each step of the others makes them due later.
    let items = format!(
        "WITH due AS MATERIALIZED ( \
             SELECT id, next_time, {suspect} AS is_suspect FROM look_backs \
             WHERE next_time <= statement_timestamp() AND {} ORDER BY next_time LIMIT {LONGEST_DUE} \
         ), found AS ( \
             SELECT * FROM due \
             UNION SELECT id, next_time, true FROM look_backs WHERE crash_count > 0 AND {is_due} AND {suspect} \
             UNION SELECT l.id, l.next_time, false FROM ({namespaces}) AS n CROSS JOIN LATERAL ( \
                 SELECT l.* FROM ({look_backs}) AS one CROSS JOIN LATERAL ( \
                     SELECT id, next_time FROM look_backs WHERE id = one.look_back_id AND {is_due} AND NOT {suspect} OFFSET 0 \
                 ) AS l LIMIT {}) AS l \
             WHERE (SELECT count(*) FROM due) = {LONGEST_DUE} \
         ) SELECT found.id::text AS key, next_time AS time, false AS slow, is_suspect, \
             coalesce(account_id, '00000000-0000-0000-0000-000000000000') AS account_id \
         FROM found LEFT JOIN LATERAL ( \
             SELECT DISTINCT n.account_id FROM backfills AS b JOIN namespaces AS n ON n.id = b.namespace_id \
             WHERE b.look_back_id = found.id OFFSET 0) AS readers ON true",
        candidates::often(&is_due),
        room.free(false)
    );
    let due: Vec<CandidateRow> = sql_query(candidates::by_account(&items, room))
        .bind::<SqlUuid, _>(claim.replica)
        .bind::<Bool, _>(claim.take_over)
        .bind::<Array<Text>, _>(claim.known)
        .bind::<Array<Text>, _>(platforms)
        .load(conn)
        .await?;
    let candidates = due.into_iter().filter_map(|row| {
        let id: i64 = row.key.parse().ok()?;
        Some(row.with_key(id))
    });
    let chosen = claim.room.choose(candidates.collect(), claim.turns);
    if chosen.is_empty() {
        return Ok(Claimed::default());
    }
    let ids: Vec<i64> = chosen.iter().map(|(id, _)| *id).collect();
    let rows: Vec<Row> = query!(
        "look_backs/lease",
        SqlUuid: claim.replica,
        Bool: claim.take_over,
        Array<Text>: claim.known,
        Array<BigInt>: ids,
    )
    .load(conn)
    .await?;
    let accounts: HashMap<i64, Id> = chosen.into_iter().collect();
    // Computed before rows are left out whose names this release cannot read.
    let is_contended = rows.len() < accounts.len();
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
        is_contended,
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
    let rows: Vec<Row> = query!(
        "look_backs/readers",
        BigInt: id,
    )
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
    let held = query!(
        "look_backs/lock",
        BigInt: look_back.id,
        SqlUuid: replica,
        Nullable<Jsonb>: look_back.cursor.clone().map(words::json),
    )
    .execute(conn)
    .await?;
    // The backfills are locked before any clock, as in a deletion of Managers. Served by `backfills_look_back_idx`.
    query!(
        "look_backs/lock_backfills",
        BigInt: look_back.id,
    )
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
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        managers.iter().map(|name| id(name).to_uuid()).collect()
    };
    query!(
        "look_backs/start_again",
        BigInt: id,
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
    )
    .execute(conn)
    .await?;
    backfills::table
        .filter(backfills::look_back_id.eq(id))
        .count()
        .get_result(conn)
        .await
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
    query!(
        "look_backs/go_on",
        BigInt: id,
        Jsonb: words::json(cursor),
        Nullable<Timestamptz>: unreached.map(Timestamp::to_chrono),
        Double: wait.as_secs_f64(),
    )
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
    query!(
        "look_backs/finish",
        BigInt: id,
        Nullable<Timestamptz>: unreached.map(Timestamp::to_chrono),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a look-back that cannot be stored, and sets aside its backfills.
pub async fn give_up(conn: &mut AsyncPgConnection, id: i64, error: &str) -> QueryResult<()> {
    query!(
        "look_backs/give_up",
        BigInt: id,
        Text: words::text(error),
    )
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
    query!(
        "look_backs/fail",
        BigInt: id,
        SqlUuid: replica,
        Integer: i32::from(!put_off),
        Double: wait.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}
