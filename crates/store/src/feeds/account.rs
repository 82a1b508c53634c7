//! Hides from an account what a feed was before the account watched it.
//!
//! A feed is polled once for all Managers that watch it, so its row and its records go back to when the first account
//! watched it. An account sees them from its own first watch on (`account_feeds`), and sums without what they were by
//! then. A Manager that is changed, or disabled for less than [`UNWATCHED_FOR`], does not lose the account's own
//! history.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Double, Nullable, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::ManagerName;
use uuid::Uuid;

use super::UNWATCHED_FOR;
use crate::QueryResult;

/// Records that the Manager's account watches these feeds, which exist. Call before the Manager is among their
/// watchers. One statement by primary keys; writes nothing for feeds that the account has watched before.
pub(crate) async fn record_watch(
    conn: &mut AsyncPgConnection,
    manager: ManagerName,
    feeds: &[&str],
) -> QueryResult<()> {
    // A feed that the Manager already watches was watched before this table existed.
    sql_query(
        "INSERT INTO account_feeds AS known (account_id, feed, watch_time, before) \
         SELECT n.account_id, f.name, CASE WHEN own.feed IS NULL THEN clock_timestamp() ELSE f.create_time END, \
             CASE WHEN own.feed IS NULL THEN jsonb_build_object( \
                 'gaps', f.gap_count, 'quarantined', f.quarantine_count, \
                 'day', (SELECT to_jsonb(d) FROM feed_days AS d \
                     WHERE d.feed = f.name AND d.day = (clock_timestamp() AT TIME ZONE 'UTC')::date), \
                 'posts', (SELECT jsonb_object_agg(s.interval_seconds, s.posts) \
                     FROM (VALUES (60, 'minute'), (3600, 'hour'), (86400, 'day')) AS bucket (seconds, word) \
                     JOIN feed_stats AS s ON s.feed = f.name AND s.interval_seconds = bucket.seconds \
                         AND s.time = date_trunc(bucket.word, clock_timestamp(), 'UTC'))) \
             ELSE '{}' END \
         FROM feeds AS f JOIN namespaces AS n ON n.id = $1 \
         LEFT JOIN feed_watchers AS own ON own.feed = f.name AND own.namespace_id = $1 AND own.manager_id = $2 \
         WHERE f.name = ANY ($3) AND NOT EXISTS (SELECT FROM account_feeds AS a \
             WHERE a.account_id = n.account_id AND a.feed = f.name AND a.leave_time IS NULL) \
         ORDER BY f.name \
         ON CONFLICT (account_id, feed) DO UPDATE SET leave_time = NULL WHERE known.leave_time IS NOT NULL",
    )
    .bind::<SqlUuid, _>(manager.namespace.to_uuid())
    .bind::<SqlUuid, _>(manager.manager.to_uuid())
    .bind::<Array<Text>, _>(feeds)
    .execute(conn)
    .await?;
    Ok(())
}

/// Position of [`forget_left`] among all accounts and their feeds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountFeed {
    account: Uuid,
    feed: String,
}

/// Forgets feeds that accounts have not watched for [`UNWATCHED_FOR`], among the next `limit` after `after`. An account
/// that comes back later sees nothing from before. Returns the last of them, or `None` at the end. Served by the primary
/// keys and `feed_watchers_pkey`.
pub async fn forget_left(
    conn: &mut AsyncPgConnection,
    after: &AccountFeed,
    limit: i64,
) -> QueryResult<Option<AccountFeed>> {
    #[derive(QueryableByName)]
    struct Last {
        #[diesel(sql_type = Nullable<SqlUuid>)]
        account_id: Option<Uuid>,
        #[diesel(sql_type = Nullable<Text>)]
        feed: Option<String>,
    }
    // A row that a new watch changes meanwhile is compared again.
    let last: Option<Last> = sql_query(
        "WITH page AS MATERIALIZED ( \
             SELECT account_id, feed, EXISTS (SELECT FROM feed_watchers AS w JOIN namespaces AS n ON n.id = w.namespace_id \
                 WHERE w.feed = a.feed AND n.account_id = a.account_id) AS is_watched \
             FROM account_feeds AS a WHERE (account_id, feed) > ($1, $2) ORDER BY account_id, feed LIMIT $3 \
         ), forgotten AS ( \
             DELETE FROM account_feeds AS a USING page \
             WHERE a.account_id = page.account_id AND a.feed = page.feed AND NOT page.is_watched \
                 AND a.leave_time < clock_timestamp() - $4 * interval '1 second' \
         ), noted AS ( \
             UPDATE account_feeds AS a SET leave_time = CASE WHEN NOT page.is_watched THEN clock_timestamp() END \
             FROM page WHERE a.account_id = page.account_id AND a.feed = page.feed \
                 AND page.is_watched = (a.leave_time IS NOT NULL) \
         ) SELECT account_id, feed FROM page ORDER BY account_id DESC, feed DESC LIMIT 1",
    )
    .bind::<SqlUuid, _>(after.account)
    .bind::<Text, _>(&after.feed)
    .bind::<BigInt, _>(limit)
    .bind::<Double, _>(UNWATCHED_FOR.as_secs_f64())
    .load(conn)
    .await?
    .pop();
    Ok(last.and_then(|last| {
        Some(AccountFeed {
            account: last.account_id?,
            feed: last.feed?,
        })
    }))
}
