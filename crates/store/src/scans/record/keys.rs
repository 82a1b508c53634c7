//! Keys that make a Scan of a Manager and a post unique.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName,
    sql_types::{Array, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, ManagerName, Timestamp};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, scans::likes::Key};

/// Claims and returns the pairs of Manager and post that have no Scan yet.
pub(super) async fn claim_keys(
    conn: &mut AsyncPgConnection,
    wanted: &BTreeSet<Key>,
    now: Timestamp,
) -> QueryResult<BTreeSet<Key>> {
    #[derive(QueryableByName)]
    struct Claimed {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        post_key: Uuid,
    }
    let column = |value: fn(&Key) -> Uuid| -> Vec<Uuid> { wanted.iter().map(value).collect() };
    let fresh: Vec<Claimed> = query!(
        "scans/claim_keys",
        Array<SqlUuid>: column(|(manager, _)| manager.namespace.to_uuid()),
        Array<SqlUuid>: column(|(manager, _)| manager.manager.to_uuid()),
        Array<SqlUuid>: column(|(_, key)| *key),
        Timestamptz: now.to_chrono(),
    )
    .load(conn)
    .await?;
    Ok(fresh
        .into_iter()
        .map(|claimed| {
            let manager = ManagerName {
                namespace: Id::from_uuid(claimed.namespace_id),
                manager: Id::from_uuid(claimed.manager_id),
            };
            (manager, claimed.post_key)
        })
        .collect())
}

pub(super) async fn release_keys(conn: &mut AsyncPgConnection, keys: &[Key]) -> QueryResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let column = |value: fn(&Key) -> Uuid| -> Vec<Uuid> { keys.iter().map(value).collect() };
    query!(
        "scans/give_back_keys",
        Array<SqlUuid>: column(|(manager, _)| manager.namespace.to_uuid()),
        Array<SqlUuid>: column(|(manager, _)| manager.manager.to_uuid()),
        Array<SqlUuid>: column(|(_, key)| *key),
    )
    .execute(conn)
    .await?;
    Ok(())
}
