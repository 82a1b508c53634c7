//! Feedback and labels of customers on their Scans.

use diesel::{
    prelude::*,
    sql_types::{Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Scan, ScanName, Timestamp, scan::ScanChange};

use super::ScanRow;
use crate::{Error, managers, prepared::query, schema::scans};

/// Returns the current row, locked until the end of the transaction.
pub async fn lock(conn: &mut AsyncPgConnection, name: ScanName) -> Result<Option<Scan>, Error> {
    query!(
        "scans/lock",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.manager.to_uuid(),
        Timestamptz: name.scan.time().to_chrono(),
        SqlUuid: name.scan.to_uuid(),
    )
    .get_result::<ScanRow>(conn)
    .await
    .optional()?
    .map(ScanRow::into_scan)
    .transpose()
}

/// Changes a Scan, which must be [`lock`]ed. A change that changes nothing also keeps `updateTime`.
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
    let key = (
        scan.name.namespace.to_uuid(),
        scan.name.manager.to_uuid(),
        scan.name.scan.time().to_chrono(),
        scan.name.scan.to_uuid(),
    );
    diesel::update(scans::table.find(key))
        .set((
            scans::value.eq(scan.value),
            scans::labels.eq(&scan.labels),
            scans::update_time.eq(now.to_chrono()),
        ))
        .execute(conn)
        .await?;
    Ok(scan)
}
