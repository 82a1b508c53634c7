//! Health of Managers, computed when they are read; nothing is stored for it.
//!
//! One statement for a page of Managers, by primary keys; of the Scans it reads only the newest.

use std::collections::HashMap;

use diesel::{
    QueryableByName,
    sql_types::{Array, BigInt, Bool, Integer, Text, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    FeedName, Id, Manager,
    manager::{
        ManagerState,
        health::{Health, HealthReason},
    },
};
use uuid::Uuid;

use super::Read;
use crate::{QueryResult, prepared::query};

/// Failed polls in a row before a feed is reported as failing.
const FAILURES: i32 = 3;
/// Minimum number of verdicts for a statement about quality.
const JUDGED: i64 = 5;
/// Number of the newest Scans of a Manager that are examined. A page of a hundred Managers reads as many of each.
const LOOKED_AT: i64 = 50;

#[derive(QueryableByName)]
#[diesel(check_for_backend(diesel::pg::Pg))]
struct ManagerHealthRow {
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

/// Adds the health of Managers of one Namespace. A disabled Manager counts as healthy. `feeds` count as watched by each
/// of them, in addition to those that it watches.
pub(super) async fn add_health(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    read: Vec<Read>,
    feeds: &[FeedName],
) -> QueryResult<Vec<Manager>> {
    let ids: Vec<Uuid> = read
        .iter()
        .filter(|read| read.manager.enable && read.manager.apply_time.is_some())
        .map(|read| read.manager.name.manager.to_uuid())
        .collect();
    let seen = if ids.is_empty() {
        HashMap::new()
    } else {
        read_health(conn, namespace, &ids, feeds).await?
    };
    let managers = read.into_iter().map(
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
    Ok(managers.collect())
}

fn reasons(row: &ManagerHealthRow) -> Vec<HealthReason> {
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

/// Reads what health depends on. Posts are counted by day, so "more than a day" means since the beginning of yesterday.
/// A Manager that watches nothing has no posts. A failed backfill counts until a later one of the feed succeeds,
/// delivered or silent.
async fn read_health(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    ids: &[Uuid],
    feeds: &[FeedName],
) -> QueryResult<HashMap<Uuid, ManagerHealthRow>> {
    let feeds: Vec<&str> = feeds.iter().map(FeedName::as_str).collect();
    let rows: Vec<ManagerHealthRow> = query!(
        "managers/health",
        SqlUuid: namespace.to_uuid(),
        Array<SqlUuid>: ids,
        Integer: FAILURES,
        BigInt: LOOKED_AT,
        Array<Text>: feeds,
    )
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}
