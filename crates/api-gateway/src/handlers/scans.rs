//! `/v1/namespaces/{namespaceId}/managers/{managerId}/scans`

use actix_web::web::{Data, Path};
use domain::{
    Id, Scan, ScanName, Timestamp,
    audit::Entry,
    list::SCAN_FIELDS,
    patch::Patch,
    scan::{PATHS, ScanChange},
};
use serde_json::Value;
use store::{managers, scans};

use super::{ManagerPath, ScanPath};
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

/// Stands for all Managers of the Namespace (AIP-159).
const ANY: &str = "-";

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/scans`
///
/// Clients poll this. If there are Scans, one statement reads them and checks the account.
pub(crate) async fn list(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Listed<Scan>, ApiError> {
    // Page tokens are bound to the path as written. A token for a missing manager is of no use.
    let parent = format!("{}/{}/scans", path.namespace_id, path.manager_id);
    let list = query.list(&parent, SCAN_FIELDS);
    if let (Some(manager), Ok(list)) = (path.well_formed(), &list)
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
    let namespace = caller.readable(&path.namespace_id).await?;
    let list = &list?;
    let page = if path.manager_id == ANY {
        pages::page(
            &caller,
            list,
            async move |conn| scans::cost_of_all(conn, namespace, list).await,
            async move |conn| scans::list_all(conn, namespace, list).await,
        )
        .await?
    } else {
        let manager = path.name(namespace)?;
        let page = pages::page(
            &caller,
            list,
            async move |conn| scans::cost(conn, manager, list).await,
            async move |conn| scans::list(conn, manager, list).await,
        )
        .await?;
        if page.items.is_empty()
            && !managers::exists(&mut *caller.connection().await?, manager).await?
        {
            return Err(ApiError::NotFound("manager"));
        }
        page
    };
    Ok(Listed { key: "scans", page })
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<ScanPath>,
    query: Parameters,
) -> Result<Found<Scan>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let mut conn = caller.connection().await?;
    let found = scans::get(&mut conn, name).await?;
    found.map(Found).ok_or(ApiError::NotFound("scan"))
}

/// `PATCH /v1/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}`
pub(crate) async fn update(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ScanPath>,
    body: RawJson,
) -> Result<Found<Scan>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    // Fields are independent and replaced whole, so the stored values are not needed for validation.
    let change = |patch: &Patch| ScanChange::parse(&patch.apply(&Value::Null, PATHS));
    let patch = body.patch(PATHS, |patch| change(patch).map(drop)).await??;
    let (change, fields) = (change(&patch)?, patch.named(PATHS));
    let name = path.name(namespace)?;
    state
        .write(&caller, async move |conn| {
            let current = scans::lock(conn, name).await?;
            let current = current.ok_or(ApiError::NotFound("scan"))?;
            let updated = scans::update(conn, current, &change, Timestamp::now()).await?;
            Ok(Outcome(
                Found(updated),
                Entry::update(namespace, name, fields),
            ))
        })
        .await
}

impl ScanPath {
    fn name(&self, namespace: Id) -> Result<ScanName, ApiError> {
        let manager = self.manager_id.parse().ok();
        let scan = self.scan_id.parse().ok();
        Ok(ScanName {
            namespace,
            manager: manager.ok_or(ApiError::NotFound("manager"))?,
            scan: scan.ok_or(ApiError::NotFound("scan"))?,
        })
    }
}
