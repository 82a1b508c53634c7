//! What may be asked of a platform under one credential, all replicas together.
//!
//! One row a credential. Requests are leased from its ledger as points of the API's rate limit are
//! ([`crate::rates`] has the rules): in no minute more than the limit, whoever dies. Posts that are paid for
//! singly are counted by the UTC day. What a platform itself says silences everybody until then.
//!
//! All by primary key; each call is one short transaction or statement.

use std::time::Duration;

use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{BigInt, Double, Integer, Jsonb, Nullable, Text},
};
use diesel_async::{AsyncConnection as _, AsyncPgConnection, RunQueryDsl};

use crate::{
    QueryError, QueryResult,
    rates::{Grant, Ledger, Settlement, Wanted},
};

/// How a credential stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stand {
    /// For how long nothing may be asked; zero when something may.
    pub silent: Duration,
    /// What was leased, where anything was wanted and nobody is silenced.
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

/// Settles a lease of `credential`, and then leases requests, each where it is given. Of requests `kept`
/// stay free: for more urgent ones.
///
/// # Errors
/// When the database does not answer.
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

/// For how long nothing may be asked under `credential`; zero when something may.
///
/// # Errors
/// When the database does not answer.
pub async fn silent(conn: &mut AsyncPgConnection, credential: &str) -> QueryResult<Duration> {
    let row: Option<Row> = sql_query(STAND)
        .bind::<Text, _>(credential)
        .get_result(conn)
        .await
        .optional()?;
    Ok(duration(row.and_then(|row| row.silent_seconds)))
}

/// Nobody asks anything under `credential` for `time` from now on, or for longer if that was said before.
///
/// # Errors
/// When the database does not answer.
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

/// What there is of a UTC day's posts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posts {
    /// Taken by this call.
    pub granted: u32,
    /// What is left after it.
    pub left: u32,
    /// How long until the day ends.
    pub day_ends_in: Duration,
}

/// Takes up to `wanted` of the posts that a UTC day has, by the database's clock. They are gone, whatever
/// becomes of them, unless [`give_back_posts`] says otherwise: it is money.
///
/// # Errors
/// When the database does not answer.
pub async fn take_posts(
    conn: &mut AsyncPgConnection,
    credential: &str,
    per_day: u32,
    wanted: u32,
) -> QueryResult<Posts> {
    #[derive(QueryableByName)]
    struct Taken {
        #[diesel(sql_type = Integer)]
        granted: i32,
        #[diesel(sql_type = Integer)]
        day_posts: i32,
        #[diesel(sql_type = Double)]
        rest_seconds: f64,
    }
    let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    conn.transaction(async |conn| {
        locked(conn, credential).await?;
        let taken: Taken = sql_query(
            "WITH today AS ( \
                 SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date AS day, \
                     extract(epoch FROM date_trunc('day', clock_timestamp(), 'UTC') + interval '1 day' \
                         - clock_timestamp())::float8 AS rest_seconds \
             ), stand AS ( \
                 SELECT CASE WHEN b.day = today.day THEN b.day_posts ELSE 0 END AS had, today.* \
                 FROM platform_budgets AS b, today WHERE credential = $1 \
             ) UPDATE platform_budgets AS b SET day = stand.day, \
                 day_posts = stand.had + greatest(least($2, $3 - stand.had), 0) \
             FROM stand WHERE credential = $1 \
             RETURNING greatest(least($2, $3 - stand.had), 0) AS granted, b.day_posts, stand.rest_seconds",
        )
        .bind::<Text, _>(credential)
        .bind::<Integer, _>(number(wanted))
        .bind::<Integer, _>(number(per_day))
        .get_result(conn)
        .await?;
        let count = |count: i32| u32::try_from(count).unwrap_or_default();
        Ok(Posts {
            granted: count(taken.granted),
            left: per_day.saturating_sub(count(taken.day_posts)),
            day_ends_in: duration(Some(taken.rest_seconds)),
        })
    })
    .await
}

/// Gives back posts that were taken today and not paid for. Those of a day that has ended are forgotten.
///
/// # Errors
/// When the database does not answer; then they count as paid for.
pub async fn give_back_posts(
    conn: &mut AsyncPgConnection,
    credential: &str,
    posts: u32,
) -> QueryResult<()> {
    sql_query(
        "UPDATE platform_budgets SET day_posts = greatest(day_posts - $2, 0) \
         WHERE credential = $1 AND day = (clock_timestamp() AT TIME ZONE 'UTC')::date",
    )
    .bind::<Text, _>(credential)
    .bind::<Integer, _>(i32::try_from(posts).unwrap_or(i32::MAX))
    .execute(conn)
    .await?;
    Ok(())
}

/// The row of `credential`, made where there was none, which nobody else changes until the end of the
/// transaction.
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
