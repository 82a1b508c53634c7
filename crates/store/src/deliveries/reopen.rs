//! Deliveries that a person asks for again: PENDING, due now, the schedule from its start, attempts
//! appended.
//!
//! A delivery whose request is open keeps its lease: the result of that request reopens it. So nothing is
//! sent twice at a time, and nothing that was asked for is lost.

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

/// The condition that there is still something to send for `deliveries` as `d`.
macro_rules! scan_is_there {
    () => {
        "EXISTS (SELECT FROM scans AS s WHERE s.namespace_id = d.namespace_id AND s.manager_id = d.manager_id \
             AND s.create_time = id_time(d.scan_id) AND s.id = d.scan_id)"
    };
}
pub(crate) use scan_is_there;

/// Reopens one delivery in any state, due past an open breaker. `None` when it is not there, or its Scan
/// is no longer kept. By primary keys.
///
/// # Errors
/// When the database does not answer.
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
