//! `/v1/namespaces`

use actix_web::web::Path;
use domain::{
    Issue, Issues, Namespace, NamespaceName, Timestamp,
    audit::{Action, Entry},
    list::NAMESPACE_FIELDS,
    namespace::{CreateNamespace, NamespaceChange, PATHS},
};
use events::ManagerChanged;
use serde_json::Value;
use store::{
    namespaces::{self, Deletion},
    quotas::{self, Resource},
};

use super::NamespacePath;
use crate::{
    ApiError,
    answer::{Deleted, Found, Listed},
    authenticate::Caller,
    body::RawJson,
    idempotency::Made,
    pages,
    query::Parameters,
    quotas::{creation, refused},
    transaction::Outcome,
};

/// `POST /v1/namespaces`
pub(crate) async fn create(caller: Caller, body: RawJson) -> Result<Made<Namespace>, ApiError> {
    let account = caller.may_create_namespaces()?;
    let once = body.once();
    let draft = body.read().await?.parse(CreateNamespace::parse)?;
    let defaults = caller.state.quotas;
    caller
        .create(&once, async move |conn| {
            creation(conn, account, Resource::Namespace, &defaults).await?;
            let made = namespaces::insert(conn, account, &draft, &defaults)
                .await
                .map_err(|error| refused("mutes", error))?;
            let entry = Entry::of(Action::Create, made.name.namespace, made.name);
            Ok(Outcome::of(made, Some(entry)))
        })
        .await
}

/// `GET /v1/namespaces`
///
/// Lists the Namespaces of the caller's account, or those that its key is restricted to.
pub(crate) async fn list(caller: Caller, query: Parameters) -> Result<Listed<Namespace>, ApiError> {
    let key = &caller.key;
    let query = &query.list(&format!("accounts/{}", key.account), NAMESPACE_FIELDS)?;
    let narrowed = key.namespaces.as_ref().map(|_| key.id);
    let account = key.account;
    let page = pages::page(
        &caller,
        query,
        async move |conn| namespaces::cost(conn, account, query).await,
        async move |conn| Ok(namespaces::list(conn, account, narrowed, query).await?),
    )
    .await?;
    Ok(Listed {
        key: "namespaces",
        page,
    })
}

/// `GET /v1/namespaces/{namespaceId}`
pub(crate) async fn get(
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Found<Namespace>, ApiError> {
    let namespace = caller.readable(path.namespace_id()).await?;
    query.none()?;
    let mut conn = caller.connection().await?;
    let found = namespaces::get(&mut conn, caller.key.account, namespace).await?;
    found.map(Found).ok_or(ApiError::NotFound("namespace"))
}

/// `PATCH /v1/namespaces/{namespaceId}`
pub(crate) async fn update(
    caller: Caller,
    path: Path<NamespacePath>,
    body: RawJson,
) -> Result<Found<Namespace>, ApiError> {
    let namespace = caller.writable(path.namespace_id()).await?;
    // No field depends on another one, so the stored values are not needed for validation.
    let (change, fields) = body.read().await?.patch(PATHS, |patch| {
        NamespaceChange::parse(&patch.apply(&Value::Null, PATHS))
    })?;
    let test_mode = caller.test_mode;
    let (account, defaults) = (caller.key.account, caller.state.quotas);
    caller
        .write(async move |conn| {
            quotas::lock(conn, account, &defaults).await?;
            let current = namespaces::lock(conn, namespace).await?;
            let current = current.ok_or(ApiError::NotFound("namespace"))?;
            let now = Timestamp::now();
            let updated = if test_mode {
                namespaces::update_in_test_mode(conn, current, &change, &defaults, now).await
            } else {
                namespaces::update(conn, current, &change, &defaults, now).await
            };
            let updated = updated.map_err(|error| refused("mutes", error))?;
            let entry = Entry::update(namespace, updated.name, fields);
            Ok(Outcome::of(Found(updated), entry))
        })
        .await
}

/// `DELETE /v1/namespaces/{namespaceId}`
///
/// Deletes the Namespace with its content; large content is purged in the background.
pub(crate) async fn delete(
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Deleted, ApiError> {
    let namespace = caller.deletable(path.namespace_id()).await?;
    let force = query.force()?;
    let test_mode = caller.test_mode;
    caller
        .write(async move |conn| {
            let deletion = if test_mode {
                namespaces::check_deletion(conn, namespace, force).await?
            } else {
                namespaces::delete(conn, namespace, force, Timestamp::now()).await?
            };
            match deletion {
                Deletion::NotFound => Err(ApiError::NotFound("namespace")),
                Deletion::Refused => Err(Issues::one("force", Issue::NotEmpty).into()),
                Deletion::Done(gone) => {
                    let changed = |(name, plan_version)| ManagerChanged { name, plan_version };
                    let changes = gone.into_iter().map(changed);
                    let name = NamespaceName { namespace };
                    let entry = Entry::of(Action::Delete, namespace, name);
                    Ok(Outcome::of(Deleted, Some(entry)).with_events(changes))
                }
            }
        })
        .await
}
