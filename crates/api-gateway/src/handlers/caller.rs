//! `/v1/caller`: what the key of the request may do.

use domain::{NamespaceName, Timestamp};
use serde::Serialize;
use store::quotas::{self, Usage};

use crate::{ApiError, answer::Found, authenticate::Caller, pages, query::Parameters};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Description {
    account: String,
    role: &'static str,
    /// Absent if the key covers the whole account.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespaces: Option<Vec<NamespaceName>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expire_time: Option<Timestamp>,
    /// The person who signed in; absent if the key is no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    person: Option<String>,
    rate_limit_per_minute: u32,
    account_rate_limit_per_minute: u32,
    quotas: Quotas,
}

/// Quotas of the whole account, even for a restricted key.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Quotas {
    namespaces: Quota,
    managers: Quota,
    connections: Quota,
    feeds: Quota,
    content_bytes: Quota,
    scans_per_day: Quota,
}

#[derive(Serialize)]
struct Quota {
    limit: u32,
    used: u32,
}

impl From<Usage> for Quotas {
    fn from(Usage { limits, used, .. }: Usage) -> Self {
        let quota = |limit, used| Quota { limit, used };
        Self {
            namespaces: quota(limits.namespaces, used.namespaces),
            managers: quota(limits.managers, used.managers),
            connections: quota(limits.connections, used.connections),
            feeds: quota(limits.feeds, used.feeds),
            content_bytes: quota(limits.content_bytes, used.content_bytes),
            scans_per_day: quota(limits.scans_per_day, used.scans_per_day),
        }
    }
}

/// `GET /v1/caller`
pub(crate) async fn get(caller: Caller, query: Parameters) -> Result<Found<Description>, ApiError> {
    query.none()?;
    let key = &caller.key;
    let namespaces = key.namespaces.as_ref().map(|ids| {
        let names = ids.iter().map(|id| NamespaceName { namespace: *id });
        names.collect()
    });
    let (account, quotas) = (key.account, caller.state.quotas);
    let usage = pages::rows(&caller, async move |conn| {
        let usage = quotas::usage(conn, account, &quotas).await?;
        Ok((usage, usage.rows))
    })
    .await?;
    Ok(Found(Description {
        account: key.account_name.clone(),
        role: key.role.as_str(),
        namespaces,
        expire_time: key.expire_time,
        person: key.person.clone(),
        rate_limit_per_minute: caller.state.rates.limits().key,
        account_rate_limit_per_minute: { usage.rate_limit_per_minute }
            .unwrap_or(caller.state.rates.limits().account),
        quotas: usage.into(),
    }))
}
