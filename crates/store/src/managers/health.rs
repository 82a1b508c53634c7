//! Health of Managers, computed when they are read; nothing is stored for it.
//!
//! One statement for a page of Managers, by primary keys; of the Scans it reads only the newest.

use std::collections::HashMap;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Id, Manager,
    manager::{
        ManagerState,
        health::{Health, HealthReason},
    },
};
use uuid::Uuid;

use super::Read;
use crate::QueryResult;

/// Failed polls in a row before a feed is reported as failing.
const FAILURES: i32 = 3;
/// Minimum number of verdicts for a statement about quality.
const JUDGED: i64 = 5;
/// Number of the newest Scans of a Manager that are examined. A page of a hundred Managers reads as many of each.
const LOOKED_AT: i64 = 50;

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct Row {
    #[diesel(sql_type = SqlUuid)]
    id: Uuid,
    #[diesel(sql_type = Bool)]
    feeds_failing: bool,
    #[diesel(sql_type = Bool)]
    flooded: bool,
    #[diesel(sql_type = Bool)]
    paused: bool,
    #[diesel(sql_type = Bool)]
    backfill_failed: bool,
    #[diesel(sql_type = Bool)]
    no_posts: bool,
    #[diesel(sql_type = BigInt)]
    judged: i64,
    #[diesel(sql_type = BigInt)]
    refused: i64,
}

/// Adds the health of Managers of one Namespace. A disabled Manager counts as healthy.
pub(super) async fn tell(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    read: Vec<Read>,
) -> QueryResult<Vec<Manager>> {
    let ids: Vec<Uuid> = read
        .iter()
        .filter(|read| read.manager.enable && read.manager.apply_time.is_some())
        .map(|read| read.manager.name.manager.to_uuid())
        .collect();
    let seen = if ids.is_empty() {
        HashMap::new()
    } else {
        look(conn, namespace, &ids).await?
    };
    let told = read.into_iter().map(
        |Read {
             mut manager,
             unreadable,
         }| {
            let row = seen.get(&manager.name.manager.to_uuid());
            let mut reasons = row.map(reasons).unwrap_or_default();
            if manager.state == ManagerState::ApplyFailed {
                reasons.push(HealthReason::ApplyFailed);
            }
            if unreadable {
                reasons.push(HealthReason::InstructionsUnreadable);
            }
            manager.health = Some(Health::of(reasons));
            manager
        },
    );
    Ok(told.collect())
}

fn reasons(row: &Row) -> Vec<HealthReason> {
    let bad = row.judged >= JUDGED && row.refused * 2 > row.judged;
    [
        (row.feeds_failing, HealthReason::FeedsFailing),
        (row.paused, HealthReason::QuotaExceeded),
        (row.flooded, HealthReason::Flooded),
        (bad, HealthReason::FeedbackBad),
        (row.backfill_failed, HealthReason::BackfillFailed),
        (row.no_posts, HealthReason::NoPosts),
    ]
    .into_iter()
    .filter_map(|(holds, reason)| holds.then_some(reason))
    .collect()
}

/// Posts are counted by day, so "more than a day" means since the beginning of yesterday. A Manager that watches
/// nothing has no posts. A failed backfill counts until a later one of the feed succeeds, delivered or silent.
async fn look(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    ids: &[Uuid],
) -> QueryResult<HashMap<Uuid, Row>> {
    let rows: Vec<Row> = sql_query(
        "SELECT m.id, \
             coalesce(feeds.failing, false) AS feeds_failing, \
             coalesce(clock.quota_suppressed > 0 \
                 AND clock.quota_day = (clock_timestamp() AT TIME ZONE 'UTC')::date, false) AS flooded, \
             clock.refused_since IS NOT NULL OR EXISTS (SELECT FROM backfills AS b \
                 WHERE b.namespace_id = m.namespace_id AND b.manager_id = m.id AND b.catch_up_since IS NOT NULL \
                     AND b.state IN ('WAITING', 'READING')) AS paused, \
             EXISTS (SELECT FROM backfills AS b JOIN feed_watchers AS watcher USING (feed, namespace_id, manager_id) \
                 WHERE b.namespace_id = m.namespace_id AND b.manager_id = m.id AND b.state = 'FAILED' \
                     AND NOT EXISTS (SELECT FROM backfills AS later \
                         WHERE later.namespace_id = b.namespace_id AND later.manager_id = b.manager_id \
                             AND later.feed = b.feed AND later.state = 'DONE' AND later.update_time > b.update_time) \
             ) AS backfill_failed, \
             m.apply_time < days.begin AND NOT EXISTS (SELECT FROM feed_watchers AS watcher \
                 JOIN feed_stats AS stats ON stats.feed = watcher.feed AND stats.interval_seconds = 86400 \
                     AND stats.time >= days.begin AND stats.posts > 0 \
                 WHERE watcher.namespace_id = m.namespace_id AND watcher.manager_id = m.id) AS no_posts, \
             feedback.judged, feedback.refused \
         FROM managers AS m \
         CROSS JOIN (SELECT date_trunc('day', clock_timestamp(), 'UTC') - interval '1 day' AS begin) AS days \
         LEFT JOIN scan_clocks AS clock ON clock.namespace_id = m.namespace_id AND clock.manager_id = m.id \
         CROSS JOIN LATERAL (SELECT bool_and(feed.failure_count >= $3) AS failing \
             FROM feed_watchers AS watcher JOIN feeds AS feed ON feed.name = watcher.feed \
             WHERE watcher.namespace_id = m.namespace_id AND watcher.manager_id = m.id) AS feeds \
         CROSS JOIN LATERAL (SELECT count(*) AS judged, count(*) FILTER (WHERE NOT value) AS refused \
             FROM (SELECT value, update_time > create_time AS judged FROM scans AS scan \
                   WHERE scan.namespace_id = m.namespace_id AND scan.manager_id = m.id \
                   ORDER BY scan.create_time DESC LIMIT $4) AS lately WHERE judged) AS feedback \
         WHERE m.namespace_id = $1 AND m.id = ANY ($2)",
    )
    .bind::<SqlUuid, _>(namespace.to_uuid())
    .bind::<Array<SqlUuid>, _>(ids)
    .bind::<diesel::sql_types::Integer, _>(FAILURES)
    .bind::<BigInt, _>(LOOKED_AT)
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}
