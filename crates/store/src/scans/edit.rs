//! Feedback and labels of customers on their Scans.

use diesel::{
    OptionalExtension, sql_query,
    sql_types::{Array, Bool, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Scan, ScanName, Timestamp, scan::ScanChange};

use super::{Row, SELECT};
use crate::{Error, managers};

/// Returns the current row, locked until the end of the transaction.
pub async fn lock(conn: &mut AsyncPgConnection, name: ScanName) -> Result<Option<Scan>, Error> {
    sql_query(format!(
        "{SELECT} AND s.create_time = $3 AND s.id = $4 FOR NO KEY UPDATE OF s"
    ))
    .bind::<SqlUuid, _>(name.namespace.to_uuid())
    .bind::<SqlUuid, _>(name.manager.to_uuid())
    .bind::<Timestamptz, _>(name.scan.time().to_chrono())
    .bind::<SqlUuid, _>(name.scan.to_uuid())
    .get_result::<Row>(conn)
    .await
    .optional()?
    .map(Row::into_scan)
    .transpose()
}

/// Call with the Scan [`lock`]ed. A change that changes nothing also keeps `updateTime`.
pub async fn update(
    conn: &mut AsyncPgConnection,
    mut scan: Scan,
    change: &ScanChange,
    now: Timestamp,
) -> Result<Scan, Error> {
    if *change == ScanChange::default() {
        return Ok(scan);
    }
    managers::count_verdict(conn, &scan).await?;
    if let Some(value) = change.value {
        scan.value = value;
    }
    if let Some(labels) = &change.labels {
        scan.labels.clone_from(labels);
    }
    scan.update_time = now;
    sql_query(
        "UPDATE scans SET value = $5, labels = $6, update_time = $7 \
         WHERE namespace_id = $1 AND manager_id = $2 AND create_time = $3 AND id = $4",
    )
    .bind::<SqlUuid, _>(scan.name.namespace.to_uuid())
    .bind::<SqlUuid, _>(scan.name.manager.to_uuid())
    .bind::<Timestamptz, _>(scan.name.scan.time().to_chrono())
    .bind::<SqlUuid, _>(scan.name.scan.to_uuid())
    .bind::<Bool, _>(scan.value)
    .bind::<Array<Text>, _>(&scan.labels)
    .bind::<Timestamptz, _>(now.to_chrono())
    .execute(conn)
    .await?;
    Ok(scan)
}
