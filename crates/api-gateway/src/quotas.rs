//! `quota_exceeded`: what an account cannot have more of.

use domain::{Id, Issue, Issues};
use store::{
    AsyncPgConnection,
    quotas::{self, Exceeded, Limits, Resource},
};

use crate::ApiError;

/// Refuses one more of `resource`. Call first in the transaction that creates it.
pub(crate) async fn creation(
    conn: &mut AsyncPgConnection,
    account: Id,
    resource: Resource,
    defaults: &Limits,
) -> Result<(), ApiError> {
    match quotas::refuse_creation(conn, account, resource, defaults).await? {
        Some(exceeded) => Err(refusal(exceeded.quota, &exceeded)),
        None => Ok(()),
    }
}

/// The error on `field` that tells the quota.
pub(crate) fn refusal(field: &str, exceeded: &Exceeded) -> ApiError {
    let mut issues = Issues::default();
    issues.add_with_hint(field, Issue::QuotaExceeded, exceeded.to_string());
    issues.into()
}
