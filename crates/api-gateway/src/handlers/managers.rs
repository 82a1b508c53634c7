//! `/v1/namespaces/{namespaceId}/managers`

use actix_web::web::{Data, Path};
use domain::{
    ConnectionName, Id, Issue, Issues, Manager, ManagerName, NamespaceName, list::MANAGER_FIELDS,
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
    let mut named = Vec::new();
    let checked = body
        .check(|json| {
            let (draft, found) = CreateManager::parse_with_notices(json, state.manager_rules());
            named = found;
            draft
        })
        .await?;
    let draft = match checked {
        Ok(draft) => draft,
        Err(mut issues) => {
            issues.extend(missing(&mut *state.connection().await?, namespace, &named).await?);
            return Err(issues.into());
        }
    };
    let manager = state
        .write(&caller, async move |conn| {
            missing(conn, namespace, &named).await?.or(())?;
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

/// An issue for each Connection that is not of this Namespace. The others then stay until the end of the
/// transaction, where there is one.
async fn missing(
    conn: &mut AsyncPgConnection,
    namespace: Id,
    named: &[(usize, ConnectionName)],
) -> Result<Issues, ApiError> {
    let mut issues = Issues::default();
    if named.is_empty() {
        return Ok(issues);
    }
    let ids: Vec<Id> = named.iter().map(|(_, name)| name.connection).collect();
    let existing = connections::lock_existing(conn, namespace, &ids).await?;
    for (at, name) in named {
        if name.namespace != namespace || !existing.contains(&name.connection) {
            issues.add(format!("notices[{at}].connection"), Issue::NotFound);
        }
    }
    Ok(issues)
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
