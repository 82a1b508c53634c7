//! `/v1/namespaces/{namespaceId}/managers/{managerId}/scans`

use actix_web::web::Path;
use domain::{
    Scan, Timestamp,
    audit::Entry,
    list::SCAN_FIELDS,
    scan::{PATHS, ScanChange},
};
use serde_json::Value;
use store::scans;

use super::{ManagerPath, ScanPath};
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

/// Stands for all Managers of the Namespace (AIP-159).
const ANY: &str = "-";

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/scans`
///
/// Clients poll this. If there are Scans, one statement reads them and checks the account. It skips no rows, so it needs
/// no limit of time, and no transaction.
pub(crate) async fn list(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Listed<Scan>, ApiError> {
    // Page tokens are bound to the path as written. A token for a missing manager is of no use.
    let parent = format!("{}/{}/scans", path.namespace_id(), path.id());
    let list = query.list(&parent, SCAN_FIELDS);
    if let (Some(manager), Ok(list)) = (path.name().ok(), &list)
        && caller.is_in_scope(manager.namespace)
        && store::is_by_create_time(list)
    {
        caller.reserve_page().await?;
        let mut conn = caller.connection().await?;
        let page = scans::list_of_account(&mut conn, caller.key.account, manager, list).await?;
        if !page.items.is_empty() {
            return Ok(Listed { key: "scans", page });
        }
    }
    // Without Scans, invalid parameters are still reported in the usual order.
    let namespace = caller.readable(path.namespace_id()).await?;
    let page = if path.id() == ANY {
        let list = &list?;
        pages::page(
            &caller,
            list,
            async move |conn| scans::cost_of_all(conn, namespace, list).await,
            async move |conn| scans::list_all(conn, namespace, list).await,
        )
        .await?
    } else {
        let manager = path.name()?;
        let list = &Parent::Manager(manager).before(&caller, list).await?;
        pages::page_of(
            &caller,
            Parent::Manager(manager),
            list,
            async move |conn| scans::cost(conn, manager, list).await,
            async move |conn| scans::list(conn, manager, list).await,
        )
        .await?
    };
    Ok(Listed { key: "scans", page })
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<ScanPath>,
    query: Parameters,
) -> Result<Found<Scan>, ApiError> {
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let mut conn = caller.connection().await?;
    let found = scans::get(&mut conn, name).await?;
    let found = found.ok_or(ApiError::NotFound("scan"))?;
    query.none()?;
    Ok(Found(found))
}

/// `PATCH /v1/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}`
pub(crate) async fn update(
    caller: Caller,
    path: Path<ScanPath>,
    body: RawJson,
) -> Result<Found<Scan>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read().await?;
    let name = path.name()?;
    caller
        .write(async move |conn| {
            let current = scans::lock(conn, name).await?;
            let current = current.ok_or(ApiError::NotFound("scan"))?;
            // Fields are independent and replaced whole, so the stored values are not needed.
            let (change, fields) = body.patch(PATHS, |patch| {
                ScanChange::parse(&patch.apply(&Value::Null, PATHS))
            })?;
            let updated = scans::update(conn, current, &change, Timestamp::now()).await?;
            Ok(Outcome::of(
                Found(updated),
                Entry::update(namespace, name, fields),
            ))
        })
        .await
}
