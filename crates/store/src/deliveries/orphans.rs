//! Leases without a living holder, and leases that are returned.

use std::time::Duration;

use diesel::{
    QueryableByName,
    sql_types::{Array, Bool, Double, SmallInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, DeliveryName, Id};
use uuid::Uuid;

use crate::{QueryResult, prepared::query, work};

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

/// Frees deliveries that `replica` has held for longer than `at_most`, or since before the database's clock went back,
/// and, if it may `take_over`, those of dead replicas. The requests of the latter are repeated, because no one knows
/// their outcome. Deliveries that `replica` is working on are not freed, even if its own heartbeat was late. Deliveries
/// whose Scan or Manager is gone are cancelled, because they can never be sent. The same applies to posts that were
/// deleted at their source. A delivery that was requested again while its request was in flight is sent once, because
/// it is repeated anyway. Returns the Connection of each, for [`crate::lanes::mark_due`].
///
/// A delivery that was in hand when dispatchers died may be what ended them. After two in a row, such deliveries are
/// due one per second; after three, a delivery rests as long as a [`work::Setback`] and up to twice as long, so that
/// not all of them come back together. A recorded attempt ends this. Served by `deliveries_in_flight_idx`. It takes
/// about 1.5 ms for 3,000 in flight, 1,000 of them in hand. Those in hand are hashed, because `<> ALL` would compare
/// each with each.
pub async fn free_orphans(
    conn: &mut AsyncPgConnection,
    replica: Uuid,
    in_hand: &[Id],
    at_most: Duration,
    take_over: bool,
) -> QueryResult<Vec<Orphan>> {
    let freed: Vec<Freed> = query!(
        "deliveries/free_orphans",
        SqlUuid: replica,
        Array<SqlUuid>: in_hand.iter().map(|id| id.to_uuid()).collect::<Vec<_>>(),
        Double: at_most.as_secs_f64(),
        Bool: take_over,
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
    query!(
        "deliveries/hand_back",
        Array<SqlUuid>: column(|name| name.namespace.to_uuid()),
        Array<SqlUuid>: column(|name| name.connection.to_uuid()),
        Array<SqlUuid>: column(|name| name.delivery.to_uuid()),
        SqlUuid: replica,
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
    query!(
        "deliveries/cancel_erased",
        Array<SqlUuid>: column(|name| name.namespace.to_uuid()),
        Array<SqlUuid>: column(|name| name.connection.to_uuid()),
        Array<SqlUuid>: column(|name| name.delivery.to_uuid()),
        SqlUuid: replica,
    )
    .execute(conn)
    .await?;
    Ok(())
}
