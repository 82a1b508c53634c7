//! The batches of a purge, one or a few statements each. All return the number of deleted or changed rows.

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::QueryResult;

/// Owner of the rows.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    Namespace(Uuid),
    Manager(Uuid, Uuid),
}

impl Scope {
    fn namespace(self) -> Uuid {
        match self {
            Self::Namespace(namespace) | Self::Manager(namespace, _) => namespace,
        }
    }

    /// Returns the Manager or, for a Namespace, the Namespace again, which [`Scope::condition`] ignores.
    fn manager(self) -> Uuid {
        match self {
            Self::Namespace(namespace) => namespace,
            Self::Manager(_, manager) => manager,
        }
    }

    /// Condition on `$1` and `$2`.
    fn condition(self) -> &'static str {
        match self {
            Self::Namespace(_) => "namespace_id = $1 AND $2::uuid IS NOT NULL",
            Self::Manager(..) => "namespace_id = $1 AND manager_id = $2",
        }
    }
}

/// Deletes the newest Scans, and cancels their unfinished deliveries. Served by `scans_pkey`, for a Namespace by
/// `scans_namespace_idx`, and `deliveries_scan_idx`.
pub(super) async fn scans(
    conn: &mut AsyncPgConnection,
    scope: Scope,
    limit: i64,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Last {
        #[diesel(sql_type = Timestamptz)]
        create_time: DateTime<Utc>,
    }
    #[derive(QueryableByName)]
    struct Gone {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    let condition = scope.condition();
    // A time bound instead of a list of keys, so that both statements read one range of one index.
    let last: Option<Last> = sql_query(format!(
        "SELECT min(create_time) AS create_time FROM ( \
             SELECT create_time FROM scans WHERE {condition} ORDER BY create_time DESC LIMIT $3 \
         ) AS newest HAVING count(*) > 0"
    ))
    .bind::<SqlUuid, _>(scope.namespace())
    .bind::<SqlUuid, _>(scope.manager())
    .bind::<BigInt, _>(limit)
    .get_result(conn)
    .await
    .optional()?;
    let Some(Last { create_time }) = last else {
        return Ok(0);
    };
    let gone: Vec<Gone> = sql_query(format!(
        "DELETE FROM scans WHERE {condition} AND create_time >= $3 RETURNING id"
    ))
    .bind::<SqlUuid, _>(scope.namespace())
    .bind::<SqlUuid, _>(scope.manager())
    .bind::<Timestamptz, _>(create_time)
    .load(conn)
    .await?;
    // Runs after the Scans, whose rows a fan-out locks, so that deliveries inserted meanwhile are visible here.
    if let Scope::Manager(..) = scope {
        sql_query(
            "UPDATE deliveries SET state = 'CANCELLED', leased_by = NULL, next_attempt_time = NULL, \
                 update_time = clock_timestamp() \
             WHERE namespace_id = $1 AND manager_id = $2 AND scan_id = ANY ($3) \
               AND state IN ('PENDING', 'RETRYING', 'IN_FLIGHT')",
        )
        .bind::<SqlUuid, _>(scope.namespace())
        .bind::<SqlUuid, _>(scope.manager())
        .bind::<Array<SqlUuid>, _>(gone.iter().map(|scan| scan.id).collect::<Vec<_>>())
        .execute(conn)
        .await?;
    }
    Ok(gone.len())
}

/// Served by `scan_keys_pkey`.
pub(super) async fn scan_keys(
    conn: &mut AsyncPgConnection,
    scope: Scope,
    limit: i64,
) -> QueryResult<usize> {
    of_scope(conn, "scan_keys", scope, limit).await
}

/// Served by `scan_likes_pkey`.
pub(super) async fn scan_likes(
    conn: &mut AsyncPgConnection,
    scope: Scope,
    limit: i64,
) -> QueryResult<usize> {
    of_scope(conn, "scan_likes", scope, limit).await
}

/// Served by `refused_posts_pkey`.
pub(super) async fn refused_posts(
    conn: &mut AsyncPgConnection,
    scope: Scope,
    limit: i64,
) -> QueryResult<usize> {
    of_scope(conn, "refused_posts", scope, limit).await
}

async fn of_scope(
    conn: &mut AsyncPgConnection,
    table: &str,
    scope: Scope,
    limit: i64,
) -> QueryResult<usize> {
    let condition = scope.condition();
    sql_query(format!(
        "DELETE FROM {table} WHERE ctid = ANY (ARRAY ( \
             SELECT ctid FROM {table} WHERE {condition} LIMIT $3))"
    ))
    .bind::<SqlUuid, _>(scope.namespace())
    .bind::<SqlUuid, _>(scope.manager())
    .bind::<BigInt, _>(limit)
    .execute(conn)
    .await
}

/// Cancels unfinished deliveries of a Connection. Served by `deliveries_due_by_connection_idx` and
/// `deliveries_in_flight_idx`; few are ever in flight.
pub(super) async fn cancel_deliveries(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    connection: Uuid,
    limit: i64,
) -> QueryResult<usize> {
    let mut cancelled = 0;
    for state in ["IN ('PENDING', 'RETRYING')", "= 'IN_FLIGHT'"] {
        cancelled += sql_query(format!(
            "WITH batch AS ( \
                 SELECT create_time, id FROM deliveries \
                 WHERE namespace_id = $1 AND connection_id = $2 AND state {state} \
                 LIMIT $3 FOR UPDATE SKIP LOCKED \
             ) UPDATE deliveries AS d SET state = 'CANCELLED', leased_by = NULL, next_attempt_time = NULL, \
                   update_time = clock_timestamp() \
               FROM batch WHERE d.namespace_id = $1 AND d.connection_id = $2 \
                 AND d.create_time = batch.create_time AND d.id = batch.id"
        ))
        .bind::<SqlUuid, _>(namespace)
        .bind::<SqlUuid, _>(connection)
        .bind::<BigInt, _>(limit)
        .execute(conn)
        .await?;
    }
    Ok(cancelled)
}

/// Deletes a Namespace's deliveries with their attempts. Served by the primary keys of both.
pub(super) async fn deliveries(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    limit: i64,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Key {
        #[diesel(sql_type = SqlUuid)]
        connection_id: Uuid,
        #[diesel(sql_type = Timestamptz)]
        create_time: DateTime<Utc>,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    let keys: Vec<Key> = sql_query(
        "SELECT connection_id, create_time, id FROM deliveries WHERE namespace_id = $1 \
         LIMIT $2 FOR UPDATE",
    )
    .bind::<SqlUuid, _>(namespace)
    .bind::<BigInt, _>(limit)
    .load(conn)
    .await?;
    if keys.is_empty() {
        return Ok(0);
    }
    let ids: Vec<Uuid> = keys.iter().map(|key| key.id).collect();
    sql_query("DELETE FROM delivery_attempts WHERE delivery_id = ANY ($1)")
        .bind::<Array<SqlUuid>, _>(&ids)
        .execute(conn)
        .await?;
    sql_query(
        "DELETE FROM deliveries AS d USING unnest($2, $3, $4) AS key (connection_id, create_time, id) \
         WHERE d.namespace_id = $1 AND d.connection_id = key.connection_id \
           AND d.create_time = key.create_time AND d.id = key.id",
    )
    .bind::<SqlUuid, _>(namespace)
    .bind::<Array<SqlUuid>, _>(keys.iter().map(|key| key.connection_id).collect::<Vec<_>>())
    .bind::<Array<Timestamptz>, _>(keys.iter().map(|key| key.create_time).collect::<Vec<_>>())
    .bind::<Array<SqlUuid>, _>(&ids)
    .execute(conn)
    .await
}
