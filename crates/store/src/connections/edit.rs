//! Changes and deletes Connections.

use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Connection, ConnectionName, ServiceEventType, Timestamp,
    connection::{ConnectionChange, ConnectionState, Recipients},
};
use uuid::Uuid;

use super::{
    ConnectionRow, SEALED, receivers, recipients, seal_headers, seal_secrets, seal_url,
    stored_events, stored_period, stored_rate, stored_zone,
};
use crate::{
    Error, QueryResult,
    namespaces::Deletion,
    purges,
    schema::{connections, manager_notices, managers},
    seal::Sealer,
};

/// Reason of a Connection that its owner disabled.
pub const PAUSED: &str = "disabled by its owner";

/// Returns the current row, locked until the end of the transaction.
pub async fn lock(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    name: ConnectionName,
) -> Result<Option<Connection>, Error> {
    let found: Option<ConnectionRow> = connections::table
        .find((name.namespace.to_uuid(), name.connection.to_uuid()))
        .select(ConnectionRow::as_select())
        .for_no_key_update()
        .first(conn)
        .await
        .optional()?;
    found.map(|row| row.open_or_mask(sealer)).transpose()
}

#[derive(Default, AsChangeset)]
#[diesel(table_name = connections)]
struct Changes<'a> {
    nickname: Option<&'a str>,
    url: Option<&'a str>,
    url_sealed: Option<Vec<u8>>,
    method: Option<&'a str>,
    headers_sealed: Option<Vec<u8>>,
    format: Option<&'a str>,
    max_per_second: Option<Option<i32>>,
    signing_secrets_sealed: Option<Option<Vec<u8>>>,
    events: Option<Vec<&'static str>>,
    digest: Option<Option<&'a str>>,
    time_zone: Option<&'a str>,
    state: Option<&'a str>,
    state_reason: Option<Option<&'a str>>,
}

/// Changes a Connection, which must be [`lock`]ed, after the account's row if the change has events. A change that changes nothing also keeps `updateTime`. A change with
/// a url closes the circuit breaker, even if the address stays the same: its owner wants it to be tried now.
pub async fn update(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    current: Connection,
    change: &ConnectionChange,
    now: Timestamp,
) -> Result<Connection, Error> {
    if *change == ConnectionChange::default() {
        return Ok(current);
    }
    let name = current.name;
    let receives = |events: &[ServiceEventType]| !events.is_empty();
    if change.events.as_deref().is_some_and(receives) && !receives(&current.events) {
        receivers::check(conn, name.namespace).await?;
    }
    let mut changes = Changes {
        nickname: change.nickname.as_deref(),
        url: change.url.as_ref().map(|_| SEALED),
        url_sealed: change.url.as_ref().map(|url| seal_url(url, name, sealer)),
        method: change.method.map(|method| method.as_str()),
        format: change.format.map(|format| format.as_str()),
        max_per_second: change.max_per_second.map(stored_rate),
        events: change.events.as_deref().map(stored_events),
        digest: { change.digest.as_ref() }.map(|digest| stored_period(digest.as_ref())),
        time_zone: { change.digest.as_ref() }.map(|digest| stored_zone(digest.as_ref())),
        ..Changes::default()
    };
    if let Some(headers) = &change.headers {
        changes.headers_sealed = Some(seal_headers(headers, name, sealer)?);
    }
    if let Some(secrets) = &change.signing_secrets {
        changes.signing_secrets_sealed = Some(seal_secrets(secrets, name, sealer)?);
    }
    // A Connection that already has the wanted state keeps its reason.
    if let Some(state) = change.state.filter(|state| *state != current.state) {
        changes.state = Some(state.as_str());
        changes.state_reason = Some(match state {
            ConnectionState::Active => None,
            ConnectionState::Disabled => Some(PAUSED),
        });
    }
    let row: ConnectionRow = diesel::update(
        connections::table.find((name.namespace.to_uuid(), name.connection.to_uuid())),
    )
    .set((changes, connections::update_time.eq(now.to_chrono())))
    .returning(ConnectionRow::as_returning())
    .get_result(conn)
    .await?;
    if let Some(url) = &change.url
        && Recipients::are_named_by(url)
    {
        recipients::set_recipients(conn, name, url).await?;
    }
    row.open_or_mask(sealer)
}

/// Returns the result that [`delete`] would have. Only reads, and takes no locks.
pub async fn check_deletion(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    force: bool,
) -> QueryResult<Deletion> {
    let (namespace, connection) = (name.namespace.to_uuid(), name.connection.to_uuid());
    let found = connections::table.find((namespace, connection));
    let exists: bool = diesel::select(diesel::dsl::exists(found))
        .get_result(conn)
        .await?;
    Ok(if !exists {
        Deletion::NotFound
    } else if !force && !naming(conn, namespace, connection).await?.is_empty() {
        Deletion::Refused
    } else {
        Deletion::Done(Vec::new())
    })
}

/// Deletes a Connection, and with `force` removes it from the notices that name it. [`purges`] cancels its
/// unfinished deliveries. Call inside a transaction.
pub async fn delete(
    conn: &mut AsyncPgConnection,
    name: ConnectionName,
    force: bool,
    now: Timestamp,
) -> QueryResult<Deletion> {
    let (namespace, connection) = (name.namespace.to_uuid(), name.connection.to_uuid());
    // Managers are locked before Connections, in the same order as in changes of notices.
    let naming = naming(conn, namespace, connection).await?;
    managers::table
        .filter(managers::namespace_id.eq(namespace))
        .filter(managers::id.eq_any(&naming))
        .order(managers::id.asc())
        .select(managers::id)
        .for_no_key_update()
        .load::<Uuid>(conn)
        .await?;
    let found: Option<Uuid> = connections::table
        .find((namespace, connection))
        .select(connections::id)
        .for_update()
        .first(conn)
        .await
        .optional()?;
    if found.is_none() {
        return Ok(Deletion::NotFound);
    }
    // From here on no Manager can begin to name the Connection, but one may have done so since the first query.
    let naming = self::naming(conn, namespace, connection).await?;
    if !force && !naming.is_empty() {
        return Ok(Deletion::Refused);
    }
    diesel::delete(
        manager_notices::table
            .filter(manager_notices::namespace_id.eq(namespace))
            .filter(manager_notices::connection_id.eq(connection)),
    )
    .execute(conn)
    .await?;
    diesel::update(
        managers::table
            .filter(managers::namespace_id.eq(namespace))
            .filter(managers::id.eq_any(&naming)),
    )
    .set(managers::update_time.eq(now.to_chrono()))
    .execute(conn)
    .await?;
    purges::enqueue(conn, purges::Subject::Connection(name)).await?;
    diesel::delete(connections::table.find((namespace, connection)))
        .execute(conn)
        .await?;
    Ok(Deletion::Done(Vec::new()))
}

/// Returns the Managers that deliver to the Connection. Served by `manager_notices_connection_idx`.
async fn naming(
    conn: &mut AsyncPgConnection,
    namespace: Uuid,
    connection: Uuid,
) -> QueryResult<Vec<Uuid>> {
    manager_notices::table
        .filter(manager_notices::namespace_id.eq(namespace))
        .filter(manager_notices::connection_id.eq(connection))
        .order(manager_notices::manager_id.asc())
        .select(manager_notices::manager_id)
        .load(conn)
        .await
}
