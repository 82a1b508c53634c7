//! Fetches a Manager's seed pages, through the guard of `outbound`.
//!
//! Four at a time; each bounded in bytes, redirects and time, all together in time, and what fails for a
//! passing reason is tried once more. What each URL's failure was is kept, for the customer to read.

use std::time::Duration;

use domain::{manager::ApplyErrorCode, web_url};
use futures::StreamExt;
use outbound::{Client, Error, Failure, Limits};
use tokio::time::Instant;
use url::Url;

use crate::{
    compile::FetchedPage,
    feeds::{self, Platform},
};

const AT_A_TIME: usize = 4;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// For all URLs of a Manager.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMITS: Limits = Limits {
    total: Duration::from_secs(8),
    max_redirects: 5,
    max_wire_bytes: 4 * 1024 * 1024,
    max_body_bytes: 8 * 1024 * 1024,
};

/// What became of the seed URLs.
pub(crate) struct Seeds {
    pub(crate) pages: Vec<FetchedPage>,
    failures: Vec<SeedFailure>,
}

struct SeedFailure {
    code: ApplyErrorCode,
    text: String,
}

impl Seeds {
    /// In the order of `urls`. Pages of configured platforms name feeds and need not be read.
    pub(crate) async fn fetch(
        client: &Client,
        urls: &[String],
        source: &str,
        platforms: &[Platform],
    ) -> Self {
        let end = Instant::now() + PATIENCE;
        let mut fetches = Vec::with_capacity(urls.len());
        for url in urls {
            let place = Url::parse(url)
                .ok()
                .filter(|url| feeds::platform_page(url, source, platforms).is_some());
            fetches.push(async move {
                let fetched = tokio::time::timeout_at(end, fetch(client, url, place)).await;
                fetched.unwrap_or_else(|_elapsed| {
                    Err(SeedFailure {
                        code: ApplyErrorCode::NoReachableUrl,
                        text: format!(
                            "{}: not read within the {PATIENCE:?} for all urls",
                            shown(url)
                        ),
                    })
                })
            });
        }
        let results: Vec<_> = futures::stream::iter(fetches)
            .buffered(AT_A_TIME)
            .collect()
            .await;
        let mut seeds = Self {
            pages: Vec::new(),
            failures: Vec::new(),
        };
        for result in results {
            match result {
                Ok(page) => seeds.pages.push(page),
                Err(failure) => seeds.failures.push(failure),
            }
        }
        seeds
    }

    /// Why there is nothing to go by: the code that helps most, and each URL's own reason.
    pub(crate) fn why(&self, otherwise: ApplyErrorCode) -> (ApplyErrorCode, Option<String>) {
        let has = |code| self.failures.iter().any(|failure| failure.code == code);
        let code = [
            ApplyErrorCode::ForbiddenAddress,
            ApplyErrorCode::NoUsableContent,
        ]
        .into_iter()
        .find(|code| has(*code))
        .or_else(|| {
            (self.pages.is_empty() && has(ApplyErrorCode::NoReachableUrl))
                .then_some(ApplyErrorCode::NoReachableUrl)
        })
        .unwrap_or(otherwise);
        let texts: Vec<&str> = self
            .failures
            .iter()
            .map(|failure| failure.text.as_str())
            .collect();
        (code, (!texts.is_empty()).then(|| texts.join("; ")))
    }
}

/// A `place` on a configured platform is what it is, without being fetched.
async fn fetch(client: &Client, url: &str, place: Option<Url>) -> Result<FetchedPage, SeedFailure> {
    if let Some(url) = place {
        return Ok(FetchedPage {
            url,
            content_type: None,
            body: Vec::new(),
        });
    }
    let accept = [(
        "accept".to_owned(),
        "text/html, application/xhtml+xml, text/*;q=0.8, */*;q=0.5".to_owned(),
    )];
    let mut fetched = client.fetch(url, LIMITS, &accept).await;
    if fetched.as_ref().is_err_and(may_pass) {
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
        fetched = client.fetch(url, LIMITS, &accept).await;
    }
    let fail = |code, reason: String| SeedFailure {
        code,
        text: format!("{}: {reason}", shown(url)),
    };
    let page =
        fetched.map_err(|error| fail(code(&error), format!("{:#}", anyhow::Error::from(error))))?;
    if !(200..300).contains(&page.status) {
        return Err(fail(
            ApplyErrorCode::NoReachableUrl,
            format!("answered {}", page.status),
        ));
    }
    Ok(FetchedPage {
        url: page.url.clone(),
        content_type: page.content_type.clone(),
        body: page.body.to_vec(),
    })
}

fn code(error: &Error) -> ApplyErrorCode {
    match error {
        Error::Exchange(Failure::ForbiddenAddress { .. })
        | Error::Url {
            issue: domain::Issue::ForbiddenAddress,
            ..
        } => ApplyErrorCode::ForbiddenAddress,
        Error::TooLarge { .. } | Error::Encoding { .. } => ApplyErrorCode::NoUsableContent,
        _ => ApplyErrorCode::NoReachableUrl,
    }
}

fn may_pass(error: &Error) -> bool {
    matches!(
        error,
        Error::Exchange(Failure::ConnectRefused { .. } | Failure::Reset | Failure::Dns { .. })
    )
}

/// A URL as a message repeats it.
fn shown(url: &str) -> String {
    let cut: String = url.chars().take(200).collect();
    if cut.len() < url.len().min(web_url::MAX_BYTES) {
        format!("{cut}…")
    } else {
        cut
    }
}
