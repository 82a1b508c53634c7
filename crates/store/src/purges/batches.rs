//! The batches of a purge, one or a few statements each. All return the number of deleted or changed rows.

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{Array, BigInt, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, schema::scans};

#[derive(QueryableByName)]
struct Last {
    #[diesel(sql_type = Timestamptz)]
    create_time: DateTime<Utc>,
}

/// Deletes the newest Scans of a Manager, and cancels their unfinished deliveries. Served by `scans_pkey` and
/// `deliveries_scan_idx`.
pub(super) async fn scans_of_manager(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    manager: Uuid,
    limit: i64,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Gone {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    // A time bound instead of a list of keys, so that both statements read one range of one index.
    let last: Option<Last> = query!(
        "purges/last_scan_of_manager",
        SqlUuid: namespace,
        SqlUuid: manager,
        BigInt: limit,
    )
    .get_result(conn)
    .await
    .optional()?;
    let Some(Last { create_time }) = last else {
        return Ok(0);
    };
    let gone: Vec<Gone> = query!(
        "purges/scans_of_manager",
        SqlUuid: namespace,
        SqlUuid: manager,
        Timestamptz: create_time,
    )
    .load(conn)
    .await?;
    // Runs after the Scans, whose rows a fan-out locks, so that deliveries inserted meanwhile are visible here.
    query!(
        "purges/cancel_deliveries_of_scans",
        SqlUuid: namespace,
        SqlUuid: manager,
        Array<SqlUuid>: gone.iter().map(|scan| scan.id).collect::<Vec<_>>(),
    )
    .execute(conn)
    .await?;
    Ok(gone.len())
}

/// Deletes the newest Scans of a Namespace. Served by `scans_namespace_idx`.
pub(super) async fn scans_of_namespace(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    limit: i64,
) -> QueryResult<usize> {
    let last: Option<Last> = query!(
        "purges/last_scan_of_namespace",
        SqlUuid: namespace,
        BigInt: limit,
    )
    .get_result(conn)
    .await
    .optional()?;
    let Some(Last { create_time }) = last else {
        return Ok(0);
    };
    diesel::delete(scans::table)
        .filter(scans::namespace_id.eq(namespace))
        .filter(scans::create_time.ge(create_time))
        .execute(conn)
        .await
}

/// Deletes keys of Scans, keys of near-duplicates and refused posts, of a Manager or a whole Namespace. Served by the
/// primary keys.
pub(super) async fn keys(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    manager: Option<Uuid>,
    limit: i64,
) -> QueryResult<usize> {
    // A range of ids, so that the same statement serves a Manager and a Namespace by one index.
    let first = manager.unwrap_or_default();
    let last = manager.unwrap_or(Uuid::max());
    let scan_keys = query!(
        "purges/scan_keys",
        SqlUuid: namespace,
        SqlUuid: first,
        SqlUuid: last,
        BigInt: limit,
    );
    let scan_likes = query!(
        "purges/scan_likes",
        SqlUuid: namespace,
        SqlUuid: first,
        SqlUuid: last,
        BigInt: limit,
    );
    let refused_posts = query!(
        "purges/refused_posts",
        SqlUuid: namespace,
        SqlUuid: first,
        SqlUuid: last,
        BigInt: limit,
    );
    Ok(scan_keys.execute(conn).await?
        + scan_likes.execute(conn).await?
        + refused_posts.execute(conn).await?)
}

/// Deletes Scans of digests, of a Connection or a whole Namespace. Served by `digest_scans_pkey`.
pub(super) async fn digest_scans(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    connection: Option<Uuid>,
    limit: i64,
) -> QueryResult<usize> {
    query!(
        "purges/digest_scans",
        SqlUuid: namespace,
        SqlUuid: connection.unwrap_or_default(),
        SqlUuid: connection.unwrap_or(Uuid::max()),
        BigInt: limit,
    )
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
    let waiting = query!(
        "purges/cancel_waiting",
        SqlUuid: namespace,
        SqlUuid: connection,
        BigInt: limit,
    );
    let in_flight = query!(
        "purges/cancel_in_flight",
        SqlUuid: namespace,
        SqlUuid: connection,
        BigInt: limit,
    );
    Ok(waiting.execute(conn).await? + in_flight.execute(conn).await?)
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
    let keys: Vec<Key> = query!(
        "purges/lock_deliveries",
        SqlUuid: namespace,
        BigInt: limit,
    )
    .load(conn)
    .await?;
    if keys.is_empty() {
        return Ok(0);
    }
    let ids: Vec<Uuid> = keys.iter().map(|key| key.id).collect();
    query!(
        "purges/delete_attempts",
        Array<SqlUuid>: &ids,
    )
    .execute(conn)
    .await?;
    query!(
        "purges/delete_deliveries",
        SqlUuid: namespace,
        Array<SqlUuid>: keys.iter().map(|key| key.connection_id).collect::<Vec<_>>(),
        Array<Timestamptz>: keys.iter().map(|key| key.create_time).collect::<Vec<_>>(),
        Array<SqlUuid>: &ids,
    )
    .execute(conn)
    .await
}
