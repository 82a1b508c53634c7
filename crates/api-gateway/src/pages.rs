//! Pages of lists, and what they may cost.
//!
//! A page in the order of `createTime`, with no filter but one on it, is read along an index: polling is neither
//! refused nor cut off. For any other, `store` estimates first what it costs at most, by how many rows there
//! are to look at ([0028](../../../docs/adr/0028-lists-by-estimated-cost.md)):
//!
//! - More than [`MAX_COST`] is refused, independent of the load.
//! - The rest is charged in points, beyond that of each read.
//! - Of pages that take long, an account reads two at a time, on all replicas together.
//! - What was estimated wrongly is cut off.

use std::time::Duration;

use domain::{Issue, Issues, list::ListQuery};
use store::{AsyncPgConnection, MAX_COST, Page, QueryResult, keyed, reads};

use crate::{ApiError, authenticate::Caller, state::Work};

/// A page that runs longer is cut off.
const MAX_TIME: Duration = Duration::from_secs(2);
/// A page that may take as many microseconds is costly.
const COSTLY: u64 = 100_000;
/// Microseconds that a point pays for, beyond the first.
const MICROS_PER_POINT: u64 = 10_000;

/// The page of `list` that `read` reads, if it costs no more than it may by `estimate`. Call after authorisation: the
/// estimate looks at rows.
pub(crate) async fn page<T, E, R>(
    caller: &Caller,
    list: &ListQuery,
    estimate: E,
    read: R,
) -> Result<Page<T>, ApiError>
where
    T: Send,
    E: for<'c> Work<&'c mut AsyncPgConnection, QueryResult<u64>, Future: Send> + Send,
    R: for<'c> Work<&'c mut AsyncPgConnection, Result<Page<T>, store::Error>, Future: Send> + Send,
{
    let mut conn = caller.connection().await?;
    let cost = if store::is_by_create_time(list) {
        0
    } else {
        within(&mut conn, async |conn| Ok(estimate(conn).await?)).await?
    };
    if cost > MAX_COST {
        return Err(too_costly().into());
    }
    let points = u32::try_from(cost / MICROS_PER_POINT).unwrap_or(u32::MAX);
    if points > 0 {
        // Points may have to be asked for: with one connection at a time, requests do not wait for each other.
        drop(conn);
        caller.charge(points).await?;
        conn = caller.connection().await?;
    }
    if store::is_by_create_time(list) {
        return Ok(read(&mut conn).await?);
    }
    let account = caller.key.account;
    within(&mut conn, async move |conn| {
        if cost >= COSTLY && !reads::take_slot(conn, account).await? {
            return Err(ApiError::TooManyAtOnce);
        }
        Ok(read(conn).await?)
    })
    .await
}

/// Runs `work` in a transaction that only reads, each statement for [`MAX_TIME`] at most.
async fn within<T, W>(conn: &mut AsyncPgConnection, work: W) -> Result<T, ApiError>
where
    W: for<'c> Work<&'c mut AsyncPgConnection, Result<T, ApiError>, Future: Send> + Send,
{
    reads::begin(conn, MAX_TIME).await?;
    let result = work(conn).await;
    keyed::end(conn, result).await
}

fn too_costly() -> Issues {
    let mut issues = Issues::default();
    let hint = "too many items to look at one by one: bound createTime, for example \
                createTime > \"2026-11-20T00:00:00Z\", search fewer texts, and order by createTime";
    issues.add_with_hint("filter", Issue::TooCostly, hint);
    issues
}
