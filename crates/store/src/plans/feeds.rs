//! Which Managers watch which feeds, and `feeds.watched`, which is true while any does.
//!
//! The flag must be right although many transactions change the watchers of a feed at once. So whoever may take the
//! last watcher from a feed locks the feed. It conflicts with the foreign key's lock of those who add one, and with
//! polls. A feed that keeps another watcher is not locked, only this watcher's row.
//!
//! Locks are taken in one order, so that transactions do not deadlock: unwatched feeds that a Manager begins to watch, new
//! feeds, the own rows of `feed_watchers`, rows of others without waiting for them, and feeds by name.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{FeedName, ManagerName};

use super::ids;
use crate::{
    Error, QueryResult,
    feeds::note_watch,
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
        sql_query(
            "SELECT FROM feeds WHERE name = ANY ($1) AND NOT watched ORDER BY name FOR KEY SHARE",
        )
        .bind::<Array<Text>, _>(&names)
        .execute(conn)
        .await?;
        sql_query(
            "INSERT INTO feeds (name, platform, watched, next_poll_time, create_time) \
             SELECT name, platform, true, clock_timestamp(), clock_timestamp() \
             FROM unnest($1, $2) AS given (name, platform) ORDER BY name ON CONFLICT (name) DO NOTHING",
        )
        .bind::<Array<Text>, _>(&names)
        .bind::<Array<Text>, _>(&platforms)
        .execute(conn)
        .await?;
    }
    lock(conn, manager, &changed, &names).await?;
    if !names.is_empty() {
        note_watch(conn, manager, &names).await?;
        sql_query(
            "INSERT INTO feed_watchers (feed, namespace_id, manager_id) \
             SELECT DISTINCT name, $1, $2 FROM unnest($3) AS given (name) ORDER BY name ON CONFLICT DO NOTHING",
        )
        .bind::<SqlUuid, _>(manager.namespace.to_uuid())
        .bind::<SqlUuid, _>(manager.manager.to_uuid())
        .bind::<Array<Text>, _>(&names)
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
    let left: Vec<Left> = sql_query(
        "DELETE FROM feed_watchers AS watcher USING unnest($1, $2) AS given (namespace_id, manager_id) \
         WHERE watcher.namespace_id = given.namespace_id AND watcher.manager_id = given.manager_id \
             AND watcher.feed <> ALL ($3) RETURNING watcher.feed",
    )
    .bind::<Array<SqlUuid>, _>(&namespaces)
    .bind::<Array<SqlUuid>, _>(&managers)
    .bind::<Array<Text>, _>(stays)
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
    sql_query(
        "SELECT FROM (SELECT DISTINCT name, leaves FROM \
             (SELECT unnest($1), true UNION ALL SELECT unnest($2), false) AS given (name, leaves) ORDER BY name) AS given \
         LEFT JOIN LATERAL (SELECT true AS stays FROM feed_watchers AS other WHERE given.leaves AND other.feed = given.name \
             LIMIT 1 FOR KEY SHARE SKIP LOCKED) AS other ON true \
         LEFT JOIN LATERAL (SELECT true FROM feeds WHERE given.leaves AND other.stays IS NULL AND feeds.name = given.name \
             FOR UPDATE) AS last ON true \
         LEFT JOIN LATERAL (SELECT true FROM feeds WHERE NOT given.leaves AND feeds.name = given.name \
             AND NOT EXISTS (SELECT FROM feed_watchers AS own \
                 WHERE own.feed = given.name AND own.namespace_id = $3 AND own.manager_id = $4) \
             FOR KEY SHARE) AS new ON true",
    )
    .bind::<Array<Text>, _>(left)
    .bind::<Array<Text>, _>(come)
    .bind::<SqlUuid, _>(manager.namespace.to_uuid())
    .bind::<SqlUuid, _>(manager.manager.to_uuid())
    .execute(conn)
    .await?;
    Ok(())
}

/// Sets `watched` where it changes. A separate statement after the locks, so that it sees what was committed before
/// them. A feed that is watched again is due at once, and notes since when. One that is no longer watched keeps the time,
/// which decides when it is deleted.
async fn mark(conn: &mut AsyncPgConnection, names: &[String]) -> QueryResult<()> {
    sql_query(
        "WITH found AS (SELECT name, EXISTS (SELECT FROM feed_watchers WHERE feed = name) AS is_watched \
             FROM feeds WHERE name = ANY ($1)), \
         changed AS (SELECT feeds.name, is_watched FROM feeds JOIN found USING (name) \
             WHERE watched IS DISTINCT FROM is_watched ORDER BY feeds.name FOR NO KEY UPDATE OF feeds) \
         UPDATE feeds SET watched = is_watched, next_poll_time = clock_timestamp(), \
             rewatch_time = CASE WHEN is_watched AND cursor IS NOT NULL THEN clock_timestamp() END \
         FROM changed WHERE feeds.name = changed.name",
    )
    .bind::<Array<Text>, _>(names)
    .execute(conn)
    .await?;
    Ok(())
}
