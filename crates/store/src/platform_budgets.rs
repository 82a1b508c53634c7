//! Request and post budgets of a platform credential, shared by all replicas.
//!
//! Each credential has one row. Requests are leased from its ledger like points of the API's rate limit
//! ([`crate::rates`] has the rules): no minute exceeds the limit, even if a replica dies. Posts that cost money
//! each are counted per UTC day, and shared by the accounts that watch the platform ([`share`]). When a platform
//! asks for a pause, all replicas stay silent until it ends.
//!
//! Each call is one short transaction or statement, by primary key; posts for a feed also need a read of the
//! platform's watchers.

use std::time::Duration;

use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id};
use uuid::Uuid;

use crate::{
    QueryError, QueryResult,
    rates::{Grant, Ledger, Settlement, Wanted},
};

mod share;

use share::Share;

/// State of a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// Time until requests are allowed again; zero when they are allowed now.
    pub silent: Duration,
    /// Leased requests, if any were wanted and the credential is not silenced.
    pub grant: Option<Grant>,
}

#[derive(QueryableByName)]
struct Row {
    #[diesel(sql_type = Jsonb)]
    ledger: serde_json::Value,
    #[diesel(sql_type = BigInt)]
    now_ms: i64,
    #[diesel(sql_type = Nullable<Double>)]
    silent_seconds: Option<f64>,
}

const STAND: &str = "SELECT ledger, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms, \
    extract(epoch FROM silent_until - clock_timestamp())::float8 AS silent_seconds \
    FROM platform_budgets WHERE credential = $1";

/// Settles a lease of `credential`, and then leases requests; each step runs if its argument is given.
/// `kept` requests stay free for more urgent ones.
pub async fn lease(
    conn: &mut AsyncPgConnection,
    credential: &str,
    limit: u32,
    settlement: Option<&Settlement>,
    wanted: Option<&Wanted>,
    kept: u32,
) -> QueryResult<Stand> {
    conn.transaction(async |conn| {
        let row = locked(conn, credential).await?;
        let mut ledger: Ledger = serde_json::from_value(row.ledger)
            .map_err(|error| QueryError::DeserializationError(error.into()))?;
        if let Some(settlement) = settlement {
            ledger.settle(settlement);
        }
        let silent = duration(row.silent_seconds);
        let wanted = wanted.filter(|_| silent.is_zero());
        let limit = limit.saturating_sub(kept).max(1);
        let grant = wanted.map(|wanted| ledger.grant(row.now_ms, limit, wanted));
        let ledger = serde_json::to_value(&ledger)
            .map_err(|error| QueryError::SerializationError(error.into()))?;
        sql_query("UPDATE platform_budgets SET ledger = $2 WHERE credential = $1")
            .bind::<Text, _>(credential)
            .bind::<Jsonb, _>(ledger)
            .execute(conn)
            .await?;
        Ok(Stand { silent, grant })
    })
    .await
}

/// Returns the time until requests under `credential` are allowed again; zero when they are allowed now.
pub async fn silent(conn: &mut AsyncPgConnection, credential: &str) -> QueryResult<Duration> {
    let row: Option<Row> = sql_query(STAND)
        .bind::<Text, _>(credential)
        .get_result(conn)
        .await
        .optional()?;
    Ok(duration(row.and_then(|row| row.silent_seconds)))
}

/// Silences `credential` for `time` from now. A longer silence that is already set stays.
pub async fn silence(
    conn: &mut AsyncPgConnection,
    credential: &str,
    time: Duration,
) -> QueryResult<()> {
    sql_query(
        "INSERT INTO platform_budgets AS b (credential, silent_until) \
         VALUES ($1, clock_timestamp() + $2 * interval '1 second') ON CONFLICT (credential) DO UPDATE \
             SET silent_until = greatest(b.silent_until, excluded.silent_until)",
    )
    .bind::<Text, _>(credential)
    .bind::<Double, _>(time.as_secs_f64())
    .execute(conn)
    .await?;
    Ok(())
}

/// Result of a request for a UTC day's posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posts {
    /// Taken by this call.
    pub granted: u32,
    /// Posts left after this call, for all accounts together.
    pub left: u32,
    /// Time until the day ends.
    pub day_ends_in: Duration,
    /// Account whose share the posts come from.
    pub account: Option<Id>,
}

/// Takes up to `wanted` of the paid posts of a UTC day, by the database's clock. They count as
/// spent unless [`give_back_posts`] returns them, because each post costs money.
///
/// Posts for a `feed` come from the share of the watching account with the largest allowance. Without a feed,
/// no account's share is charged.
pub async fn take_posts(
    conn: &mut AsyncPgConnection,
    credential: &str,
    per_day: u32,
    wanted: u32,
    feed: Option<&FeedName>,
) -> QueryResult<Posts> {
    #[derive(QueryableByName)]
    struct Today {
        #[diesel(sql_type = Integer)]
        had: i32,
        #[diesel(sql_type = Double)]
        rest_seconds: f64,
    }
    conn.transaction(async |conn| {
        // The lock stops other takes and returns until the end of the transaction.
        locked(conn, credential).await?;
        let today: Today = sql_query(
            "WITH today AS ( \
                 SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day, \
                     extract(epoch FROM date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day' \
                         - clock_timestamp())::float8 AS rest_seconds \
             ) UPDATE platform_budgets AS b SET day = today.day, \
                 day_posts = CASE WHEN b.day = today.day THEN b.day_posts ELSE 0 END \
             FROM today WHERE credential = $1 RETURNING b.day_posts AS had, today.rest_seconds",
        )
        .bind::<Text, _>(credential)
        .get_result(conn)
        .await?;
        let day_ends_in = duration(Some(today.rest_seconds));
        let left = per_day.saturating_sub(count(today.had));
        let shares = match feed {
            Some(feed) => shares(conn, credential, feed).await?,
            None => Vec::new(),
        };
        let (account, allowed) = share::allowance(per_day, left, &shares, day_ends_in);
        let granted = wanted.min(allowed);
        sql_query("UPDATE platform_budgets SET day_posts = day_posts + $2 WHERE credential = $1")
            .bind::<Text, _>(credential)
            .bind::<Integer, _>(number(granted))
            .execute(conn)
            .await?;
        if let Some(account) = account {
            sql_query(
                "INSERT INTO platform_budget_shares AS s (credential, account_id, day, day_posts) \
                 SELECT credential, $2, day, $3 FROM platform_budgets WHERE credential = $1 \
                 ON CONFLICT (credential, account_id) DO UPDATE SET day = excluded.day, day_posts = \
                     excluded.day_posts + CASE WHEN s.day = excluded.day THEN s.day_posts ELSE 0 END",
            )
            .bind::<Text, _>(credential)
            .bind::<SqlUuid, _>(account.to_uuid())
            .bind::<Integer, _>(number(granted))
            .execute(conn)
            .await?;
        }
        Ok(Posts {
            granted,
            left: left - granted,
            day_ends_in,
            account,
        })
    })
    .await
}

/// Returns what each account that watches anything on the platform of `feed` has taken today.
async fn shares(
    conn: &mut AsyncPgConnection,
    credential: &str,
    feed: &FeedName,
) -> QueryResult<Vec<Share>> {
    #[derive(QueryableByName)]
    struct Watching {
        #[diesel(sql_type = SqlUuid)]
        account_id: Uuid,
        #[diesel(sql_type = Bool)]
        watches: bool,
        #[diesel(sql_type = Integer)]
        taken: i32,
    }
    let watching: Vec<Watching> = sql_query(
        "SELECT n.account_id, bool_or(w.feed = $3) AS watches, coalesce(max(s.day_posts), 0) AS taken \
         FROM (SELECT DISTINCT w.namespace_id, w.feed FROM feeds AS f JOIN feed_watchers AS w ON w.feed = f.name \
               WHERE f.platform = $2 AND f.watched) AS w \
         JOIN namespaces AS n ON n.id = w.namespace_id \
         LEFT JOIN platform_budget_shares AS s ON s.credential = $1 AND s.account_id = n.account_id \
             AND s.day = (SELECT day FROM platform_budgets WHERE credential = $1) \
         GROUP BY n.account_id ORDER BY n.account_id",
    )
    .bind::<Text, _>(credential)
    .bind::<Text, _>(feed.platform())
    .bind::<Text, _>(feed.as_str())
    .load(conn)
    .await?;
    let share = |one: Watching| Share {
        account: Id::from_uuid(one.account_id),
        watches: one.watches,
        taken: count(one.taken),
    };
    Ok(watching.into_iter().map(share).collect())
}

/// Gives back posts that were taken today and not paid for, also to the share of `account` if given. Posts of a day
/// that has ended are ignored.
///
/// # Errors
/// When the database does not answer; then they count as paid for.
pub async fn give_back_posts(
    conn: &mut AsyncPgConnection,
    credential: &str,
    posts: u32,
    account: Option<Id>,
) -> QueryResult<()> {
    conn.transaction(async |conn| {
        // Same lock order as when posts are taken.
        sql_query(
            "UPDATE platform_budgets SET day_posts = greatest(day_posts - $2, 0) \
             WHERE credential = $1 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date",
        )
        .bind::<Text, _>(credential)
        .bind::<Integer, _>(number(posts))
        .execute(conn)
        .await?;
        sql_query(
            "UPDATE platform_budget_shares SET day_posts = greatest(day_posts - $2, 0) \
             WHERE credential = $1 AND account_id = $3 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date",
        )
        .bind::<Text, _>(credential)
        .bind::<Integer, _>(number(posts))
        .bind::<Nullable<SqlUuid>, _>(account.map(Id::to_uuid))
        .execute(conn)
        .await?;
        Ok(())
    })
    .await
}

/// Returns the row of `credential`, locked until the end of the transaction. Creates the row if it is missing.
async fn locked(conn: &mut AsyncPgConnection, credential: &str) -> QueryResult<Row> {
    let locked = sql_query(format!("{STAND} FOR UPDATE")).bind::<Text, _>(credential);
    if let Some(row) = locked.clone().get_result(conn).await.optional()? {
        return Ok(row);
    }
    sql_query("INSERT INTO platform_budgets (credential) VALUES ($1) ON CONFLICT DO NOTHING")
        .bind::<Text, _>(credential)
        .execute(conn)
        .await?;
    locked.get_result(conn).await
}

fn duration(seconds: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(seconds.unwrap_or_default()).unwrap_or_default()
}

fn count(count: i32) -> u32 {
    u32::try_from(count).unwrap_or_default()
}

fn number(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
