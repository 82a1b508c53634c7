//! Deliveries that a person requests again: they become PENDING and due now, their schedule restarts, and attempts
//! are appended.
//!
//! A delivery whose request is in flight keeps its lease, and the result of that request reopens it. So no delivery
//! is sent twice at a time, and no request is lost.

use diesel::{
    OptionalExtension, sql_query,
    sql_types::{Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Delivery, DeliveryName};

use super::{
    log::{Row, log_columns},
    time_of,
};
use crate::Error;

/// Values that reopening sets in `deliveries` as `d`, apart from `urgent`.
macro_rules! reopened {
    () => {
        "state = CASE d.state WHEN 'IN_FLIGHT' THEN d.state ELSE 'PENDING' END, \
         next_attempt_time = CASE d.state WHEN 'IN_FLIGHT' THEN NULL ELSE clock_timestamp() END, \
         reopen_asked = d.state = 'IN_FLIGHT', reopen_time = clock_timestamp(), \
         schedule_base = d.attempt_count, update_time = clock_timestamp()"
    };
}
pub(crate) use reopened;

/// Condition on `deliveries` as `d` that there is still something to send.
macro_rules! scan_is_there {
    () => {
        "EXISTS (SELECT FROM scans AS s WHERE s.namespace_id = d.namespace_id AND s.manager_id = d.manager_id \
             AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id)"
    };
}
pub(crate) use scan_is_there;

/// Reopens one delivery in any state, due even if the circuit breaker is open. Returns `None` if it does not exist,
/// or its Scan is no longer stored. By primary keys.
pub async fn reopen(
    conn: &mut AsyncPgConnection,
    name: DeliveryName,
) -> Result<Option<Delivery>, Error> {
    sql_query(concat!(
        "UPDATE deliveries AS d SET urgent = true, ",
        reopened!(),
        " WHERE d.namespace_id = $1 AND d.connection_id = $2 AND d.create_time = $3 AND d.id = $4 AND ",
        scan_is_there!(),
        " RETURNING ",
        log_columns!()
    ))
    .bind::<SqlUuid, _>(name.namespace.to_uuid())
    .bind::<SqlUuid, _>(name.connection.to_uuid())
    .bind::<Timestamptz, _>(time_of(name.delivery))
    .bind::<SqlUuid, _>(name.delivery.to_uuid())
    .get_result::<Row>(conn)
    .await
    .optional()?
    .map(Row::into_delivery)
    .transpose()
}
