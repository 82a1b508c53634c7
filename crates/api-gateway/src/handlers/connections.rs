//! `/v1/namespaces/{namespaceId}/connections`

use actix_web::web::{Data, Path};
use domain::{
    Connection, ConnectionName, NamespaceName, connection::CreateConnection,
    list::CONNECTION_FIELDS,
};
use store::connections;

use super::{ConnectionPath, NamespacePath};
use crate::{
    ApiError,
    answer::{Created, Found, Listed},
    authenticate::Caller,
    body::RawJson,
    query::Parameters,
    state::AppState,
};

/// `POST /v1/namespaces/{namespaceId}/connections`
pub(crate) async fn create(
    state: Data<AppState>,
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Created<Connection>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    let draft = body
        .parse(|json| CreateConnection::parse(json, &state.addresses))
        .await?;
    let sealer = &state.sealer;
    let connection = state
        .write(&caller, async move |conn| {
            Ok(connections::insert(conn, sealer, namespace, &draft).await?)
        })
        .await?;
    Ok(Created(connection))
}

/// `GET /v1/namespaces/{namespaceId}/connections`
pub(crate) async fn list(
    state: Data<AppState>,
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Listed<Connection>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let parent = format!("{}/connections", NamespaceName { namespace });
    let query = query.list(&parent, CONNECTION_FIELDS)?;
    let mut conn = state.connection().await?;
    let mut page = connections::list(&mut conn, &state.sealer, namespace, &query).await?;
    page.items = page
        .items
        .into_iter()
        .map(|connection| shown_to(&caller, connection))
        .collect();
    Ok(Listed {
        key: "connections",
        page,
    })
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}`
pub(crate) async fn get(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Found<Connection>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let connection = path.connection_id.parse().ok();
    let name = ConnectionName {
        namespace,
        connection: connection.ok_or(ApiError::NotFound("connection"))?,
    };
    let mut conn = state.connection().await?;
    let found = connections::get(&mut conn, &state.sealer, name).await?;
    let connection = found.ok_or(ApiError::NotFound("connection"))?;
    Ok(Found(shown_to(&caller, connection)))
}

/// Header values are secrets: who may not write sees that they are there, and no more.
fn shown_to(caller: &Caller, mut connection: Connection) -> Connection {
    if !caller.key.role.may_write() {
        connection.headers = connection.headers.masked();
    }
    connection
}
