//! `/v1/namespaces/{namespaceId}/managers`

use actix_web::web::{Data, Path};
use domain::{
    ConnectionName, Id, Issue, Issues, Manager, ManagerName, NamespaceName, Timestamp,
    audit::{Action, Entry},
    list::MANAGER_FIELDS,
    manager::{CreateManager, Editable, ManagerChange, Origin, PATHS},
};
use events::{ManagerChanged, ManagerSubmitted};
use store::{
    AsyncPgConnection, connections,
    managers::{self, Updated},
    outbox,
    quotas::{self, Resource},
};

use super::{ManagerPath, NamespacePath};
use crate::{
    ApiError,
    answer::{Deleted, Found, Listed},
    authenticate::Caller,
    body::RawJson,
    idempotency::Made,
    pages,
    query::Parameters,
    quotas::{creation, refused},
    state::AppState,
    transaction::Outcome,
};

/// Generation of a new Manager. The compiler drops events whose generation is not the Manager's current one.
const FIRST_GENERATION: i64 = 1;

/// Placeholder name for validation.
const SPECIMEN: ManagerName = ManagerName {
    namespace: Id::NIL,
    manager: Id::NIL,
};

/// `POST /v1/namespaces/{namespaceId}/managers`
///
/// The Manager is returned in state `PENDING_APPLY`; the compiler takes it from there.
pub(crate) async fn create(
    state: Data<AppState>,
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Made<Manager>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    let once = body.once();
    let mut named = Vec::new();
    let feeds = state.feeds().of_account(&caller.key.account_name);
    let checked = body
        .check(|json| {
            let rules = state.manager_rules(&feeds);
            let (draft, found) = CreateManager::parse_with_notices(json, rules);
            named = found;
            draft
        })
        .await?;
    let draft = match checked {
        Ok(draft) => draft,
        Err(mut issues) => {
            issues.extend(missing(&mut *caller.connection().await?, namespace, &named).await?);
            return Err(issues.into());
        }
    };
    let (account, defaults) = (caller.key.account, state.quotas);
    state
        .create(&caller, &once, async move |conn| {
            creation(conn, account, Resource::Manager, &defaults).await?;
            missing(conn, namespace, &named).await?.or(())?;
            let manager = managers::insert(conn, namespace, &draft, &defaults)
                .await
                .map_err(|error| refused(content_field(Some(&draft.origin)), error))?;
            let event = ManagerSubmitted {
                name: manager.name,
                generation: FIRST_GENERATION,
            };
            outbox::enqueue(conn, &event).await?;
            let entry = Entry::of(Action::Create, namespace, manager.name);
            Ok(Outcome(manager, Some(entry)))
        })
        .await
}

/// Field on which a quota of bytes is reported.
fn content_field(origin: Option<&Origin>) -> &'static str {
    match origin {
        Some(Origin::Instructions(_)) => "instructions",
        _ => "mutes",
    }
}

/// Returns an issue for each Connection that is not in this Namespace. Within a transaction, the others are locked
/// until its end.
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
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Listed<Manager>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    let parent = format!("{}/managers", NamespaceName { namespace });
    let query = &query.list(&parent, MANAGER_FIELDS)?;
    let page = pages::page(
        &caller,
        query,
        async move |conn| managers::cost(conn, namespace, query).await,
        async move |conn| managers::list(conn, namespace, query).await,
    )
    .await?;
    Ok(Listed {
        key: "managers",
        page,
    })
}

/// `GET /v1/namespaces/{namespaceId}/managers/{managerId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Found<Manager>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let mut conn = caller.connection().await?;
    let found = managers::get(&mut conn, name).await?;
    found.map(Found).ok_or(ApiError::NotFound("manager"))
}

/// `PATCH /v1/namespaces/{namespaceId}/managers/{managerId}`
pub(crate) async fn update(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Manager>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    let name = path.name(namespace);
    let lately = match &name {
        Ok(name) => managers::lock(&mut *caller.connection().await?, *name).await?,
        Err(_) => None,
    };
    let lately = lately.unwrap_or_else(|| Editable::specimen(SPECIMEN));
    let feeds = state.feeds().of_account(&caller.key.account_name);
    let rules = state.manager_rules(&feeds);
    let mut named = Vec::new();
    let checked = body
        .patch(PATHS, |patch| {
            let (change, found) = ManagerChange::parse(patch, &lately, rules);
            named = found;
            change.map(drop)
        })
        .await?;
    let patch = match checked {
        Ok(patch) => patch,
        Err(mut issues) => {
            issues.extend(missing(&mut *caller.connection().await?, namespace, &named).await?);
            return Err(issues.into());
        }
    };
    // Missing Connections are reported before a missing Manager.
    let (name, known) = match name {
        Ok(name) => (name, true),
        Err(_) => (SPECIMEN, false),
    };
    let addresses = &state;
    let (account, defaults) = (caller.key.account, state.quotas);
    let test_mode = caller.test_mode;
    state
        .write(&caller, async move |conn| {
            // The account is locked before the Manager's row, as everywhere.
            quotas::lock(conn, account, &defaults).await?;
            let current = if known {
                managers::lock(conn, name).await?
            } else {
                None
            };
            let Some(current) = current else {
                missing(conn, namespace, &named).await?.or(())?;
                return Err(ApiError::NotFound("manager"));
            };
            let rules = addresses.manager_rules(&feeds);
            let (change, named) = ManagerChange::parse(&patch, &current, rules);
            let change = change?;
            missing(conn, namespace, &named).await?.or(())?;
            let resubmits = change.resubmits();
            let now = Timestamp::now();
            let updated = if test_mode {
                managers::update_in_test_mode(conn, current, &change, &defaults, now).await
            } else {
                managers::update(conn, current, &change, &defaults, now).await
            };
            let updated =
                updated.map_err(|error| refused(content_field(change.origin.as_ref()), error))?;
            if resubmits {
                submitted(conn, &updated).await?;
            }
            if let Some(plan_version) = updated.plan_version {
                outbox::enqueue(conn, &ManagerChanged { name, plan_version }).await?;
            }
            let entry = Entry::update(namespace, name, patch.named(PATHS));
            Ok(Outcome(Found(updated.manager), entry))
        })
        .await
}

/// `POST /v1/namespaces/{namespaceId}/managers/{managerId}:apply`
pub(crate) async fn apply(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Manager>, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    body.nothing().await?;
    let name = path.name(namespace)?;
    state
        .write(&caller, async move |conn| {
            let found = managers::lock(conn, name).await?;
            found.ok_or(ApiError::NotFound("manager"))?;
            let updated = managers::resubmit(conn, name, Timestamp::now()).await?;
            submitted(conn, &updated).await?;
            let entry = Entry::of(Action::Apply, namespace, name);
            Ok(Outcome(Found(updated.manager), Some(entry)))
        })
        .await
}

/// `DELETE /v1/namespaces/{namespaceId}/managers/{managerId}`
///
/// Its Scans are purged in the background.
pub(crate) async fn delete(
    state: Data<AppState>,
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Deleted, ApiError> {
    let namespace = caller.writable(&path.namespace_id).await?;
    query.none()?;
    let name = path.name(namespace)?;
    let test_mode = caller.test_mode;
    state
        .write(&caller, async move |conn| {
            if test_mode {
                let exists = managers::exists(conn, name).await?;
                exists.then_some(()).ok_or(ApiError::NotFound("manager"))?;
            } else {
                let plan_version = managers::delete(conn, name, Timestamp::now()).await?;
                let plan_version = plan_version.ok_or(ApiError::NotFound("manager"))?;
                outbox::enqueue(conn, &ManagerChanged { name, plan_version }).await?;
            }
            let entry = Entry::of(Action::Delete, namespace, name);
            Ok(Outcome(Deleted, Some(entry)))
        })
        .await
}

/// Notifies the compiler.
async fn submitted(conn: &mut AsyncPgConnection, updated: &Updated) -> Result<(), ApiError> {
    let event = ManagerSubmitted {
        name: updated.manager.name,
        generation: updated.generation,
    };
    outbox::enqueue(conn, &event).await?;
    Ok(())
}

impl ManagerPath {
    /// Returns the Manager's name from the path, below a Namespace that the caller may use.
    pub(super) fn name(&self, namespace: Id) -> Result<ManagerName, ApiError> {
        let manager = self.manager_id.parse().ok();
        Ok(ManagerName {
            namespace,
            manager: manager.ok_or(ApiError::NotFound("manager"))?,
        })
    }

    /// Returns the Manager's name from the path if it is valid, without checking permissions.
    pub(super) fn well_formed(&self) -> Option<ManagerName> {
        Some(ManagerName {
            namespace: self.namespace_id.parse().ok()?,
            manager: self.manager_id.parse().ok()?,
        })
    }
}
