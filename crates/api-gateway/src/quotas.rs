//! `quota_exceeded`: refuses resources beyond an account's quotas.

use domain::Id;
use store::{
    AsyncPgConnection, Error,
    quotas::{self, Limits, Resource},
};

use crate::{ApiError, error::refusal};

/// Returns an error if the account may not create another `resource`. Call first in the transaction that creates
/// it.
pub(crate) async fn creation(
    conn: &mut AsyncPgConnection,
    account: Id,
    resource: Resource,
    defaults: &Limits,
) -> Result<(), ApiError> {
    match quotas::check_creation(conn, account, resource, defaults).await? {
        Some(exceeded) => Err(refusal(exceeded.quota, &exceeded)),
        None => Ok(()),
    }
}

/// Same as [`ApiError::from`], but an exceeded quota is reported on `enable`, because only a Manager that is enabled
/// watches more feeds than before, or on `content`, the field with the instructions or mutes.
pub(crate) fn refused(content: &str, error: Error) -> ApiError {
    match error {
        Error::QuotaExceeded(exceeded) if ["feeds", "newFeeds"].contains(&exceeded.quota) => {
            refusal("enable", &exceeded)
        }
        Error::QuotaExceeded(exceeded) => refusal(content, &exceeded),
        error => error.into(),
    }
}
