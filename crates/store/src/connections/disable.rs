//! Disables Connections that the dispatcher finds gone or failing.

use diesel::{
    prelude::*,
    sql_types::{Bool, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, Timestamp};

use crate::{QueryResult, prepared::query, schema::connections};

/// Stops deliveries to a Connection, for `reason`; new deliveries wait. A Connection that is disabled already keeps
/// its reason.
pub async fn disable(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    reason: &str,
    now: Timestamp,
) -> QueryResult<bool> {
    let changed = diesel::update(
        connections::table.find((name.namespace.to_uuid(), name.connection.to_uuid())),
    )
    .filter(connections::state.eq("ACTIVE"))
    .set((
        connections::state.eq("DISABLED"),
        connections::state_reason.eq(reason),
        connections::update_time.eq(now.to_chrono()),
    ))
    .execute(conn)
    .await?;
    Ok(changed > 0)
}

/// Result of [`disable_unchanged`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// The Connection is now disabled.
    Off,
    /// The Connection was disabled already, or is gone.
    WasOff,
    /// Its owner has changed it since: it may have another address, or may have been enabled again.
    Changed,
}

/// Same as [`disable`], but only if the Connection was last changed at `update_time`, the value when its endpoint
/// was called. So an old result does not override the owner's change. Compares no clocks.
pub async fn disable_unchanged(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    update_time: Timestamp,
    reason: &str,
    now: Timestamp,
) -> QueryResult<Switched> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        off: bool,
        #[diesel(sql_type = Bool)]
        active: bool,
    }
    let found: Found = query!(
        "connections/disable_unchanged",
        SqlUuid: name.namespace.to_uuid(),
        SqlUuid: name.connection.to_uuid(),
        Text: reason,
        Timestamptz: now.to_chrono(),
        Timestamptz: update_time.to_chrono(),
    )
    .get_result(conn)
    .await?;
    Ok(match found {
        Found { off: true, .. } => Switched::Off,
        Found { active: true, .. } => Switched::Changed,
        Found { .. } => Switched::WasOff,
    })
}
