//! Which Managers watch which feeds, and `feeds.watched`, which is true while any does.
//!
//! The flag must be right although many transactions change the watchers of a feed at once. So a transaction that may
//! remove the last watcher of a feed locks the feed. That conflicts with the foreign key's lock of transactions that
//! add a watcher, and with polls. If another watcher remains, only the row of that watcher is locked, not the feed.
//!
//! Locks are taken in one order, so that transactions do not deadlock: unwatched feeds that a Manager begins to watch, new
//! feeds, the own rows of `feed_watchers`, rows of others without waiting for them, and feeds by name.

use diesel::{
    QueryableByName,
    sql_types::{Array, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, ManagerName};

use super::ids;
use crate::{
    Error, QueryResult,
    feeds::record_watch,
    prepared::query,
    quotas::{self, Limits},
};

/// Makes the Manager watch these feeds and no others. Fails if the account would watch more feeds than its quota. At most
/// nine statements, by keys; new feeds are counted.
pub(crate) async fn watch(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    watched: &[FeedName],
    defaults: &Limits,
) -> Result<(), Error> {
    if !watched.is_empty() {
        quotas::check_feeds(conn, manager, watched, defaults).await?;
    }
    let names: Vec<&str> = watched.iter().map(FeedName::as_str).collect();
    let mut changed = leave(conn, &[manager], &names).await?;
    if !names.is_empty() {
        let platforms: Vec<&str> = watched.iter().map(FeedName::platform).collect();
        // From here on `feeds::purge_unwatched` cannot delete them. It deletes no others, and those that it has
        // deleted are created again.
        query!(
            "plans/lock_unwatched",
            Array<Text>: &names,
        )
        .execute(conn)
        .await?;
        query!(
            "plans/insert_feeds",
            Array<Text>: &names,
            Array<Text>: &platforms,
        )
        .execute(conn)
        .await?;
    }
    lock(conn, manager, &changed, &names).await?;
    if !names.is_empty() {
        record_watch(conn, manager, &names).await?;
        query!(
            "plans/insert_watchers",
            SqlUuid: manager.namespace.to_uuid(),
            SqlUuid: manager.manager.to_uuid(),
            Array<Text>: &names,
        )
        .execute(conn)
        .await?;
    }
    changed.extend(names.into_iter().map(str::to_owned));
    Ok(mark(conn, &changed).await?)
}

/// Makes these Managers watch nothing. Three statements for any number of Managers.
pub(crate) async fn unwatch(
    conn: &mut AsyncPgConnection,
    managers: &[ManagerName],
) -> QueryResult<()> {
    let Some(first) = managers.first() else {
        return Ok(());
    };
    let left = leave(conn, managers, &[]).await?;
    lock(conn, *first, &left, &[]).await?;
    mark(conn, &left).await
}

/// Ends the watches of these Managers, except those of the feeds `stays`. Returns the feeds that they left.
async fn leave(
    conn: &mut AsyncPgConnection,
    managers: &[ManagerName],
    stays: &[&str],
) -> QueryResult<Vec<String>> {
    #[derive(QueryableByName)]
    struct Left {
        #[diesel(sql_type = Text)]
        feed: String,
    }
    let (namespaces, managers) = ids(managers);
    let left: Vec<Left> = query!(
        "plans/leave_feeds",
        Array<SqlUuid>: &namespaces,
        Array<SqlUuid>: &managers,
        Array<Text>: stays,
    )
    .load(conn)
    .await?;
    Ok(left.into_iter().map(|row| row.feed).collect())
}

/// Locks the feeds of `left` that may have no watcher any more, and the feeds of `come` that `manager` does not watch
/// yet. Rows of watchers that someone else deletes right now are no reason to leave a feed unlocked.
async fn lock(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    left: &[String],
    come: &[&str],
) -> QueryResult<()> {
    // The nested loop over the sorted names takes the locks in their order, whatever their kind.
    query!(
        "plans/lock_feeds",
        Array<Text>: left,
        Array<Text>: come,
        SqlUuid: manager.namespace.to_uuid(),
        SqlUuid: manager.manager.to_uuid(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets `watched` where it changes. A separate statement after the locks, so that it sees what was committed before
/// them. A feed that is watched again is due at once, and its row records since when. A feed that is no longer watched
/// keeps the time, which decides when it is deleted.
async fn mark(conn: &mut AsyncPgConnection, names: &[String]) -> QueryResult<()> {
    query!(
        "plans/mark_watched",
        Array<Text>: names,
    )
    .execute(conn)
    .await?;
    Ok(())
}
