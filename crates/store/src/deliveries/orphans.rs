//! Leases without a living holder, and leases that are returned.

use std::time::Duration;

use diesel::{
    QueryableByName, sql_query,
    sql_types::{Array, Bool, Double, SmallInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id};
use uuid::Uuid;

use crate::{
    QueryResult,
    prepared::Prepared,
    replicas,
    work::{self, FIRST_REST, LONGEST_REST, MAX_CRASHES, SUSPECT},
};

/// A delivery whose lease was freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Orphan {
    pub connection: ConnectionName,
    /// Number of dispatchers in a row that died while they sent it.
    pub crashes: u32,
}

#[derive(QueryableByName)]
struct Freed {
    #[diesel(sql_type = SqlUuid)]
    namespace_id: Uuid,
    #[diesel(sql_type = SqlUuid)]
    connection_id: Uuid,
    #[diesel(sql_type = SmallInt)]
    crash_count: i16,
}

impl Freed {
    fn orphan(self) -> Orphan {
        Orphan {
            connection: ConnectionName {
                namespace: Id::from_uuid(self.namespace_id),
                connection: Id::from_uuid(self.connection_id),
            },
            crashes: work::count(self.crash_count),
        }
    }
}

/// Column values of `deliveries` as `d` for a delivery that waits because it was not sent.
const WAITS: &str =
    "CASE WHEN d.attempt_count = 0 OR d.reopen_asked THEN 'PENDING' ELSE 'RETRYING' END";
/// A delivery that was requested again during its lease needs no result to be reopened: it already waits.
const ASKED_ONCE: &str = "reopen_asked = false, \
     schedule_base = CASE WHEN d.reopen_asked THEN d.attempt_count ELSE d.schedule_base END";

/// Frees deliveries that `replica` has held for longer than `at_most`, or since before the database's clock went
/// back, and, if it may `take_over`, those of dead replicas. The requests of the latter are repeated, because no one
/// knows their outcome. Deliveries that `replica` is working on are not freed, even if its own heartbeat was late. Deliveries whose Scan or Manager is gone can
/// never be sent, so they are cancelled instead of being leased and freed for ever. The same applies to posts that
/// were deleted at their source. A delivery that was requested again while its request was in flight is sent once,
/// because it is repeated anyway. Returns the Connection of each, for [`crate::lanes::note_due`].
///
/// A delivery that was in hand when dispatchers died may be what ended them. After two in a row, such deliveries are due
/// one per second; after three, a delivery rests as long as a [`work::Setback`] and up to
/// twice as long, so that not all of them come back together.
/// An attempt that is recorded ends this. Served by
/// `deliveries_in_flight_idx`. It takes about 1.5 ms for 3,000 in flight, 1,000 of them in hand. These are hashed,
/// because `<> ALL` would compare each with each.
pub async fn free_orphans(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    in_hand: &[Id],
    at_most: Duration,
    take_over: bool,
) -> QueryResult<Vec<Orphan>> {
    let alive = replicas::ALIVE;
    let died = work::died("d.leased_by", "$1");
    let (waits, asked_once) = (WAITS, ASKED_ONCE);
    let (first, longest) = (FIRST_REST.as_secs(), LONGEST_REST.as_secs());
    let freed: Vec<Freed> = Prepared(
        sql_query(format!(
            "WITH orphans AS (SELECT d.namespace_id, d.connection_id, d.create_time, d.id, \
                 d.crash_count + CASE WHEN {died} THEN 1 ELSE 0 END::smallint AS crashes, ( \
                 SELECT CASE WHEN p.erase_time IS NULL THEN '' ELSE 'post_deleted' END FROM managers AS m \
                 JOIN scans AS s ON s.namespace_id = m.namespace_id AND s.manager_id = m.id \
                 JOIN posts AS p ON p.receive_time = s.post_receive_time AND p.id = s.post_id \
                 WHERE m.namespace_id = d.namespace_id AND m.id = d.manager_id \
                   AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id LIMIT 1) AS gone \
             FROM deliveries AS d WHERE state = 'IN_FLIGHT' AND id NOT IN (SELECT unnest($2)) AND ( \
                 leased_by = $1 AND update_time NOT BETWEEN clock_timestamp() - $3 * interval '1 second' \
                     AND clock_timestamp() + interval '1 minute' \
                 OR $4 AND leased_by <> $1 AND NOT leased_by {alive}) FOR UPDATE OF d), \
             numbered AS (SELECT *, row_number() OVER (PARTITION BY crashes ORDER BY create_time, id) AS turn FROM orphans) \
             UPDATE deliveries AS d SET leased_by = NULL, update_time = clock_timestamp(), crash_count = orphans.crashes, \
                 next_attempt_time = CASE WHEN orphans.gone = '' THEN clock_timestamp() + interval '1 second' * CASE \
                     WHEN orphans.crashes < {SUSPECT} THEN 0 WHEN orphans.crashes = {SUSPECT} THEN least(orphans.turn, 3600) \
                     ELSE least({first} * 4 ^ least(orphans.crashes - {MAX_CRASHES}, 8), {longest}) * (1 + random()) END END, \
                 last_error = CASE WHEN orphans.gone <> '' OR orphans.gone IS NULL THEN coalesce(orphans.gone, 'scan_deleted') \
                     WHEN orphans.crashes >= {MAX_CRASHES} THEN \
                         'the service stopped ' || orphans.crashes || ' times in a row while it sent this' \
                     ELSE d.last_error END, \
                 state = CASE WHEN orphans.gone = '' THEN {waits} ELSE 'CANCELLED' END, {asked_once} \
             FROM numbered AS orphans WHERE d.namespace_id = orphans.namespace_id AND d.connection_id = orphans.connection_id \
               AND d.create_time = orphans.create_time AND d.id = orphans.id \
             RETURNING d.namespace_id, d.connection_id, d.crash_count"
        ))
        .bind::<SqlUuid, _>(replica)
        .bind::<Array<SqlUuid>, _>(in_hand.iter().map(|id| id.to_uuid()).collect::<Vec<_>>())
        .bind::<Double, _>(at_most.as_secs_f64())
        .bind::<Bool, _>(take_over),
    )
    .load(conn)
    .await?;
    Ok(freed.into_iter().map(Freed::orphan).collect())
}

/// Returns leased deliveries, due at once, because there was no capacity or their Connection's circuit breaker has
/// opened. One that was requested again meanwhile was not sent since, and becomes due once.
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
    // Returned by age, so that they come before newer ones.
    Prepared(
        sql_query(format!(
            "UPDATE deliveries AS d SET leased_by = NULL, next_attempt_time = least(clock_timestamp(), d.update_time), \
                 state = {WAITS}, {ASKED_ONCE} \
             FROM unnest($1, $2, $3) AS given (namespace_id, connection_id, id) \
             WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id \
               AND d.create_time = id_time(given.id) AND d.id = given.id AND d.leased_by = $4",
        ))
        .bind::<Array<SqlUuid>, _>(column(|name| name.namespace.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|name| name.connection.to_uuid()))
        .bind::<Array<SqlUuid>, _>(column(|name| name.delivery.to_uuid()))
        .bind::<SqlUuid, _>(replica),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Cancels leased deliveries of `replica` whose posts were deleted at their source since.
pub(super) async fn cancel_erased(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    deliveries: &[DeliveryName],
) -> QueryResult<()> {
    if deliveries.is_empty() {
        return Ok(());
    }
    let column =
        |value: fn(&DeliveryName) -> Uuid| -> Vec<Uuid> { deliveries.iter().map(value).collect() };
    sql_query(
        "UPDATE deliveries AS d SET state = 'CANCELLED', leased_by = NULL, last_error = 'post_deleted', urgent = false, \
             reopen_asked = false, update_time = clock_timestamp() \
         FROM unnest($1, $2, $3) AS given (namespace_id, connection_id, id) \
         WHERE d.namespace_id = given.namespace_id AND d.connection_id = given.connection_id \
           AND d.create_time = id_time(given.id) AND d.id = given.id AND d.leased_by = $4",
    )
    .bind::<Array<SqlUuid>, _>(column(|name| name.namespace.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|name| name.connection.to_uuid()))
    .bind::<Array<SqlUuid>, _>(column(|name| name.delivery.to_uuid()))
    .bind::<SqlUuid, _>(replica)
    .execute(conn)
    .await?;
    Ok(())
}
