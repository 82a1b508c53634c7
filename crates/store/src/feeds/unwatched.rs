//! Deletion of feeds that no Manager has watched for long, with all that is stored of them.

use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Double, Text},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// How long an unwatched feed is kept: longer than its stored posts, and about as long as the ids of its posts. A feed
/// that is watched again within this time continues where it was; its new watchers get no posts from long before.
pub const UNWATCHED_FOR: Duration = Duration::from_hours(7 * 24);

/// Tables with rows of a feed, by its name in `feed`. Those of Managers refer to it only while they watch it, and rows
/// of Scans and their posts stay until retention.
const OWN_TABLES: [&str; 7] = [
    "recent_posts",
    "feed_post_ids",
    "feed_days",
    "feed_gaps",
    "feed_missing_ids",
    "quarantined_posts",
    "feed_stats",
];

/// Deletes up to `limit` feeds that no Manager has watched for [`UNWATCHED_FOR`], in one transaction. Returns their
/// number. Feeds that are being read for a backfill stay, and so do those that a Manager begins to watch right now
/// (`plans::watch` locks them). Served by `feeds_unwatched_idx` and the indexes of each table by feed.
///
/// # Errors
/// If the database does not answer; nothing is deleted then.
pub async fn purge_unwatched(conn: &mut AsyncPgConnection, limit: i64) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Name {
        #[diesel(sql_type = Text)]
        name: String,
    }
    conn.transaction(async |conn| {
        // A row that changed before it could be locked is checked again, and was watched then.
        let feeds: Vec<Name> = sql_query(
            "SELECT name FROM feeds \
             WHERE NOT watched AND next_poll_time < clock_timestamp() - $1 * interval '1 second' \
                 AND NOT EXISTS (SELECT FROM feed_watchers AS w WHERE w.feed = feeds.name) \
                 AND NOT EXISTS (SELECT FROM look_backs AS l WHERE l.feed = feeds.name) \
             ORDER BY next_poll_time LIMIT $2 FOR UPDATE OF feeds SKIP LOCKED",
        )
        .bind::<Double, _>(UNWATCHED_FOR.as_secs_f64())
        .bind::<BigInt, _>(limit)
        .load(conn)
        .await?;
        let names: Vec<&str> = feeds.iter().map(|feed| feed.name.as_str()).collect();
        if names.is_empty() {
            return Ok(0);
        }
        for table in OWN_TABLES {
            sql_query(format!("DELETE FROM {table} WHERE feed = ANY ($1)"))
                .bind::<Array<Text>, _>(&names)
                .execute(conn)
                .await?;
        }
        sql_query("DELETE FROM feeds WHERE name = ANY ($1)")
            .bind::<Array<Text>, _>(&names)
            .execute(conn)
            .await
    })
    .await
}
