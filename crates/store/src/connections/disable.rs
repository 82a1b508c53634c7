//! Disables Connections that the dispatcher finds gone or failing.

use diesel::{
    prelude::*,
    sql_types::{Bool, Nullable, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use domain::{ConnectionName, ServiceEventType, Timestamp, service_event::Details};

use crate::{QueryResult, prepared::query, schema::connections, service_events};

/// Stops deliveries to a Connection, for `reason`; new deliveries wait. A Connection that is disabled already keeps
/// its reason.
pub async fn disable(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    reason: &str,
    now: Timestamp,
) -> QueryResult<bool> {
    conn.transaction(async |conn| {
        let nickname: Option<String> = diesel::update(
            connections::table.find((name.namespace.to_uuid(), name.connection.to_uuid())),
        )
        .filter(connections::state.eq("ACTIVE"))
        .set((
            connections::state.eq("DISABLED"),
            connections::state_reason.eq(reason),
            connections::update_time.eq(now.to_chrono()),
        ))
        .returning(connections::nickname)
        .get_result(conn)
        .await
        .optional()?;
        let Some(nickname) = nickname else {
            return Ok(false);
        };
        record_event(conn, name, nickname, reason).await?;
        Ok(true)
    })
    .await
}

async fn record_event(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    nickname: String,
    reason: &str,
) -> QueryResult<()> {
    let details = Details {
        nickname: Some(nickname),
        reason: Some(reason.to_owned()),
        ..Details::default()
    };
    service_events::record(
        conn,
        name.namespace,
        ServiceEventType::ConnectionDisabled,
        &name.to_string(),
        &details,
    )
    .await
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
        /// Its nickname, if it was disabled now.
        #[diesel(sql_type = Nullable<Text>)]
        off: Option<String>,
        #[diesel(sql_type = Bool)]
        active: bool,
    }
    conn.transaction(async |conn| {
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
        if let Some(nickname) = found.off {
            record_event(conn, name, nickname, reason).await?;
            return Ok(Switched::Off);
        }
        Ok(if found.active {
            Switched::Changed
        } else {
            Switched::WasOff
        })
    })
    .await
}
