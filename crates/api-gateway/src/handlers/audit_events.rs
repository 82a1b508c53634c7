//! `/v1/namespaces/{namespaceId}/auditEvents`

use actix_web::web::Path;
use domain::{AuditEvent, list::AUDIT_EVENT_FIELDS};
use store::audit;

use super::NamespacePath;
use crate::{ApiError, answer::Listed, authenticate::Caller, pages, query::Parameters};

/// `GET /v1/namespaces/{namespaceId}/auditEvents`
///
/// `-` lists the events of the whole account: of all Namespaces, including deleted ones, and of keys and quotas.
pub(crate) async fn list(
    caller: Caller,
    path: Path<NamespacePath>,
    query: Parameters,
) -> Result<Listed<AuditEvent>, ApiError> {
    let scope = caller.auditable(path.namespace_id()).await?;
    let parent = format!("{}/{}/auditEvents", caller.key.account, path.namespace_id());
    let query = &query.list(&parent, AUDIT_EVENT_FIELDS)?;
    let page = pages::page(
        &caller,
        query,
        async move |conn| audit::cost(conn, scope, query).await,
        async move |conn| audit::list(conn, scope, query).await,
    )
    .await?;
    Ok(Listed {
        key: "auditEvents",
        page,
    })
}
