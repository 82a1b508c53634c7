//! Connections. Addresses, header values and signing secrets are sealed on the way in and opened on the way out.

use chrono::{DateTime, Utc};
use diesel::{prelude::*, sql_types::Text};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{
    Connection, ConnectionName, Id, ServiceEventType,
    connection::{
        ConnectionState, ConnectionType, CreateConnection, Digest, Format, Headers, Method,
        Recipients, SigningSecret,
    },
    list::ListQuery,
};
use uuid::Uuid;

use crate::{
    Error, QueryResult,
    listing::{Listing, Page, Rows, column, no_other_index, nullable},
    prepared::query,
    schema::connections,
    seal::Sealer,
    words,
};

mod disable;
mod edit;
mod health;
mod receivers;
mod recipients;
mod reseal;

pub use disable::{Switched, disable, disable_unchanged};
pub use edit::{PAUSED, check_deletion, delete, lock, update};
pub use health::health;
pub use receivers::MAX_RECEIVERS;
pub use reseal::{Resealed, reseal};

/// Value of the plain address column when the address is sealed.
const SEALED: &str = "";
/// Shown instead of an address that the service cannot decrypt any more.
const UNREADABLE: &str = "https://unreadable.invalid/";

#[derive(Queryable, Selectable, QueryableByName)]
#[diesel(table_name = connections)]
pub(crate) struct ConnectionRow {
    namespace_id: Uuid,
    id: Uuid,
    nickname: String,
    url: String,
    url_sealed: Option<Vec<u8>>,
    method: String,
    headers_sealed: Vec<u8>,
    format: String,
    max_per_second: Option<i32>,
    events: Vec<String>,
    digest: Option<String>,
    time_zone: String,
    state: String,
    state_reason: Option<String>,
    create_time: DateTime<Utc>,
    update_time: DateTime<Utc>,
}

impl ConnectionRow {
    /// Masks values whose key is not configured any more: they must not hide the Connection or the list that
    /// contains it.
    fn open_or_mask(self, sealer: &Sealer) -> Result<Connection, Error> {
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
            url: open_url(self.url, self.url_sealed.as_deref(), name, sealer).unwrap_or_else(
                |error| {
                    tracing::error!(connection.name = %name, "its url cannot be opened: {error}");
                    UNREADABLE.to_owned()
                },
            ),
            method: words::parse(&self.method)?,
            headers: match open_headers(&self.headers_sealed, name, sealer) {
                Ok(headers) => headers,
                Err(error) => {
                    tracing::error!(connection.name = %name, "its headers cannot be opened: {error}");
                    Headers::unreadable()
                }
            },
            format: words::parse(&self.format)?,
            max_per_second: max_per_second(self.max_per_second),
            // A type of a later release is left out.
            events: { self.events.iter() }
                .filter_map(|word| words::parse(word).ok())
                .collect(),
            digest: match &self.digest {
                Some(period) => Some(Digest {
                    period: words::parse(period)?,
                    time_zone: self.time_zone,
                }),
                None => None,
            },
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

/// Same as [`open_headers`], for the address. The previous release stored addresses unsealed.
pub(crate) fn open_url(
    clear: String,
    sealed: Option<&[u8]>,
    name: ConnectionName,
    sealer: &Sealer,
) -> Result<String, Error> {
    if !clear.is_empty() {
        return Ok(clear);
    }
    let plain = sealer.open(sealed.unwrap_or_default(), &url_of(name))?;
    String::from_utf8(plain).map_err(|error| Error::Json(serde::de::Error::custom(error)))
}

fn seal_url(url: &str, name: ConnectionName, sealer: &Sealer) -> Vec<u8> {
    sealer.seal(url.as_bytes(), &url_of(name))
}

/// Context that an address is sealed with.
fn url_of(name: ConnectionName) -> String {
    format!("{name}/url")
}

/// Same as [`open_headers`], for signing secrets. `None` without any.
pub(crate) fn open_secrets(
    sealed: Option<&[u8]>,
    name: ConnectionName,
    sealer: &Sealer,
) -> Result<Vec<SigningSecret>, Error> {
    let Some(sealed) = sealed else {
        return Ok(Vec::new());
    };
    let plain = sealer.open(sealed, &secrets_of(name))?;
    let texts: Vec<String> = serde_json::from_slice(&plain).map_err(Error::Json)?;
    let secrets = texts.iter().map(|text| text.parse());
    secrets
        .collect::<Result<_, _>>()
        .map_err(|error| Error::Json(serde::de::Error::custom(error)))
}

fn seal_headers(
    headers: &Headers,
    name: ConnectionName,
    sealer: &Sealer,
) -> Result<Vec<u8>, Error> {
    let plain = serde_json::to_vec(headers).map_err(Error::Json)?;
    Ok(sealer.seal(&plain, &name.to_string()))
}

/// Returns the sealed secrets; `None` if `secrets` is empty.
fn seal_secrets(
    secrets: &[SigningSecret],
    name: ConnectionName,
    sealer: &Sealer,
) -> Result<Option<Vec<u8>>, Error> {
    if secrets.is_empty() {
        return Ok(None);
    }
    let texts: Vec<&str> = secrets.iter().map(SigningSecret::expose).collect();
    let plain = serde_json::to_vec(&texts).map_err(Error::Json)?;
    Ok(Some(sealer.seal(&plain, &secrets_of(name))))
}

/// Context that signing secrets are sealed with, so that no other value can replace them.
fn secrets_of(name: ConnectionName) -> String {
    format!("{name}/signingSecrets")
}

/// Stores a Connection with its secrets sealed. Call inside a transaction, after [`crate::quotas::check_creation`].
///
/// # Errors
/// [`Error::QuotaExceeded`] if too many of the Namespace receive service events.
pub async fn insert(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    namespace: Id,
    draft: &CreateConnection,
) -> Result<Connection, Error> {
    if !draft.events.is_empty() {
        receivers::check(conn, namespace).await?;
    }
    let id = Id::generate();
    let time = id.time();
    let name = ConnectionName {
        namespace,
        connection: id,
    };
    diesel::insert_into(connections::table)
        .values((
            connections::namespace_id.eq(namespace.to_uuid()),
            connections::id.eq(id.to_uuid()),
            connections::nickname.eq(&draft.nickname),
            connections::url.eq(SEALED),
            connections::url_sealed.eq(seal_url(&draft.url, name, sealer)),
            connections::method.eq(draft.method.as_str()),
            connections::headers_sealed.eq(seal_headers(&draft.headers, name, sealer)?),
            connections::format.eq(draft.format.as_str()),
            connections::max_per_second.eq(stored_rate(draft.max_per_second)),
            connections::signing_secrets_sealed.eq(seal_secrets(
                &draft.signing_secrets,
                name,
                sealer,
            )?),
            connections::events.eq(stored_events(&draft.events)),
            connections::digest.eq(stored_period(draft.digest.as_ref())),
            connections::time_zone.eq(stored_zone(draft.digest.as_ref())),
            connections::create_time.eq(time.to_chrono()),
            connections::update_time.eq(time.to_chrono()),
        ))
        .execute(conn)
        .await?;
    if Recipients::are_named_by(&draft.url) {
        recipients::set_recipients(conn, name, &draft.url).await?;
    }
    Ok(Connection {
        name,
        create_time: time,
        update_time: time,
        nickname: draft.nickname.clone(),
        connection_type: ConnectionType::HttpConnection,
        url: draft.url.clone(),
        method: draft.method,
        headers: draft.headers.clone(),
        format: draft.format,
        max_per_second: draft.max_per_second,
        events: draft.events.clone(),
        digest: draft.digest.clone(),
        state: ConnectionState::Active,
        state_reason: None,
    })
}

/// Returns a Connection with its secrets decrypted, or masked if no key decrypts them.
pub async fn get(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    name: ConnectionName,
) -> Result<Option<Connection>, Error> {
    connections::table
        .find((name.namespace.to_uuid(), name.connection.to_uuid()))
        .select(ConnectionRow::as_select())
        .first(conn)
        .await
        .optional()?
        .map(|row| row.open_or_mask(sealer))
        .transpose()
}

/// Returns true if the Connection exists; by primary key.
pub async fn exists(conn: &mut AsyncPgConnection, name: ConnectionName) -> QueryResult<bool> {
    diesel::select(diesel::dsl::exists(
        connections::table.find((name.namespace.to_uuid(), name.connection.to_uuid())),
    ))
    .get_result(conn)
    .await
}

/// Returns which of these Connections of a Namespace exist. Locks them against deletion until the end of the
/// transaction, so that a notice never names a deleted one.
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
    select: "SELECT namespace_id, id, nickname, url, url_sealed, method, headers_sealed, format, max_per_second, events, \
             digest, time_zone, state, state_reason, create_time, update_time FROM connections WHERE namespace_id = $1",
    rows: "SELECT FROM connections WHERE namespace_id = $1",
    columns: &[
        column(
            "name",
            "('namespaces/' || ulid(namespace_id) || '/connections/' || ulid(id))",
        )
        .taking(60),
        column("createTime", "create_time"),
        column("updateTime", "update_time"),
        column("nickname", "nickname"),
        column("type", "'HTTP_CONNECTION'"),
        column("method", "method"),
        column("format", "format"),
        nullable("maxPerSecond", "max_per_second::float8"),
        column("state", "state"),
        nullable("stateReason", "state_reason"),
    ],
    id: "id",
    is_indexed: no_other_index,
};

/// Lists the Connections of a Namespace. `connections_list_idx` serves the default order.
pub async fn list(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    namespace: Id,
    list: &ListQuery,
) -> Result<Page<Connection>, Error> {
    let Rows::<ConnectionRow> { rows, more } = LISTING
        .page(&[namespace.to_uuid()], list)
        .read(conn, list)
        .await?;
    let items = rows
        .into_iter()
        .map(|row| Ok((Id::from_uuid(row.id), row.open_or_mask(sealer)?)))
        .collect::<Result<_, Error>>()?;
    Ok(Page::new(list, items, more))
}

/// Maximum cost of [`list`].
pub async fn cost(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    list: &ListQuery,
) -> QueryResult<u64> {
    LISTING.cost(conn, &[namespace.to_uuid()], list, "").await
}

pub(crate) fn method(text: &str) -> Result<Method, Error> {
    words::parse(text)
}

pub(crate) fn format(text: &str) -> Result<Format, Error> {
    words::parse(text)
}

pub(crate) fn max_per_second(stored: Option<i32>) -> Option<u32> {
    stored.and_then(|rate| u32::try_from(rate).ok())
}

/// `connections_max_per_second_check` limits the rate, as the domain does before.
fn stored_rate(rate: Option<u32>) -> Option<i32> {
    rate.map(|rate| i32::try_from(rate).unwrap_or(i32::MAX))
}

fn stored_events(events: &[ServiceEventType]) -> Vec<&'static str> {
    events.iter().map(|event| event.as_str()).collect()
}

fn stored_period(digest: Option<&Digest>) -> Option<&'static str> {
    digest.map(|digest| digest.period.as_str())
}

/// The column is never NULL, so that the release before can insert.
fn stored_zone(digest: Option<&Digest>) -> &str {
    digest.map_or("UTC", |digest| digest.time_zone.as_str())
}

/// Returns true if PostgreSQL knows the time zone by this name. Reads the names of all, which takes some milliseconds.
pub async fn is_time_zone(conn: &mut AsyncPgConnection, name: &str) -> QueryResult<bool> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = diesel::sql_types::Bool)]
        found: bool,
    }
    let found: Found = query!(
        "connections/is_time_zone",
        Text: name,
    )
    .get_result(conn)
    .await?;
    Ok(found.found)
}

/// Everything needed to send a request to a Connection, except its content.
#[derive(Debug, Clone, PartialEq)]
pub struct Endpoint {
    pub url: String,
    pub method: Method,
    pub headers: Headers,
    pub format: Format,
    pub signing_secrets: Vec<SigningSecret>,
}

/// Returns the endpoint of a Connection, enabled or not. By primary key.
///
/// # Errors
/// If the database does not answer, or a sealed value cannot be decrypted.
pub async fn endpoint(
    conn: &mut AsyncPgConnection,
    sealer: &Sealer,
    name: ConnectionName,
) -> Result<Option<Endpoint>, Error> {
    type Columns = (
        (String, Option<Vec<u8>>),
        String,
        Vec<u8>,
        String,
        Option<Vec<u8>>,
    );
    let found: Option<Columns> = connections::table
        .find((name.namespace.to_uuid(), name.connection.to_uuid()))
        .select((
            (connections::url, connections::url_sealed),
            connections::method,
            connections::headers_sealed,
            connections::format,
            connections::signing_secrets_sealed,
        ))
        .first(conn)
        .await
        .optional()?;
    let open = |((clear, sealed), stored_method, headers, stored_format, secrets): Columns| {
        Ok(Endpoint {
            url: open_url(clear, sealed.as_deref(), name, sealer)?,
            method: method(&stored_method)?,
            headers: open_headers(&headers, name, sealer)?,
            format: format(&stored_format)?,
            signing_secrets: open_secrets(secrets.as_deref(), name, sealer)?,
        })
    };
    found.map(open).transpose()
}
