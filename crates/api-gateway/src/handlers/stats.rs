//! `…/stats`: statistics over time of a Namespace, a Manager, or a Connection.
//!
//! Needs two look-ups by primary key in addition to the Namespace's, and one more for feeds, for any number of
//! points.

use actix_web::web::Path;
use domain::{ConnectionName, Timestamp, stats::Stats};
use store::{connections, managers, stats};

use super::{ConnectionPath, ManagerPath, NamespacePath};
use crate::{ApiError, answer::Found, authenticate::Caller, query::Parameters};

/// `GET /v1/namespaces/{namespaceId}/stats`
pub(crate) async fn of_namespace(
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Found<Stats>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let query = query.stats(Timestamp::now())?;
    let mut conn = caller.connection().await?;
    Ok(Found(
        stats::of_namespace(&mut conn, namespace, query).await?,
    ))
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/stats`
pub(crate) async fn of_manager(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Found<Stats>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let query = query.stats(Timestamp::now())?;
    let name = path.name(namespace)?;
    let mut conn = caller.connection().await?;
    if !managers::exists(&mut conn, name).await? {
        return Err(ApiError::NotFound("manager"));
    }
    Ok(Found(stats::of_manager(&mut conn, name, query).await?))
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/stats`
pub(crate) async fn of_connection(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Found<Stats>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let query = query.stats(Timestamp::now())?;
    let connection = path.connection_id.parse().ok();
    let name = ConnectionName {
        namespace,
        connection: connection.ok_or(ApiError::NotFound("connection"))?,
    };
    let mut conn = caller.connection().await?;
    if !connections::exists(&mut conn, name).await? {
        return Err(ApiError::NotFound("connection"));
    }
    Ok(Found(stats::of_connection(&mut conn, name, query).await?))
}
