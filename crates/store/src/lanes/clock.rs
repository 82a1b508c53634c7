//! Corrects lanes after the database's clock went back.

use std::time::Duration;

use diesel::sql_types::Double;
use diesel_async::{AsyncPgConnection, RunQueryDsl};

use crate::{QueryResult, prepared::query};

/// Longest time that a rate can be spent ahead.
const LONGEST_RATE: Duration = Duration::from_mins(1);
/// Longest time that a circuit breaker or a probe is open.
const LONGEST_OPEN: Duration = Duration::from_mins(15);

/// Frees Connections that would wait until the clock has caught up. Returns their number. Reads all lanes: one
/// small row per Connection.
pub async fn follow_clock(conn: &mut AsyncPgConnection) -> QueryResult<usize> {
    query!(
        "lanes/follow_clock",
        Double: LONGEST_RATE.as_secs_f64(),
        Double: LONGEST_OPEN.as_secs_f64(),
    )
    .execute(conn)
    .await
}
