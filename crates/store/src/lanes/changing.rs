//! Locks the lanes that the results of requests change.

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::ConnectionName;
use uuid::Uuid;

use super::{LockedLane, Row, keys, locked_columns};
use crate::{QueryResult, prepared::Prepared};

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
    let locked: Vec<Locked> = Prepared(
        sql_query(
            "SELECT l.namespace_id, l.connection_id FROM connection_lanes AS l \
             JOIN unnest($1, $2, $3) AS given (namespace_id, connection_id, failed) \
               ON l.namespace_id = given.namespace_id AND l.connection_id = given.connection_id \
             WHERE given.failed OR l.recent_outcomes <> 0 OR l.recent_count < 20 OR l.open_until IS NOT NULL OR l.open_count > 0 \
               OR l.failing_since IS NOT NULL OR l.last_success_time IS NULL \
               OR l.last_success_time < statement_timestamp() - interval '1 minute' \
             ORDER BY l.namespace_id, l.connection_id FOR NO KEY UPDATE OF l",
        )
        .bind::<Array<SqlUuid>, _>(namespaces)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<Bool>, _>(failed),
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
    let unfailed = vec![false; ids.len()];
    let rows: Vec<Row> = Prepared(
        sql_query(concat!(
            locked_columns!(),
            "WHERE NOT given.failed ORDER BY l.namespace_id, l.connection_id"
        ))
        .bind::<Array<SqlUuid>, _>(namespaces)
        .bind::<Array<SqlUuid>, _>(ids)
        .bind::<Array<Bool>, _>(unfailed),
    )
    .load(conn)
    .await?;
    Ok(rows.into_iter().map(LockedLane::from).collect())
}
