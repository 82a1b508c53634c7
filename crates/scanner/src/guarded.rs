//! Fetches feeds whose addresses come from customers, through the guard of `outbound`.

use async_trait::async_trait;
use domain::address::AddressPolicy;
use outbound::{Client, Limits};
use platforms::{Fetch, FetchError, FetchLimits, Fetched};
use url::Url;

const MAX_REDIRECTS: usize = 5;

pub(crate) struct Guarded {
    client: Client,
}

impl Guarded {
    pub(crate) fn new(policy: AddressPolicy) -> Self {
        Self {
            client: Client::new(policy, outbound::USER_AGENT),
        }
    }
}

#[async_trait]
impl Fetch for Guarded {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let limits = Limits {
            total: limits.timeout,
            max_redirects: MAX_REDIRECTS,
            max_wire_bytes: limits.max_bytes,
            max_body_bytes: limits.max_bytes,
        };
        let headers: Vec<(String, String)> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let page = self
            .client
            .fetch(url.as_str(), limits, &headers)
            .await
            .map_err(|error| match error {
                outbound::Error::Url { .. }
                | outbound::Error::Exchange(outbound::Failure::ForbiddenAddress { .. }) => {
                    FetchError::Forbidden(error.to_string())
                }
                outbound::Error::TooLarge { limit_bytes, .. } => {
                    FetchError::TooLarge { limit_bytes }
                }
                outbound::Error::Exchange(outbound::Failure::Timeout { .. }) => FetchError::Timeout,
                other => FetchError::Failed(Box::new(other)),
            })?;
        let mut headers = Vec::new();
        let mut keep = |name: &str, value: Option<String>| {
            headers.extend(value.map(|value| (name.to_owned(), value)))
        };
        keep("content-type", page.content_type);
        keep("etag", page.etag);
        keep("last-modified", page.last_modified);
        keep(
            "retry-after",
            page.retry_after.map(|wait| wait.as_secs().to_string()),
        );
        Ok(Fetched {
            status: page.status,
            headers,
            body: page.body.to_vec(),
            final_url: page.url,
        })
    }
}
