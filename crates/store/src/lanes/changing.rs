//! Locks the lanes that the results of requests change.

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::ConnectionName;
use uuid::Uuid;

use super::{LaneRow, LockedLane, keys};
use crate::{QueryResult, prepared::query};

/// Locks the lanes whose record an attempt changes: all with `failed` attempts, and others that are not yet known
/// as healthy. Mostly there are none. Call inside a transaction, after locking the deliveries. If there are any, a
/// second statement reads them, so that an owner's change that the lock waited for is seen.
pub async fn lock_changing(
    conn: &mut AsyncPgConnection,
    connections: &[(ConnectionName, bool)],
) -> QueryResult<Vec<LockedLane>> {
    #[derive(QueryableByName)]
    struct Locked {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
    }
    let [namespaces, ids] = keys(connections.iter().map(|(name, _)| *name));
    let failed: Vec<bool> = connections.iter().map(|(_, failed)| *failed).collect();
    let locked: Vec<Locked> = query!(
        "lanes/lock_changing",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
        Array<Bool>: failed,
    )
    .load(conn)
    .await?;
    if locked.is_empty() {
        return Ok(Vec::new());
    }
    let (namespaces, ids): (Vec<Uuid>, Vec<Uuid>) = locked
        .into_iter()
        .map(|row| (row.namespace_id, row.connection_id))
        .unzip();
    let rows: Vec<LaneRow> = query!(
        "lanes/read_locked",
        Array<SqlUuid>: namespaces,
        Array<SqlUuid>: ids,
    )
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(LockedLane::from).collect())
}
