//! How many Connections of a Namespace receive service events. Each event is a delivery to each of them, and no quota of
//! Scans limits these.

use diesel::{
    QueryableByName,
    sql_types::{BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;

use crate::{
    Error,
    error::{EVENTS, Exceeded},
    prepared::query,
};

/// Maximum number of Connections of a Namespace that receive service events.
pub const MAX_RECEIVERS: u32 = 20;

/// Refuses one more. Call with the account's row locked ([`crate::quotas::lock`]), so that two requests for the last one
/// exclude each other. Served by `connections_events_idx`.
pub(super) async fn check(conn: &mut AsyncPgConnection, namespace: Id) -> Result<(), Error> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let count: Count = query!("connections/count_receiving", SqlUuid: namespace.to_uuid())
        .get_result(conn)
        .await?;
    let wanted = u32::try_from(count.count)
        .unwrap_or(u32::MAX)
        .saturating_add(1);
    if wanted > MAX_RECEIVERS {
        return Err(Error::QuotaExceeded(Exceeded {
            quota: EVENTS,
            limit: MAX_RECEIVERS,
            wanted,
        }));
    }
    Ok(())
}
