//! Backfills: run Managers over posts of the past, at their first apply and on request.
//!
//! A row requests posts of one feed for a Manager, from some time on. It has two steps. First the stored posts are
//! matched ([`waiting`] to [`matched_kept`]). If these do not reach back far enough and the platform can, the row then
//! joins a look-back ([`look_backs`]). A look-back reads the feed with a separate cursor, in bounded steps, for all
//! Managers of one account whose rows joined before it began. So no post is matched by both steps. A post that already
//! has its Scan gets no second one, because of the keys of `scans`.
//!
//! If a process dies, the row stays in the state of its last commit, and the step is repeated. A row whose Scans
//! cannot be stored is postponed, and finally set aside ([`set_aside`]).

use std::time::Duration;

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{
        Array, BigInt, Bool, Double, Integer, Nullable, Text, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id, ManagerName, Reach, Timestamp};
use events::TraceContext;
use uuid::Uuid;

use crate::{
    QueryResult,
    prepared::query,
    quotas::{HAS_SCANS_LEFT, TODAY},
    words,
    work::{
        Claim,
        candidates::{self, CandidateRow},
        is_free, table,
    },
};

mod catch_up;
pub mod look_backs;

pub use catch_up::{catch_up, retry_failed};

/// Limit of how far back the posts of a feed can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedReach {
    pub feed: FeedName,
    /// An estimate if only the number of posts is limited.
    pub reach_time: Timestamp,
}

/// Requests backfills of the feeds that the Manager watches now, from `start` on. With `notify`, their Scans are
/// delivered. `reach` returns how far back the platform of a feed goes. Returns how far back the posts of each feed
/// can be read, by name: never before `start`. Of the stored posts, those count that are at most `window` older than
/// the account's first watch of the feed, as if no other account had watched it. A repeated request runs again. If a
/// backfill is in progress, it starts again and covers at least the same period. Served by `feed_watchers_manager_idx`
/// and primary keys.
pub async fn request(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    start: Timestamp,
    notify: bool,
    window: Duration,
    reach: impl Fn(&FeedName) -> Reach,
) -> QueryResult<Vec<FeedReach>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Text)]
        feed: String,
        #[diesel(sql_type = Timestamptz)]
        now: DateTime<Utc>,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        kept_since: Option<DateTime<Utc>>,
        #[diesel(sql_type = Nullable<Double>)]
        posts_per_day: Option<f64>,
    }
    let rows: Vec<Row> = query!(
        "backfills/request",
        SqlUuid: manager.namespace.to_uuid(),
        SqlUuid: manager.manager.to_uuid(),
        Bool: notify,
        Timestamptz: start.to_chrono(),
        Nullable<Text>: TraceContext::current().sampled().map(str::to_owned),
        Double: window.as_secs_f64(),
    )
    .load(conn)
    .await?;
    let reached = rows.into_iter().filter_map(|row| {
        // Names were parsed before they were stored.
        let feed: FeedName = row.feed.parse().ok()?;
        let now = Timestamp::from(row.now);
        let kept = row.kept_since.map_or(now, Timestamp::from);
        let platform = match reach(&feed) {
            Reach::Nothing => now,
            Reach::Time(time) => now.minus(time.min(Duration::from_hours(24 * 3_650))),
            Reach::Posts(posts) => {
                // A feed with hardly any posts can be read from its beginning.
                let days = f64::from(posts) / row.posts_per_day.unwrap_or(1.0).max(1e-3);
                now.minus(Duration::from_secs_f64(days.min(3_650.0) * 86_400.0))
            }
        };
        Some(FeedReach {
            feed,
            reach_time: kept.min(platform).max(start).min(now),
        })
    });
    Ok(reached.collect())
}

/// Same as [`request`] at a Manager's first apply, over as much of the past as the scanner is configured to. Call in
/// that transaction, after its feeds are watched.
pub(crate) async fn request_first(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
) -> QueryResult<()> {
    query!(
        "backfills/request_first",
        SqlUuid: manager.namespace.to_uuid(),
        SqlUuid: manager.manager.to_uuid(),
        Nullable<Text>: TraceContext::current().sampled().map(str::to_owned),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Feed with waiting backfills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub feed: FeedName,
    pub notify: bool,
    /// The account whose backfills wait.
    pub account: Id,
}

/// Time since which a waiting backfill is due. After the clock went back, only a postponed backfill waits for that
/// time.
const DUE: &str = "coalesce(next_time, create_time)";

/// Kind of the leases of [`waiting`].
pub const KIND: &str = "backfill";

/// Returns the feeds with waiting backfills on the named platforms: of each account some, the longest waiting first,
/// without those that are in hand, leased or set aside. Locks nothing. Costs a step of `backfills_due_idx` for each
/// Namespace with waiting backfills, and some more for the first of them.
pub async fn waiting(
    conn: &mut AsyncPgConnection,
    platforms: &[&str],
    claim: &Claim<'_>,
    scans_per_day: u32,
) -> QueryResult<Vec<table::Due<Waiting>>> {
    let room = &*claim.room;
    let of_platforms = "split_part(feed, ':', 1) = ANY ($2)";
    let waiting = format!("state = 'WAITING' AND {}", candidates::often(of_platforms));
    let accounts =
        format!("JOIN accounts AS a ON a.id = n.account_id {TODAY} WHERE {HAS_SCANS_LEFT}");
    let namespaces = candidates::namespaces("backfills", DUE, &waiting, &accounts, "first", room);
    let taken = format!(
        "ARRAY (SELECT l.key FROM leases AS l WHERE l.kind = '{KIND}' \
             AND NOT ((l.leased_by IS NOT NULL OR l.next_time <= clock_timestamp()) AND {}))",
        is_free("l.leased_by", "$4", "$5")
    );
    let is_due = candidates::often(&format!(
        "{of_platforms} AND (next_time IS NULL OR next_time <= clock_timestamp()) \
             AND n.account_id || ' ' || (notify || ' ' || feed) <> ALL ($3 || {taken})"
    ));
    // The next feed of a Namespace is that of its next row whose feed was not found before.
    let next = |found: &str, after: &str| {
        format!(
            "SELECT {DUE} AS time, notify || ' ' || feed AS feed, {found} || ARRAY[notify || ' ' || feed] AS found FROM backfills \
             WHERE namespace_id = n.namespace_id AND state = 'WAITING' AND {is_due}{after} ORDER BY {DUE} LIMIT 1"
        )
    };
    let items = format!(
        "SELECT n.account_id, n.account_id || ' ' || feed AS key, min(time) AS time, false AS slow, false AS is_suspect \
         FROM ({namespaces}) AS n CROSS JOIN LATERAL ( \
             WITH RECURSIVE one AS (({}) UNION ALL SELECT next.* FROM one CROSS JOIN LATERAL ({}) AS next) \
             SELECT time, feed FROM one LIMIT {}) AS one \
         GROUP BY n.account_id, feed",
        next("'{}'", ""),
        next(
            "one.found",
            &format!(" AND {DUE} >= one.time AND notify || ' ' || feed <> ALL (one.found)")
        ),
        room.free(false)
    );
    let rows: Vec<CandidateRow> = sql_query(candidates::by_account(&items, room))
        .bind::<BigInt, _>(i64::from(scans_per_day))
        .bind::<Array<Text>, _>(platforms)
        .bind::<Array<Text>, _>(claim.known)
        .bind::<SqlUuid, _>(claim.replica)
        .bind::<Bool, _>(claim.take_over)
        .load(conn)
        .await?;
    let waiting = rows.into_iter().filter_map(|row| {
        let (_, item) = row.key.split_once(' ')?;
        let (notify, feed) = item.split_once(' ')?;
        let accounts = row.accounts();
        let &[account] = accounts.as_slice() else {
            return None;
        };
        let item = Waiting {
            feed: feed.parse().ok()?,
            notify: notify == "true",
            account,
        };
        Some(table::Due {
            key: row.key,
            accounts,
            item,
        })
    });
    Ok(waiting.collect())
}

/// Manager with a waiting backfill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub manager: ManagerName,
    /// `None` for the backfill at the first apply.
    pub since: Option<Timestamp>,
    /// Start of the posts that the quota of the account refused.
    pub catch_up_since: Option<Timestamp>,
    pub create_time: Timestamp,
    /// When the account first watched the feed; `None` if that was not recorded.
    pub watch_time: Option<Timestamp>,
    /// Trace context of the request, if it is traced.
    pub traceparent: Option<String>,
}

/// State of a feed's stored posts, for the backfills that wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPosts {
    /// False before the first successful poll, which will find the posts itself.
    pub is_read: bool,
    /// Start of the period whose posts are all stored; `None` if no posts are stored.
    pub since: Option<Timestamp>,
}

/// Returns some of an account's backfills that wait for a feed, the longest waiting first, and the state of the feed's
/// stored posts. Locks nothing.
pub async fn waiting_for(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    limit: i64,
    scans_per_day: u32,
) -> QueryResult<(Vec<Asked>, KeptPosts)> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        since: Option<DateTime<Utc>>,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        catch_up_since: Option<DateTime<Utc>>,
        #[diesel(sql_type = Timestamptz)]
        create_time: DateTime<Utc>,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        watch_time: Option<DateTime<Utc>>,
        #[diesel(sql_type = Nullable<Text>)]
        traceparent: Option<String>,
    }
    #[derive(QueryableByName)]
    struct Feed {
        #[diesel(sql_type = Bool)]
        is_read: bool,
        #[diesel(sql_type = Nullable<Timestamptz>)]
        kept_since: Option<DateTime<Utc>>,
    }
    let rows: Vec<Row> = query!(
        "backfills/waiting_for",
        BigInt: i64::from(scans_per_day),
        Text: waiting.feed.as_str(),
        Bool: waiting.notify,
        SqlUuid: waiting.account.to_uuid(),
        BigInt: limit,
    )
    .load(conn)
    .await?;
    let feed: Option<Feed> = query!(
        "backfills/kept_posts",
        Text: waiting.feed.as_str(),
    )
    .get_result(conn)
    .await
    .optional()?;
    let asked = rows.into_iter().map(|row| Asked {
        manager: ManagerName {
            namespace: Id::from_uuid(row.namespace_id),
            manager: Id::from_uuid(row.manager_id),
        },
        since: row.since.map(Into::into),
        catch_up_since: row.catch_up_since.map(Into::into),
        create_time: row.create_time.into(),
        watch_time: row.watch_time.map(Into::into),
        traceparent: row.traceparent,
    });
    let kept = KeptPosts {
        is_read: feed.as_ref().is_some_and(|feed| feed.is_read),
        since: feed.and_then(|feed| feed.kept_since).map(Into::into),
    };
    Ok((asked.collect(), kept))
}

/// Locks those of `asked` that still wait unchanged, for the rest of the transaction. Skips those that another
/// replica is working on. By primary key.
pub async fn claim(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    asked: &[Asked],
) -> QueryResult<Vec<ManagerName>> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
    }
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        let ids = asked.iter().map(|one| id(&one.manager).to_uuid());
        ids.collect()
    };
    let times = asked.iter().map(|one| one.create_time.to_chrono());
    let rows: Vec<Row> = query!(
        "backfills/claim",
        Text: waiting.feed.as_str(),
        Bool: waiting.notify,
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
        Array<Timestamptz>: times.collect::<Vec<_>>(),
    )
    .load(conn)
    .await?;
    let names = rows.into_iter().map(|row| ManagerName {
        namespace: Id::from_uuid(row.namespace_id),
        manager: Id::from_uuid(row.manager_id),
    });
    Ok(names.collect())
}

/// Locks the backfills of deleted Managers, in the order of their keys. Waits for steps that are working on them.
/// By primary key.
pub(crate) async fn lock_all(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    managers: &[Uuid],
) -> QueryResult<()> {
    query!(
        "backfills/lock_all",
        SqlUuid: namespace,
        Array<SqlUuid>: managers,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The part of a Manager's backfill that the stored posts did not cover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    pub manager: ManagerName,
    /// Start of the period whose stored posts were matched; nothing older can be read.
    pub reach_time: Timestamp,
    /// Period that a look-back continues with: its start and end.
    pub look_back: Option<(Timestamp, Timestamp)>,
}

/// Records that the stored posts were matched. Call in the transaction of [`claim`], which stores the Scans.
pub async fn matched_kept(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    rests: &[Rest],
) -> QueryResult<()> {
    let further = rests.iter().filter_map(|rest| rest.look_back);
    let look_back = match further.map(|(since, _)| since).min() {
        Some(since) => Some(look_backs::join(conn, waiting, since).await?),
        None => None,
    };
    let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
        rests
            .iter()
            .map(|rest| id(&rest.manager).to_uuid())
            .collect()
    };
    let further = |of: fn((Timestamp, Timestamp)) -> Timestamp| {
        let rests = rests.iter();
        rests.map(move |rest| rest.look_back.map(|span| of(span).to_chrono()))
    };
    let (since, before) = (further(|(since, _)| since), further(|(_, before)| before));
    let reach = rests.iter().map(|rest| rest.reach_time.to_chrono());
    query!(
        "backfills/matched_kept",
        Text: waiting.feed.as_str(),
        Bool: waiting.notify,
        Array<SqlUuid>: column(|name| name.namespace),
        Array<SqlUuid>: column(|name| name.manager),
        Array<Timestamptz>: reach.collect::<Vec<_>>(),
        Array<Nullable<Timestamptz>>: since.collect::<Vec<_>>(),
        Array<Nullable<Timestamptz>>: before.collect::<Vec<_>>(),
        Nullable<BigInt>: look_back,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Postpones a Manager's backfill of a feed because its Scans could not be stored: longer each time, and
/// permanently after `most` times. Returns true if it is permanent. By primary key.
pub async fn set_aside(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    manager: ManagerName,
    error: &str,
    most: i32,
) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Row {
        #[diesel(sql_type = Bool)]
        failed: bool,
    }
    let row: Option<Row> = query!(
        "backfills/set_aside",
        SqlUuid: manager.namespace.to_uuid(),
        SqlUuid: manager.manager.to_uuid(),
        Text: waiting.feed.as_str(),
        Bool: waiting.notify,
        Text: words::text(error),
        Integer: most,
    )
    .get_result(conn)
    .await
    .optional()?;
    Ok(row.is_some_and(|row| row.failed))
}

/// Removes rows of backfills that ended a week ago. Served by `backfills_ended_idx`.
pub async fn purge_done(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!("backfills/purge_done").execute(conn).await
}
