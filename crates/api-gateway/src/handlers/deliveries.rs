//! `/v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries`

use actix_web::web::Path;
use domain::{
    Delivery, DeliveryWithAttempts, Issue, Issues,
    audit::{Action, Entry},
    list::DELIVERY_FIELDS,
};
use store::deliveries;

use super::{ConnectionPath, DeliveryPath};
use crate::{
    ApiError,
    answer::{Found, Listed},
    authenticate::Caller,
    body::RawJson,
    pages,
    parent::Parent,
    query::Parameters,
    transaction::Outcome,
};

/// Stands for all Connections of the Namespace (AIP-159).
const ANY: &str = "-";

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries`
pub(crate) async fn list(
    caller: Caller,
    path: Path<ConnectionPath>,
    query: Parameters,
) -> Result<Listed<Delivery>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    // Page tokens are bound to the path as written. A token for a missing connection is of no use.
    let parent = format!("{namespace}/{}/deliveries", path.id());
    let query = query.list(&parent, DELIVERY_FIELDS);
    let page = if path.id() == ANY {
        let query = &query?;
        pages::estimated_page(
            &caller,
            async move |conn| deliveries::cost_of_all(conn, namespace, query).await,
            async move |conn| deliveries::list_all(conn, namespace, query).await,
        )
        .await?
    } else {
        let connection = path.name()?;
        let query = &Parent::Connection(connection)
            .before(&caller, query)
            .await?;
        pages::page_of(
            &caller,
            Parent::Connection(connection),
            query,
            async move |conn| deliveries::cost(conn, connection, query).await,
            async move |conn| deliveries::list(conn, connection, query).await,
        )
        .await?
    };
    Ok(Listed {
        key: "deliveries",
        page,
    })
}

/// `GET /v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<DeliveryPath>,
    query: Parameters,
) -> Result<Found<DeliveryWithAttempts>, ApiError> {
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let mut conn = caller.connection().await?;
    let found = deliveries::get_with_attempts(&mut conn, name).await?;
    let found = found.ok_or(ApiError::NotFound("delivery"))?;
    query.none()?;
    Ok(Found(found))
}

/// `POST /v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}:retry`
///
/// A dispatcher finds it within a second, and sends it even if the circuit breaker is open.
pub(crate) async fn retry(
    caller: Caller,
    path: Path<DeliveryPath>,
    body: RawJson,
) -> Result<Found<Delivery>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read_optional().await?;
    let name = path.name()?;
    caller
        .write(async move |conn| {
            let parent = Parent::Connection(name.connection_name());
            parent.check(conn).await?;
            let reopened = deliveries::reopen(conn, name).await?;
            if reopened.is_none() && deliveries::get(conn, name).await?.is_none() {
                return Err(ApiError::NotFound("delivery"));
            }
            body.nothing()?;
            if let Some(delivery) = reopened {
                let entry = Entry::of(Action::Retry, namespace, name);
                return Ok(Outcome::of(Found(delivery), Some(entry)));
            }
            let hint = "its scan is no longer kept, so there is nothing to send";
            Err(Issues::one_with_hint("scan", Issue::NotFound, hint).into())
        })
        .await
}
