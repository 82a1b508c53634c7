//! Corrects lanes after the database's clock went back.

use std::time::Duration;

use diesel::{sql_query, sql_types::Double};
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::QueryResult;

/// Longest time that a rate can be spent ahead.
const LONGEST_RATE: Duration = Duration::from_mins(1);
/// Longest time that a circuit breaker or a probe is open.
const LONGEST_OPEN: Duration = Duration::from_mins(15);

/// Frees Connections that would wait until the clock has caught up. Returns their number. Reads all lanes: one
/// small row per Connection.
pub async fn follow_clock(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    let ahead = |time: &str, bound: &str| {
        format!("coalesce({time} > clock_timestamp() + {bound} * interval '1 second', false)")
    };
    let rate = ahead("rate_time", "$1");
    let open = ahead("open_until", "$2");
    let probe = ahead("probe_end_time", "$2");
    sql_query(format!(
        "UPDATE connection_lanes SET next_due_time = clock_timestamp(), \
             rate_time = CASE WHEN {rate} THEN NULL ELSE rate_time END, \
             open_until = CASE WHEN {open} THEN clock_timestamp() ELSE open_until END, \
             probe_end_time = CASE WHEN {probe} THEN clock_timestamp() ELSE probe_end_time END \
         WHERE {rate} OR {open} OR {probe}"
    ))
    .bind::<Double, _>(LONGEST_RATE.as_secs_f64())
    .bind::<Double, _>(LONGEST_OPEN.as_secs_f64())
    .execute(conn)
    .await
}
