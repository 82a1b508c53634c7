//! Keys that make a Scan of a Manager and a post unique.

use std::collections::BTreeSet;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, ManagerName, Timestamp};
use uuid::Uuid;

use crate::{QueryResult, prepared::Prepared};

/// The pairs of Manager and post that have no Scan yet, now claimed.
pub(super) async fn claim_keys(
    conn: &mut AsyncPgConnection,
    wanted: &BTreeSet<(ManagerName, Uuid)>,
    now: Timestamp,
) -> QueryResult<BTreeSet<(ManagerName, Uuid)>> {
    #[derive(QueryableByName)]
    struct Claimed {
        #[diesel(sql_type = SqlUuid)]
        namespace_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        manager_id: Uuid,
        #[diesel(sql_type = SqlUuid)]
        post_key: Uuid,
    }
    let column = |value: fn(&(ManagerName, Uuid)) -> Uuid| -> Vec<Uuid> {
        wanted.iter().map(value).collect()
    };
    let fresh: Vec<Claimed> = Prepared(
        sql_query(
            "INSERT INTO scan_keys (namespace_id, manager_id, post_key, create_time) \
         SELECT namespace_id, manager_id, post_key, $4 \
         FROM unnest($1, $2, $3) AS given (namespace_id, manager_id, post_key) \
         ON CONFLICT DO NOTHING RETURNING namespace_id, manager_id, post_key",
        )
        .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.namespace.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.manager.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|(_, key)| *key))
        .bind::<Timestamptz, _>(now.to_chrono()),
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

pub(super) async fn give_back_keys(
    conn: &mut AsyncPgConnection,
    keys: &[(ManagerName, Uuid)],
) -> QueryResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&(ManagerName, Uuid)) -> Uuid| -> Vec<Uuid> { keys.iter().map(value).collect() };
    Prepared(sql_query(
        "DELETE FROM scan_keys AS key USING unnest($1, $2, $3) AS given (namespace_id, manager_id, post_key) \
         WHERE key.namespace_id = given.namespace_id AND key.manager_id = given.manager_id \
           AND key.post_key = given.post_key",
    )
    .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.namespace.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|(manager, _)| manager.manager.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|(_, key)| *key)),
)
    .execute(conn)
    .await?;
    Ok(())
}
