//! `/v1/namespaces/{namespaceId}/managers/{managerId}/scans`

use actix_web::web::{Data, Path};
use domain::{
    Id, Scan, ScanName, Timestamp,
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
    query::Parameters,
    state::AppState,
};

/// In the place of an id: all of them (AIP-159).
const ANY: &str = "-";

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/scans`
///
/// What clients poll: one statement where there are Scans, whose rows tell the account too.
pub(crate) async fn list(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Listed<Scan>, ApiError> {
    // Page tokens are bound to the path as it stands; one of a manager that is not there is of no use.
    let parent = format!("{}/{}/scans", path.namespace_id, path.manager_id);
    let list = query.list(&parent, SCAN_FIELDS);
    if let (Some(manager), Ok(list)) = (path.well_formed(), &list) {
        let mut conn = state.connection().await?;
        let (page, account) = scans::list_and_account(&mut conn, manager, list).await?;
        if let Some(account) = account {
            caller.may_read(manager.namespace, account)?;
            return Ok(Listed { key: "scans", page });
        }
    }
    // No Scans: whatever is not as it should be is told in its order.
    let namespace = caller.readable(&path.namespace_id).await?;
    let list = list?;
    let mut conn = state.connection().await?;
    let page = if path.manager_id == ANY {
        scans::list_all(&mut conn, namespace, &list).await?
    } else {
        let manager = path.name(namespace)?;
        let page = scans::list(&mut conn, manager, &list).await?;
        if page.items.is_empty() && !managers::exists(&mut conn, manager).await? {
            return Err(ApiError::NotFound("manager"));
        }
        page
    };
    Ok(Listed { key: "scans", page })
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}/scans/{scanId}`
pub(crate) async fn get(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ScanPath>,
    query: Parameters,
) -> Result<Found<Scan>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let mut conn = state.connection().await?;
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
    // All fields are plain or replaced whole: what they were makes no difference.
    let change = |patch: &Patch| ScanChange::parse(&patch.apply(&Value::Null, PATHS));
    let change = change(&body.patch(PATHS, |patch| change(patch).map(drop)).await??)?;
    let name = path.name(namespace)?;
    state
        .write(&caller, async move |conn| {
            let current = scans::lock(conn, name).await?;
            let current = current.ok_or(ApiError::NotFound("scan"))?;
            Ok(Found(
                scans::update(conn, current, &change, Timestamp::now()).await?,
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
