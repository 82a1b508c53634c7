//! `/v1/namespaces`

use actix_web::web::{Data, Path};
use domain::{Namespace, list::NAMESPACE_FIELDS, namespace::CreateNamespace};
use store::namespaces;

use super::NamespacePath;
use crate::{
    ApiError,
    answer::{Created, Found, Listed},
    authenticate::Caller,
    body::RawJson,
    query::Parameters,
    state::AppState,
};

/// `POST /v1/namespaces`
pub(crate) async fn create(
    state: Data<AppState>,
    caller: Caller,
    body: RawJson,
) -> Result<Created<Namespace>, ApiError> {
    let account = caller.may_create_namespaces()?;
    let draft = body.parse(CreateNamespace::parse).await?;
    let namespace = state
        .write(&caller, async move |conn| {
            Ok(namespaces::insert(conn, account, &draft).await?)
        })
        .await?;
    Ok(Created(namespace))
}

/// `GET /v1/namespaces`
///
/// Those of the caller's account, or of these the ones that its key is narrowed to.
pub(crate) async fn list(
    state: Data<AppState>,
    caller: Caller,
    query: Parameters,
) -> Result<Listed<Namespace>, ApiError> {
    let key = &caller.key;
    let query = query.list(&format!("accounts/{}", key.account), NAMESPACE_FIELDS)?;
    let narrowed = key.namespaces.as_ref().map(|_| key.id);
    let mut conn = state.connection().await?;
    Ok(Listed {
        key: "namespaces",
        page: namespaces::list(&mut conn, key.account, narrowed, &query).await?,
    })
}

/// `GET /v1/namespaces/{namespaceId}`
pub(crate) async fn get(
    state: Data<AppState>,
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Found<Namespace>, ApiError> {
    let namespace = caller.readable(&path.namespace_id).await?;
    query.none()?;
    let mut conn = state.connection().await?;
    let found = namespaces::get(&mut conn, caller.key.account, namespace).await?;
    found.map(Found).ok_or(ApiError::NotFound("namespace"))
}
