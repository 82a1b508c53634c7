//! `/v1/namespaces/{namespaceId}/connections`

use std::collections::HashMap;

use actix_web::web::Path;
use domain::{
    Connection, Id, Issue, Issues, NamespaceName, Timestamp,
    audit::{Action, Entry},
    connection::{
        ConnectionChange, ConnectionState, ConnectionWithHealth, CreateConnection, Digest, Format,
        Health, PATHS, Recipient, RecipientState, Recipients,
    },
    list::CONNECTION_FIELDS,
};
use store::{
    AsyncPgConnection, Page, connections, mail,
    namespaces::Deletion,
    quotas::{self, Resource},
};

use super::{ConnectionPath, NamespacePath};
use crate::{
    ApiError,
    answer::{Deleted, Found, Listed},
    authenticate::Caller,
    body::RawJson,
    idempotency::Made,
    pages,
    parent::Parent,
    query::Parameters,
    quotas::creation,
    transaction::Outcome,
};

/// `POST /v1/namespaces/{namespaceId}/connections`
pub(crate) async fn create(
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Made<Connection>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let once = body.once();
    let body = body.read().await?;
    let draft = body.parse(|json| CreateConnection::parse(json, &caller.state.addresses))?;
    let sealer = &caller.state.sealer;
    let (account, defaults) = (caller.key.account, caller.state.quotas);
    caller
        .create(&once, async move |conn| {
            check_zone(conn, draft.digest.as_ref()).await?;
            creation(conn, account, Resource::Connection, &defaults).await?;
            let made = connections::insert(conn, sealer, namespace, &draft).await?;
            let entry = Entry::of(Action::Create, namespace, made.name);
            Ok(Outcome::of(made, Some(entry)))
        })
        .await
}

/// `GET /v1/namespaces/{namespaceId}/connections`
pub(crate) async fn list(
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Listed<ConnectionWithHealth>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let parent = format!("{}/connections", NamespaceName { namespace });
    let query = &query.list(&parent, CONNECTION_FIELDS)?;
    let sealer = &caller.state.sealer;
    let page = pages::page(
        &caller,
        query,
        async move |conn| connections::cost(conn, namespace, query).await,
        async move |conn| connections::list(conn, sealer, namespace, query).await,
    )
    .await?;
    let names: Vec<_> = page.items.iter().map(|one| one.name).collect();
    if caller.key.role.may_write() && !page.items.is_empty() {
        caller.reads_secrets(namespace, parent).await?;
    }
    let mut health = connections::health(&mut *caller.connection().await?, &names).await?;
    let states = states(&caller, namespace, &page.items).await?;
    let items = page.items.into_iter().map(|connection| {
        let health = health.remove(&connection.name);
        shown(&caller, connection, health, &states)
    });
    Ok(Listed {
        key: "connections",
        page: Page {
            items: items.collect(),
            next_page_token: page.next_page_token,
        },
    })
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Found<ConnectionWithHealth>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let found =
        connections::get(&mut *caller.connection().await?, &caller.state.sealer, name).await?;
    let connection = found.ok_or(ApiError::NotFound("connection"))?;
    query.none()?;
    if caller.key.role.may_write() {
        caller.reads_secrets(namespace, name).await?;
    }
    let mut health = connections::health(&mut *caller.connection().await?, &[name]).await?;
    let states = states(&caller, namespace, std::slice::from_ref(&connection)).await?;
    let health = health.remove(&name);
    Ok(Found(shown(&caller, connection, health, &states)))
}

/// `PATCH /v1/namespaces/{namespaceId}/connections/{connectionId}`
pub(crate) async fn update(
    caller: Caller,
    path: Path<ConnectionPath>,
    body: RawJson,
) -> Result<Found<Connection>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read().await?;
    let name = path.name()?;
    let (sealer, addresses) = (&caller.state.sealer, &caller.state.addresses);
    let (account, defaults) = (caller.key.account, caller.state.quotas);
    let (found, is_recorded) = caller
        .write(async move |conn| {
            if body.has("events") {
                quotas::lock(conn, account, &defaults).await?;
            }
            let current = connections::lock(conn, sealer, name).await?;
            let current = current.ok_or(ApiError::NotFound("connection"))?;
            let (change, fields) = body.patch(PATHS, |patch| {
                ConnectionChange::of(patch, &current, addresses)
            })?;
            check_zone(conn, change.digest.as_ref().and_then(Option::as_ref)).await?;
            let now = Timestamp::now();
            let updated = connections::update(conn, sealer, current, &change, now).await?;
            let entry = Entry::update(namespace, name, fields);
            Ok(Outcome::of((Found(updated), entry.is_some()), entry))
        })
        .await?;
    // The response contains secrets, although no update is recorded.
    if caller.test_mode || !is_recorded {
        caller.reads_secrets(namespace, name).await?;
    }
    Ok(found)
}

/// `POST /v1/namespaces/{namespaceId}/connections/{connectionId}:enable`
pub(crate) async fn enable(
    caller: Caller,
    path: Path<ConnectionPath>,
    body: RawJson,
) -> Result<Found<Connection>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read_optional().await?;
    let name = path.name()?;
    let sealer = &caller.state.sealer;
    let found = caller
        .write(async move |conn| {
            let current = connections::lock(conn, sealer, name).await?;
            let current = current.ok_or(ApiError::NotFound("connection"))?;
            body.nothing()?;
            let change = ConnectionChange {
                state: Some(ConnectionState::Active).filter(|active| current.state != *active),
                ..ConnectionChange::default()
            };
            let now = Timestamp::now();
            let updated = connections::update(conn, sealer, current, &change, now).await?;
            let entry = Entry::of(Action::Enable, namespace, name);
            Ok(Outcome::of(Found(updated), Some(entry)))
        })
        .await?;
    if caller.test_mode {
        caller.reads_secrets(namespace, name).await?;
    }
    Ok(found)
}

/// `DELETE /v1/namespaces/{namespaceId}/connections/{connectionId}`
///
/// Its waiting deliveries are cancelled in the background.
pub(crate) async fn delete(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Deleted, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let name = path.name()?;
    let force = query.force();
    let force = Parent::Connection(name).before(&caller, force).await?;
    let test_mode = caller.test_mode;
    caller
        .write(async move |conn| {
            let deletion = if test_mode {
                connections::check_deletion(conn, name, force).await?
            } else {
                connections::delete(conn, name, force, Timestamp::now()).await?
            };
            match deletion {
                Deletion::NotFound => Err(ApiError::NotFound("connection")),
                Deletion::Refused => Err(Issues::one("force", Issue::InUse).into()),
                Deletion::Done(_) => {
                    let entry = Entry::of(Action::Delete, namespace, name);
                    Ok(Outcome::of(Deleted, Some(entry)))
                }
            }
        })
        .await
}

/// Refuses a time zone that the database does not know.
async fn check_zone(conn: &mut AsyncPgConnection, digest: Option<&Digest>) -> Result<(), ApiError> {
    match digest {
        Some(digest) if !connections::is_time_zone(conn, &digest.time_zone).await? => {
            Err(Issues::one("digest.timeZone", Issue::InvalidEnum).into())
        }
        _ => Ok(()),
    }
}

type States = HashMap<(Id, mail::Digest), RecipientState>;

/// Returns the states of the recipients of these Connections of a Namespace. Without e-mail, it costs no statement.
async fn states(
    caller: &Caller,
    namespace: Id,
    connections: &[Connection],
) -> Result<States, ApiError> {
    let of_mail = |one: &&Connection| one.format == Format::Email;
    let ids = connections.iter().filter(of_mail);
    let ids: Vec<Id> = ids.map(|one| one.name.connection).collect();
    if ids.is_empty() {
        return Ok(States::new());
    }
    Ok(mail::states(&mut *caller.connection().await?, namespace, &ids).await?)
}

/// Masks addresses and header values, which are secrets, for callers that may not write.
fn shown(
    caller: &Caller,
    connection: Connection,
    health: Option<Health>,
    states: &States,
) -> ConnectionWithHealth {
    let may_write = caller.key.role.may_write();
    let id = connection.name.connection;
    let recipients = connection.url.parse::<Recipients>().ok();
    let recipients = recipients.iter().flat_map(Recipients::as_slice);
    let recipients = recipients.map(|address| Recipient {
        address: if may_write {
            address.as_str().to_owned()
        } else {
            address.masked()
        },
        state: { states.get(&(id, address.digest())) }
            .copied()
            .unwrap_or(RecipientState::Pending),
    });
    ConnectionWithHealth {
        recipients: recipients.collect(),
        health,
        connection: if may_write {
            connection
        } else {
            connection.masked()
        },
    }
}
