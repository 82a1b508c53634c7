//! Connections. Header values are sealed on the way in and opened on the way out.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Connection, ConnectionName, Id, Timestamp,
    connection::{ConnectionState, ConnectionType, CreateConnection, Headers, Method},
    list::ListQuery,
};
use uuid::Uuid;

use crate::{
    Error, QueryResult,
    listing::{Listing, Page, column, nullable},
    schema::connections,
    seal::Sealer,
    words,
};

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = connections)]
pub(crate) struct Row {
    namespace_id: Uuid,
    id: Uuid,
    nickname: String,
    url: String,
    method: String,
    headers_sealed: Vec<u8>,
    state: String,
    state_reason: Option<String>,
    create_time: DateTime<Utc>,
    update_time: DateTime<Utc>,
}

impl Row {
    fn open(self, sealer: &Sealer) -> Result<Connection, Error> {
        let name = ConnectionName {
            namespace: Id::from_uuid(self.namespace_id),
            connection: Id::from_uuid(self.id),
        };
        Ok(Connection {
            name,
            create_time: self.create_time.into(),
            update_time: self.update_time.into(),
            nickname: self.nickname,
            connection_type: ConnectionType::HttpConnection,
            url: self.url,
            method: words::parse(&self.method)?,
            headers: open_headers(&self.headers_sealed, name, sealer)?,
            state: words::parse(&self.state)?,
            state_reason: self.state_reason,
        })
    }
}

pub(crate) fn open_headers(
    sealed: &[u8],
    name: ConnectionName,
    sealer: &Sealer,
) -> Result<Headers, Error> {
    let plain = sealer.open(sealed, &name.to_string())?;
    serde_json::from_slice(&plain).map_err(Error::Json)
}

/// # Errors
/// When the database does not answer.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    namespace: Id,
    draft: &CreateConnection,
) -> Result<Connection, Error> {
    let id = Id::generate();
    let time = id.time();
    let name = ConnectionName {
        namespace,
        connection: id,
    };
    let headers = serde_json::to_vec(&draft.headers).map_err(Error::Json)?;
    diesel::insert_into(connections::table)
        .values((
            connections::namespace_id.eq(namespace.to_uuid()),
            connections::id.eq(id.to_uuid()),
            connections::nickname.eq(&draft.nickname),
            connections::url.eq(&draft.url),
            connections::method.eq(draft.method.as_str()),
            connections::headers_sealed.eq(sealer.seal(&headers, &name.to_string())),
            connections::create_time.eq(time.to_chrono()),
            connections::update_time.eq(time.to_chrono()),
        ))
        .execute(conn)
        .await?;
    Ok(Connection {
        name,
        create_time: time,
        update_time: time,
        nickname: draft.nickname.clone(),
        connection_type: ConnectionType::HttpConnection,
        url: draft.url.clone(),
        method: draft.method,
        headers: draft.headers.clone(),
        state: ConnectionState::Active,
        state_reason: None,
    })
}

/// # Errors
/// When the database does not answer, or the headers cannot be opened.
pub async fn get(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    name: ConnectionName,
) -> Result<Option<Connection>, Error> {
    connections::table
        .find((name.namespace.to_uuid(), name.connection.to_uuid()))
        .select(Row::as_select())
        .first(conn)
        .await
        .optional()?
        .map(|row| row.open(sealer))
        .transpose()
}

/// Stops deliveries to a Connection, for `reason`; what comes waits. One that is disabled already
/// keeps its reason.
///
/// # Errors
/// When the database does not answer.
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

/// Which of these Connections of a Namespace exist. Locks them against deletion until the end of the
/// transaction, so that a notice never names what is gone.
///
/// # Errors
/// When the database does not answer.
pub async fn lock_existing(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    ids: &[Id],
) -> QueryResult<Vec<Id>> {
    let ids: Vec<Uuid> = ids.iter().map(|id| id.to_uuid()).collect();
    let found: Vec<Uuid> = connections::table
        .filter(connections::namespace_id.eq(namespace.to_uuid()))
        .filter(connections::id.eq_any(ids))
        .order(connections::id.asc())
        .select(connections::id)
        .for_key_share()
        .load(conn)
        .await?;
    Ok(found.into_iter().map(Id::from_uuid).collect())
}

pub(crate) const LISTING: Listing = Listing {
    select: "SELECT namespace_id, id, nickname, url, method, headers_sealed, state, state_reason, create_time, \
             update_time FROM connections WHERE namespace_id = $1",
    columns: &[
        column(
            "name",
            "('namespaces/' || ulid(namespace_id) || '/connections/' || ulid(id))",
        ),
        column("createTime", "create_time"),
        column("updateTime", "update_time"),
        column("nickname", "nickname"),
        column("type", "'HTTP_CONNECTION'"),
        column("url", "url"),
        column("method", "method"),
        column("state", "state"),
        nullable("stateReason", "state_reason"),
    ],
    id: "id",
};

/// Default order served by `connections_list_idx`.
///
/// # Errors
/// When the database does not answer, or headers cannot be opened.
pub async fn list(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    namespace: Id,
    list: &ListQuery,
) -> Result<Page<Connection>, Error> {
    let rows: Vec<Row> = LISTING
        .page(&[namespace.to_uuid()], list)
        .load(conn)
        .await?;
    let items = rows
        .into_iter()
        .map(|row| Ok((Id::from_uuid(row.id), row.open(sealer)?)))
        .collect::<Result<_, Error>>()?;
    Ok(Page::new(list, items))
}

/// The method as the table holds it.
pub(crate) fn method(text: &str) -> Result<Method, Error> {
    words::parse(text)
}
