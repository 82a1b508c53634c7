//! Deliveries that a person requests again: they become PENDING and due now, their schedule restarts, and attempts
//! are appended.
//!
//! A delivery whose request is in flight keeps its lease, and the result of that request reopens it. So no delivery
//! is sent twice at a time, and no request is lost.

use diesel::{
    OptionalExtension,
    sql_types::{Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Delivery, DeliveryName};

use super::{log::DeliveryRow, time_of};
use crate::{Error, prepared::query};

/// Reopens one delivery in any state, due even if the circuit breaker is open. Returns `None` if it does not exist,
/// or its Scan is no longer stored. By primary keys.
pub async fn reopen(
    conn: &mut AsyncPgConnection,
    name: DeliveryName,
) -> Result<Option<Delivery>, Error> {
    query!(
        "deliveries/reopen",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.connection.to_uuid(),
        Timestamptz: time_of(name.delivery),
        SqlUuid: name.delivery.to_uuid(),
    )
    .get_result::<DeliveryRow>(conn)
    .await
    .optional()?
    .map(DeliveryRow::into_delivery)
    .transpose()
}
