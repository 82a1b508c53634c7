//! Leases that nobody honours any more, and those that are given back.

use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Double, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id};
use uuid::Uuid;

use crate::{QueryResult, prepared::Prepared, replicas};

#[derive(QueryableByName)]
struct Freed {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
}

impl Freed {
    fn connection(self) -> ConnectionName {
        ConnectionName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.connection_id),
        }
    }
}

/// Frees what `replica` holds for longer than `at_most`, and, if it may `take_over`, what dead replicas
/// hold: those requests are repeated, since nobody knows how they ended. Nothing of what it has in hand
/// is freed, however silent it was itself. Those whose Scan or Manager is gone can never be sent: they are cancelled,
/// where else they would be leased and freed for ever. Returns the Connection of each, for [`crate::lanes::note_due`].
/// Served by `deliveries_in_flight_idx`.
///
/// # Errors
/// When the database does not answer.
pub async fn free_orphans(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    in_hand: &[Id],
    at_most: Duration,
    take_over: bool,
) -> QueryResult<Vec<ConnectionName>> {
    let alive = replicas::ALIVE;
    let freed: Vec<Freed> = Prepared(
        sql_query(format!(
            "WITH orphans AS (SELECT d.namespace_id, d.connection_id, d.create_time, d.id, NOT EXISTS ( \
                 SELECT FROM managers AS m \
                 JOIN scans AS s ON s.namespace_id = m.namespace_id AND s.manager_id = m.id \
                 JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
                 WHERE m.namespace_id = d.namespace_id AND m.id = d.manager_id \
                   AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id) AS gone \
             FROM deliveries AS d WHERE state = 'IN_FLIGHT' AND id <> ALL ($2) AND ( \
                 leased_by = $1 AND update_time < clock_timestamp() - $3 * interval '1 second' \
                 OR $4 AND leased_by <> $1 AND NOT leased_by {alive}) FOR UPDATE OF d) \
             UPDATE deliveries AS d SET leased_by = NULL, update_time = clock_timestamp(), \
                 next_attempt_time = CASE WHEN NOT orphans.gone THEN clock_timestamp() END, \
                 last_error = CASE WHEN orphans.gone THEN 'scan_deleted' ELSE d.last_error END, \
                 state = CASE WHEN orphans.gone THEN 'CANCELLED' WHEN attempt_count = 0 THEN 'PENDING' ELSE 'RETRYING' END \
             FROM orphans WHERE d.namespace_id = orphans.namespace_id AND d.connection_id = orphans.connection_id \
               AND d.create_time = orphans.create_time AND d.id = orphans.id \
             RETURNING d.namespace_id, d.connection_id"
        ))
        .bind::<SqlUuid, _>(replica)
        .bind::<Array<SqlUuid>, _>(in_hand.iter().map(|id| id.to_uuid()).collect::<Vec<_>>())
        .bind::<Double, _>(at_most.as_secs_f64())
        .bind::<Bool, _>(take_over),
    )
    .load(conn)
    .await?;
    Ok(freed.into_iter().map(Freed::connection).collect())
}

/// Gives leased deliveries back, due at once: there was no place for them, or their Connection's breaker
/// has opened.
///
/// # Errors
/// When the database does not answer.
pub async fn hand_back(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    deliveries: &[DeliveryName],
) -> QueryResult<()> {
    if deliveries.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&DeliveryName) -> Uuid| -> Vec<Uuid> { deliveries.iter().map(value).collect() };
    // By their age, so that they stand before whatever came later.
    Prepared(
        sql_query(
            "UPDATE deliveries AS d SET leased_by = NULL, next_attempt_time = least(clock_timestamp(), d.update_time), \
                 state = CASE WHEN attempt_count = 0 THEN 'PENDING' ELSE 'RETRYING' END \
             FROM unnest($1, $2, $3) AS given (namespace_id, connection_id, id) \
             WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id \
               AND d.create_time = id_time(given.id) AND d.id = given.id AND d.leased_by = $4",
        )
        .bind::<Array<SqlUuid>, _>(column(|name| name.namespace.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|name| name.connection.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|name| name.delivery.to_uuid()))
        .bind::<SqlUuid, _>(replica),
    )
    .execute(conn)
    .await?;
    Ok(())
}
