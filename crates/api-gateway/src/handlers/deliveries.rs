//! `/v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries`

use actix_web::web::{Data, Path};
use domain::{
    ConnectionName, Delivery, DeliveryName, DeliveryWithAttempts, Id, Issue, Issues,
    audit::{Action, Entry},
    list::DELIVERY_FIELDS,
};
use store::{connections, deliveries};

use super::{ConnectionPath, DeliveryPath};
use crate::{
    ApiError,
    answer::{Found, Listed},
    authenticate::Caller,
    body::RawJson,
    pages,
    query::Parameters,
    state::AppState,
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
    let namespace = caller.readable(&path.namespace_id).await?;
    // Page tokens are bound to the path as written. A token for a missing connection is of no use.
    let parent = format!("{namespace}/{}/deliveries", path.connection_id);
    let query = &query.list(&parent, DELIVERY_FIELDS)?;
    let page = if path.connection_id == ANY {
        pages::estimated_page(
            &caller,
            async move |conn| deliveries::cost_of_all(conn, namespace, query).await,
            async move |conn| deliveries::list_all(conn, namespace, query).await,
        )
        .await?
    } else {
        let connection = path.name(namespace)?;
        let page = pages::page(
            &caller,
            query,
            async move |conn| deliveries::cost(conn, connection, query).await,
            async move |conn| deliveries::list(conn, connection, query).await,
        )
        .await?;
        // Only an empty page leaves open whether the connection exists.
        if page.items.is_empty()
            && !connections::exists(&mut *caller.connection().await?, connection).await?
        {
            return Err(ApiError::NotFound("connection"));
        }
        page
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
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let mut conn = caller.connection().await?;
    let found = deliveries::get_with_attempts(&mut conn, name).await?;
    found.map(Found).ok_or(ApiError::NotFound("delivery"))
}

/// `POST /v1/namespaces/{namespaceId}/connections/{connectionId}/deliveries/{deliveryId}:retry`
///
/// A dispatcher finds it within a second, and sends it even if the circuit breaker is open.
pub(crate) async fn retry(
    state: Data<AppState>,
    caller: Caller,
    path: Path<DeliveryPath>,
    body: RawJson,
) -> Result<Found<Delivery>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    body.nothing().await?;
    let name = path.name(namespace)?;
    state
        .write(&caller, async move |conn| {
            if !connections::exists(conn, name.connection_name()).await? {
                return Err(ApiError::NotFound("connection"));
            }
            if let Some(delivery) = deliveries::reopen(conn, name).await? {
                let entry = Entry::of(Action::Retry, namespace, name);
                return Ok(Outcome(Found(delivery), Some(entry)));
            }
            if deliveries::get(conn, name).await?.is_none() {
                return Err(ApiError::NotFound("delivery"));
            }
            let mut issues = Issues::default();
            let hint = "its scan is no longer kept, so there is nothing to send";
            issues.add_with_hint("scan", Issue::NotFound, hint);
            Err(issues.into())
        })
        .await
}

impl ConnectionPath {
    pub(super) fn name(&self, namespace: Id) -> Result<ConnectionName, ApiError> {
        let connection = self.connection_id.parse().ok();
        Ok(ConnectionName {
            namespace,
            connection: connection.ok_or(ApiError::NotFound("connection"))?,
        })
    }
}

impl DeliveryPath {
    fn name(&self, namespace: Id) -> Result<DeliveryName, ApiError> {
        let connection = self.connection_id.parse().ok();
        let delivery = self.delivery_id.parse().ok();
        Ok(DeliveryName {
            namespace,
            connection: connection.ok_or(ApiError::NotFound("connection"))?,
            delivery: delivery.ok_or(ApiError::NotFound("delivery"))?,
        })
    }
}
