//! Pages of lists and other reads, and limits on their cost.
//!
//! A page in the order of `createTime`, with no filter or only one on `createTime`, is read from an index. It needs no
//! estimate, unless it lists the deliveries of all Connections, which reads a page of each. For other pages `store`
//! first estimates the maximum cost from the number of rows to read
//! ([0028](../../../docs/adr/0028-lists-by-estimated-cost.md)):
//!
//! - More than [`MAX_COST`] is refused, regardless of load.
//! - Everything else is charged in points, in addition to the points of the read itself.
//! - An account reads at most two expensive pages at a time, over all replicas.
//!
//! A page that takes too long is cut off: it was estimated too low, or it skips the many Scans of a Manager that was
//! just deleted. A read that is no list, but takes more than a few rows, is cut off too, and is charged by the rows that
//! it read.
//!
//! Every page waits until its account has bytes in flight for it ([`crate::in_flight`]), and is charged by its size.

use std::time::Duration;

use domain::{Issue, Issues, list::ListQuery};
use store::{AsyncPgConnection, MAX_COST, Page, QueryResult, keyed, reads};

use crate::{ApiError, authenticate::Caller, parent::Parent, transaction::Work};

/// Maximum time of a page, after which it is cut off.
const MAX_TIME: Duration = Duration::from_secs(2);
/// A page that is estimated to take at least so many microseconds is expensive.
const COSTLY: u64 = 100_000;
/// Microseconds that each extra point pays for.
const MICROS_PER_POINT: u64 = 10_000;
/// Rows that are read and summed in that time.
const ROWS_PER_POINT: u64 = 20_000;

/// Returns the page of `list` that `read` reads, unless its `estimate` is too high. Call after authorisation,
/// because the estimate looks at rows.
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
    if !store::is_by_create_time(list) {
        return estimated_page(caller, estimate, read).await;
    }
    caller.reserve_page().await?;
    let mut conn = caller.connection().await?;
    within(&mut conn, async move |conn| Ok(read(conn).await?)).await
}

/// Same as [`page`], for a list whose page is never found by one index.
pub(crate) async fn estimated_page<T, E, R>(
    caller: &Caller,
    estimate: E,
    read: R,
) -> Result<Page<T>, ApiError>
where
    T: Send,
    E: for<'c> Work<&'c mut AsyncPgConnection, QueryResult<u64>, Future: Send> + Send,
    R: for<'c> Work<&'c mut AsyncPgConnection, Result<Page<T>, store::Error>, Future: Send> + Send,
{
    caller.reserve_page().await?;
    let mut conn = caller.connection().await?;
    let cost = within(&mut conn, async |conn| Ok(estimate(conn).await?)).await?;
    if cost > MAX_COST {
        return Err(too_costly().into());
    }
    let points = u32::try_from(cost / MICROS_PER_POINT).unwrap_or(u32::MAX);
    if points > 0 {
        // Charging may need a connection too. Holding one at a time keeps requests from waiting for each other.
        drop(conn);
        caller.charge(points).await?;
        conn = caller.connection().await?;
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

/// Same as [`page`], for a list below `parent`: only an empty page leaves open whether that exists.
pub(crate) async fn page_of<T, E, R>(
    caller: &Caller,
    parent: Parent,
    list: &ListQuery,
    estimate: E,
    read: R,
) -> Result<Page<T>, ApiError>
where
    T: Send,
    E: for<'c> Work<&'c mut AsyncPgConnection, QueryResult<u64>, Future: Send> + Send,
    R: for<'c> Work<&'c mut AsyncPgConnection, Result<Page<T>, store::Error>, Future: Send> + Send,
{
    let page = page(caller, list, estimate, read).await?;
    if page.items.is_empty() {
        parent.check(&mut *caller.connection().await?).await?;
    }
    Ok(page)
}

/// Returns what `read` reads, and charges for the number of rows that it also returns.
pub(crate) async fn rows<T, R>(caller: &Caller, read: R) -> Result<T, ApiError>
where
    T: Send,
    R: for<'c> Work<&'c mut AsyncPgConnection, Result<(T, u64), ApiError>, Future: Send> + Send,
{
    let mut conn = caller.connection().await?;
    let (found, rows) = within(&mut conn, read).await?;
    drop(conn);
    let points = u32::try_from(rows / ROWS_PER_POINT).unwrap_or(u32::MAX);
    if points > 0 {
        caller.charge(points).await?;
    }
    Ok(found)
}

/// Runs `work` in a read-only transaction, with [`MAX_TIME`] per statement.
async fn within<T, W>(conn: &mut AsyncPgConnection, work: W) -> Result<T, ApiError>
where
    W: for<'c> Work<&'c mut AsyncPgConnection, Result<T, ApiError>, Future: Send> + Send,
{
    reads::begin(conn, MAX_TIME).await?;
    let result = work(conn).await;
    keyed::end(conn, result).await
}

fn too_costly() -> Issues {
    let hint = "too many items to look at one by one: bound createTime, for example \
                createTime > \"2026-11-20T00:00:00Z\", search fewer texts, and order by createTime";
    Issues::one_with_hint("filter", Issue::TooCostly, hint)
}
