//! Fetches feeds whose addresses come from customers, through the guard of `outbound`.

use async_trait::async_trait;
use domain::{address::AddressPolicy, egress::Egress};
use outbound::{Client, Limits, Page};
use platforms::{Fetch, FetchError, FetchLimits, Fetched};
use url::Url;

const MAX_REDIRECTS: usize = 5;

pub(crate) struct Guarded {
    client: Client,
}

impl Guarded {
    pub(crate) fn new(egress: &Egress, policy: AddressPolicy) -> anyhow::Result<Self> {
        let client = Client::leaving_by(egress, policy, outbound::USER_AGENT)?;
        Ok(Self { client })
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
        Ok(Fetched {
            status: page.status,
            headers: headers_of(&page),
            body: page.body.into(),
            final_url: page.url,
        })
    }
}

/// Returns the headers that adapters use.
fn headers_of(page: &Page) -> Vec<(String, String)> {
    let charset = page.charset.as_deref();
    let charset = charset.map_or_else(String::new, |charset| format!("; charset={charset}"));
    let media_type = page.content_type.as_deref();
    let content_type = media_type.map(|media_type| format!("{media_type}{charset}"));
    let retry_after = page.retry_after.map(|wait| wait.as_secs().to_string());
    let headers = [
        ("content-type", content_type),
        ("cache-control", page.cache_control.clone()),
        ("etag", page.etag.clone()),
        ("last-modified", page.last_modified.clone()),
        ("retry-after", retry_after),
    ];
    let given = headers.into_iter();
    let given = given.filter_map(|(name, value)| Some((name.to_owned(), value?)));
    given.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_feeds_need_are_kept() {
        let page = Page {
            url: Url::parse("https://feed.example/").unwrap(),
            status: 200,
            content_type: Some("text/xml".into()),
            charset: Some("windows-1251".into()),
            etag: Some("\"1\"".into()),
            last_modified: None,
            cache_control: Some("max-age=600".into()),
            retry_after: None,
            body: Vec::new().into(),
        };
        let headers = headers_of(&page);
        let expected = [
            ("content-type", "text/xml; charset=windows-1251"),
            ("cache-control", "max-age=600"),
            ("etag", "\"1\""),
        ];
        assert_eq!(
            headers,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
    }
}
