//! How many Connections of a Namespace receive service events. Each event is a delivery to each of them, and no quota of
//! Scans limits these.

use diesel::{
    QueryableByName,
    prelude::*,
    sql_types::{BigInt, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;
use uuid::Uuid;

use crate::{
    Error,
    error::{EVENTS, Exceeded},
    prepared::query,
    schema::namespaces,
};

/// Maximum number of Connections of a Namespace that receive service events.
pub const MAX_RECEIVERS: u32 = 20;

/// Refuses one more. Locks the row of the Namespace until the end of the transaction, so that two requests for the last
/// one exclude each other. Served by `connections_events_idx`.
pub(super) async fn check(conn: &mut AsyncPgConnection, namespace: Id) -> Result<(), Error> {
    #[derive(QueryableByName)]
    struct Count {
        #[diesel(sql_type = BigInt)]
        count: i64,
    }
    let namespace = namespace.to_uuid();
    namespaces::table
        .find(namespace)
        .select(namespaces::id)
        .for_no_key_update()
        .first::<Uuid>(conn)
        .await
        .optional()?;
    let count: Count = query!("connections/count_receiving", SqlUuid: namespace)
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
