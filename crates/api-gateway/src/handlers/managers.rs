//! `/v1/namespaces/{namespaceId}/managers`

use actix_web::web::Path;
use domain::{
    ConnectionName, Id, Issue, Issues, Manager, NamespaceName, Timestamp,
    audit::{Action, Entry},
    list::MANAGER_FIELDS,
    manager::{CreateManager, ManagerChange, Origin, PATHS},
};
use events::{ManagerChanged, ManagerSubmitted};
use store::{
    AsyncPgConnection, connections,
    managers::{self, Updated},
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
    parent::Parent,
    query::Parameters,
    quotas::{creation, refused},
    transaction::Outcome,
};

/// Generation of a new Manager. The compiler drops events whose generation is not the Manager's current one.
const FIRST_GENERATION: i64 = 1;

/// `POST /v1/namespaces/{namespaceId}/managers`
///
/// The Manager is returned in state `PENDING_APPLY`; the compiler takes it from there.
pub(crate) async fn create(
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Made<Manager>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let once = body.once();
    let mut named = Vec::new();
    let feeds = caller.state.feeds().of_account(&caller.key.account_name);
    let checked = body.read().await?.parse(|json| {
        let rules = caller.state.manager_rules(&feeds);
        let (draft, found) = CreateManager::parse_with_notices(json, rules);
        named = found;
        draft
    });
    let draft = match checked {
        Ok(draft) => draft,
        Err(mut issues) => {
            issues.extend(missing(&mut *caller.connection().await?, namespace, &named).await?);
            return Err(issues.into());
        }
    };
    let (account, defaults) = (caller.key.account, caller.state.quotas);
    caller
        .create(&once, async move |conn| {
            creation(conn, account, Resource::Manager, &defaults).await?;
            missing(conn, namespace, &named).await?.or(())?;
            let manager = managers::insert(conn, namespace, &draft, &defaults)
                .await
                .map_err(|error| refused(content_field(Some(&draft.origin)), error))?;
            let event = ManagerSubmitted {
                name: manager.name,
                generation: FIRST_GENERATION,
            };
            let entry = Entry::of(Action::Create, namespace, manager.name);
            Ok(Outcome::of(manager, Some(entry)).with_events([event]))
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
    let namespace = caller.readable(path.namespace_id()).await?;
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
    caller.readable(path.namespace_id()).await?;
    let name = path.name()?;
    let mut conn = caller.connection().await?;
    let found = managers::get(&mut conn, name).await?;
    let found = found.ok_or(ApiError::NotFound("manager"))?;
    query.none()?;
    Ok(Found(found))
}

/// `PATCH /v1/namespaces/{namespaceId}/managers/{managerId}`
pub(crate) async fn update(
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Manager>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read().await?;
    let name = path.name()?;
    let state = &caller.state;
    let feeds = state.feeds().of_account(&caller.key.account_name);
    let (account, defaults) = (caller.key.account, state.quotas);
    let test_mode = caller.test_mode;
    caller
        .write(async move |conn| {
            // The account is locked before the Manager's row, as everywhere.
            quotas::lock(conn, account, &defaults).await?;
            let current = managers::lock(conn, name).await?;
            let current = current.ok_or(ApiError::NotFound("manager"))?;
            let mut named = Vec::new();
            let checked = body.patch(PATHS, |patch| {
                let rules = state.manager_rules(&feeds);
                let (change, found) = ManagerChange::parse(patch, &current, rules);
                named = found;
                change
            });
            let absent = missing(conn, namespace, &named).await?;
            let (change, fields) = match checked {
                Ok(checked) => absent.or(checked)?,
                Err(mut issues) => {
                    issues.extend(absent);
                    return Err(issues.into());
                }
            };
            let resubmits = change.resubmits();
            let now = Timestamp::now();
            let updated = if test_mode {
                managers::update_in_test_mode(conn, current, &change, &defaults, now).await
            } else {
                managers::update(conn, current, &change, &defaults, now).await
            };
            let updated =
                updated.map_err(|error| refused(content_field(change.origin.as_ref()), error))?;
            let submitted = resubmits.then(|| submitted(&updated));
            let changed =
                { updated.plan_version }.map(|plan_version| ManagerChanged { name, plan_version });
            let entry = Entry::update(namespace, name, fields);
            let outcome = Outcome::of(Found(updated.manager), entry);
            Ok(outcome.with_events(submitted).with_events(changed))
        })
        .await
}

/// `POST /v1/namespaces/{namespaceId}/managers/{managerId}:apply`
pub(crate) async fn apply(
    caller: Caller,
    path: Path<ManagerPath>,
    body: RawJson,
) -> Result<Found<Manager>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let body = body.read_optional().await?;
    let name = path.name()?;
    caller
        .write(async move |conn| {
            let found = managers::lock(conn, name).await?;
            found.ok_or(ApiError::NotFound("manager"))?;
            body.nothing()?;
            let updated = managers::resubmit(conn, name, Timestamp::now()).await?;
            let event = submitted(&updated);
            let entry = Entry::of(Action::Apply, namespace, name);
            Ok(Outcome::of(Found(updated.manager), Some(entry)).with_events([event]))
        })
        .await
}

/// `DELETE /v1/namespaces/{namespaceId}/managers/{managerId}`
///
/// Its Scans are purged in the background.
pub(crate) async fn delete(
    caller: Caller,
    path: Path<ManagerPath>,
    query: Parameters,
) -> Result<Deleted, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    let name = path.name()?;
    let parameters = query.none();
    Parent::Manager(name).before(&caller, parameters).await?;
    let test_mode = caller.test_mode;
    caller
        .write(async move |conn| {
            let mut event = None;
            if test_mode {
                Parent::Manager(name).check(conn).await?;
            } else {
                let plan_version = managers::delete(conn, name, Timestamp::now()).await?;
                let plan_version = plan_version.ok_or(ApiError::NotFound("manager"))?;
                event = Some(ManagerChanged { name, plan_version });
            }
            let entry = Entry::of(Action::Delete, namespace, name);
            Ok(Outcome::of(Deleted, Some(entry)).with_events(event))
        })
        .await
}

fn submitted(updated: &Updated) -> ManagerSubmitted {
    ManagerSubmitted {
        name: updated.manager.name,
        generation: updated.generation,
    }
}
