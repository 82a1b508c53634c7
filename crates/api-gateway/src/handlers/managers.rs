//! `/v1/namespaces/{namespaceId}/managers`

use actix_web::web::{Data, Path};
use domain::{
    Id, Issue, Issues, Manager, ManagerName, NamespaceName, list::MANAGER_FIELDS,
    manager::CreateManager,
};
use events::ManagerSubmitted;
use store::{AsyncPgConnection, connections, managers, outbox};

use super::{ManagerPath, NamespacePath};
use crate::{
    ApiError,
    answer::{Created, Found, Listed},
    authenticate::Caller,
    body::RawJson,
    query::Parameters,
    state::AppState,
};

/// A new Manager's; the compiler drops events of others.
const FIRST_GENERATION: i64 = 1;

/// `POST /v1/namespaces/{namespaceId}/managers`
///
/// The Manager is returned in state `PENDING_APPLY`; the compiler takes it from there.
pub(crate) async fn create(
    state: Data<AppState>,
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Created<Manager>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    let draft = body
        .parse(|json| CreateManager::parse(json, state.manager_rules()))
        .await?;
    let manager = state
        .write(&caller, async move |conn| {
            check_notices(conn, namespace, &draft).await?;
            let manager = managers::insert(conn, namespace, &draft).await?;
            let event = ManagerSubmitted {
                name: manager.name,
                generation: FIRST_GENERATION,
            };
            outbox::enqueue(conn, &event).await?;
            Ok(manager)
        })
        .await?;
    Ok(Created(manager))
}

/// Every notice must name a Connection of the same Namespace, which then stays until the end of the
/// transaction.
async fn check_notices(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    draft: &CreateManager,
) -> Result<(), ApiError> {
    if draft.notices.is_empty() {
        return Ok(());
    }
    let ids: Vec<Id> = draft.notices.iter().map(|name| name.connection).collect();
    let existing = connections::lock_existing(conn, namespace, &ids).await?;
    let mut issues = Issues::default();
    for (at, name) in draft.notices.iter().enumerate() {
        if name.namespace != namespace || !existing.contains(&name.connection) {
            issues.add(format!("notices[{at}].connection"), Issue::NotFound);
        }
    }
    Ok(issues.or(())?)
}

/// `GET /v1/namespaces/{namespaceId}/managers`
pub(crate) async fn list(
    state: Data<AppState>,
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Listed<Manager>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let parent = format!("{}/managers", NamespaceName { namespace });
    let query = query.list(&parent, MANAGER_FIELDS)?;
    let mut conn = state.connection().await?;
    Ok(Listed {
        key: "managers",
        page: managers::list(&mut conn, namespace, &query).await?,
    })
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}`
pub(crate) async fn get(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Found<Manager>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let mut conn = state.connection().await?;
    let found = managers::get(&mut conn, name).await?;
    found.map(Found).ok_or(ApiError::NotFound("manager"))
}

impl ManagerPath {
    /// The name in the path, below a Namespace that the caller may use.
    pub(super) fn name(&self, namespace: Id) -> Result<ManagerName, ApiError> {
        let manager = self.manager_id.parse().ok();
        Ok(ManagerName {
            namespace,
            manager: manager.ok_or(ApiError::NotFound("manager"))?,
        })
    }
}
