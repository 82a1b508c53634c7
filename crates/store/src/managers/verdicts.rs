//! Number of verdicts of customers on a Manager's Scans since its last apply.

use diesel::{
    prelude::*,
    sql_types::{Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ManagerName, Scan};

use crate::{QueryResult, prepared::query, schema::manager_verdicts};

/// Counts a verdict on a Scan that is changed now, unless it was counted since the last apply. Call with the Scan as it
/// was before.
pub(crate) async fn count_verdict(conn: &mut AsyncPgConnection, scan: &Scan) -> QueryResult<()> {
    query!(
        "managers/count_verdict",
        SqlUuid: scan.name.namespace.to_uuid(),
        SqlUuid: scan.name.manager.to_uuid(),
        Timestamptz: scan.update_time.to_chrono(),
        Timestamptz: scan.create_time.to_chrono(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets the verdicts that newly applied instructions take into account.
pub(crate) async fn forget_verdicts(
    conn: &mut AsyncPgConnection,
    name: ManagerName,
) -> QueryResult<()> {
    let key = (name.namespace.to_uuid(), name.manager.to_uuid());
    diesel::delete(manager_verdicts::table.find(key))
        .execute(conn)
        .await?;
    Ok(())
}
