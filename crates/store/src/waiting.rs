//! How long work has waited that no counter shows while nothing is done about it. Any process sees all of it.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Double, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// The oldest item of one kind of work.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct Oldest {
    /// `scan`: a Scan without deliveries; `backfill`: one that waits or reads; `purge`: a deletion with rows left.
    #[diesel(sql_type = Text)]
    pub kind: String,
    /// 0 without any.
    #[diesel(sql_type = Double)]
    pub seconds: f64,
}

/// Returns the age of the oldest item of each kind, without Scans that are set aside, and without backfills that wait for their
/// account's quota: other alerts and health tell of these. Served by `scans_not_fanned_out_idx` and `backfills_waiting_idx`;
/// `look_backs` and `purges` have only unfinished rows.
pub async fn oldest(conn: &mut AsyncPgConnection) -> QueryResult<Vec<Oldest>> {
    sql_query(
        "SELECT kind, coalesce(greatest(extract(epoch FROM clock_timestamp() - since), 0), 0)::float8 AS seconds \
         FROM (VALUES \
             ('scan', (SELECT min(create_time) FROM scans WHERE NOT fanned_out AND NOT EXISTS ( \
                 SELECT FROM leases WHERE kind = 'fan_out' AND key = scans.id::text AND next_time > clock_timestamp()))), \
             ('backfill', least((SELECT min(create_time) FROM backfills WHERE state = 'WAITING' AND catch_up_since IS NULL), \
                                (SELECT min(create_time) FROM look_backs))), \
             ('purge', (SELECT min(create_time) FROM purges))) AS work (kind, since)",
    )
    .load(conn)
    .await
}
