//! How long work has waited. Counters do not show work that no process does; here, each process sees all of it.

use diesel::{
    QueryableByName,
    sql_types::{Double, Text},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

/// The oldest item of one kind of work.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct Oldest {
    /// `scan`: a Scan without deliveries; `backfill`: one that waits or reads; `purge`: a deletion with rows left;
    /// `service_event`: one without deliveries; `digest`: one whose period is over.
    #[diesel(sql_type = Text)]
    pub kind: String,
    /// 0 without an item.
    #[diesel(sql_type = Double)]
    pub seconds: f64,
}

/// Returns the age of the oldest item of each kind, without Scans and digests that are set aside and backfills that wait
/// for their account's quota: other alerts and health report these. Digests of disabled Connections do not count. Served by
/// `scans_not_fanned_out_idx`, `backfills_waiting_idx` and `digest_scans_gathered_idx`; `look_backs`, `purges` and
/// `service_events` have only unfinished rows.
pub async fn oldest(conn: &mut AsyncPgConnection) -> QueryResult<Vec<Oldest>> {
    query!("waiting/oldest").load(conn).await
}
