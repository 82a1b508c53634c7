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
    prelude::*,
    sql_types::{BigInt, Bool, Double, Integer, Jsonb, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, Id};
use uuid::Uuid;

use crate::{
    QueryError, QueryResult,
    prepared::query,
    rates::{Grant, Ledger, Settlement, Wanted},
    schema::platform_budgets,
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
struct BudgetRow {
    #[diesel(sql_type = Jsonb)]
    ledger: serde_json::Value,
    #[diesel(sql_type = BigInt)]
    now_ms: i64,
    #[diesel(sql_type = Nullable<Double>)]
    silent_seconds: Option<f64>,
}

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
        diesel::update(platform_budgets::table.find(credential))
            .set(platform_budgets::ledger.eq(ledger))
            .execute(conn)
            .await?;
        Ok(Stand { silent, grant })
    })
    .await
}

/// Returns the time until requests under `credential` are allowed again; zero when they are allowed now.
pub async fn silent(conn: &mut AsyncPgConnection, credential: &str) -> QueryResult<Duration> {
    #[derive(QueryableByName)]
    struct Silence {
        #[diesel(sql_type = Nullable<Double>)]
        seconds: Option<f64>,
    }
    let silence: Option<Silence> = query!(
        "platform_budgets/silent",
        Text: credential,
    )
    .get_result(conn)
    .await
    .optional()?;
    Ok(duration(silence.and_then(|silence| silence.seconds)))
}

/// Silences `credential` for `time` from now. A longer silence that is already set stays.
pub async fn silence(
    conn: &mut AsyncPgConnection,
    credential: &str,
    time: Duration,
) -> QueryResult<()> {
    query!(
        "platform_budgets/silence",
        Text: credential,
        Double: time.as_secs_f64(),
    )
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
/// spent unless [`refund_posts`] returns them, because each post costs money.
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
        let today: Today = query!(
            "platform_budgets/begin_day",
            Text: credential,
        )
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
        diesel::update(platform_budgets::table.find(credential))
            .set(platform_budgets::day_posts.eq(platform_budgets::day_posts + number(granted)))
            .execute(conn)
            .await?;
        if let Some(account) = account {
            query!(
                "platform_budgets/take_share",
                Text: credential,
                SqlUuid: account.to_uuid(),
                Integer: number(granted),
            )
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
    let watching: Vec<Watching> = query!(
        "platform_budgets/shares",
        Text: credential,
        Text: feed.platform(),
        Text: feed.as_str(),
    )
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
pub async fn refund_posts(
    conn: &mut AsyncPgConnection,
    credential: &str,
    posts: u32,
    account: Option<Id>,
) -> QueryResult<()> {
    conn.transaction(async |conn| {
        // Same lock order as when posts are taken.
        query!(
            "platform_budgets/refund",
            Text: credential,
            Integer: number(posts),
        )
        .execute(conn)
        .await?;
        query!(
            "platform_budgets/refund_share",
            Text: credential,
            Integer: number(posts),
            Nullable<SqlUuid>: account.map(Id::to_uuid),
        )
        .execute(conn)
        .await?;
        Ok(())
    })
    .await
}

/// Returns the row of `credential`, locked until the end of the transaction. Creates the row if it is missing.
async fn locked(conn: &mut AsyncPgConnection, credential: &str) -> QueryResult<BudgetRow> {
    let locked = || {
        query!(
            "platform_budgets/lock",
            Text: credential,
        )
    };
    if let Some(row) = locked().get_result(conn).await.optional()? {
        return Ok(row);
    }
    diesel::insert_into(platform_budgets::table)
        .values(platform_budgets::credential.eq(credential))
        .on_conflict_do_nothing()
        .execute(conn)
        .await?;
    locked().get_result(conn).await
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
