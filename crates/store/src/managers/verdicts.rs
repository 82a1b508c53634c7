//! Number of verdicts of customers on a Manager's Scans since its last apply.

use diesel::{
    sql_query,
    sql_types::{Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ManagerName, Scan};

use crate::QueryResult;

/// Counts a verdict on a Scan that is changed now, unless it was counted since the last apply. Call with the Scan as it
/// was before.
pub(crate) async fn count_verdict(conn: &mut AsyncPgConnection, scan: &Scan) -> QueryResult<()> {
    sql_query(
        "INSERT INTO manager_verdicts AS v (namespace_id, manager_id, count) \
         SELECT namespace_id, id, 1 FROM managers \
         WHERE namespace_id = $1 AND id = $2 AND mode = 'AUTOMATIC' AND ($3 = $4 OR $3 <= apply_time) \
         ON CONFLICT (namespace_id, manager_id) DO UPDATE SET count = v.count + 1",
    )
    .bind::<SqlUuid, _>(scan.name.namespace.to_uuid())
    .bind::<SqlUuid, _>(scan.name.manager.to_uuid())
    .bind::<Timestamptz, _>(scan.update_time.to_chrono())
    .bind::<Timestamptz, _>(scan.create_time.to_chrono())
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets the verdicts that newly applied instructions take into account.
pub(crate) async fn forget_verdicts(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
) -> QueryResult<()> {
    sql_query("DELETE FROM manager_verdicts WHERE namespace_id = $1 AND manager_id = $2")
        .bind::<SqlUuid, _>(name.namespace.to_uuid())
        .bind::<SqlUuid, _>(name.manager.to_uuid())
        .execute(conn)
        .await?;
    Ok(())
}
