//! Fetches a Manager's seed pages, through the guard of `outbound`.
//!
//! Four at a time; each bounded in bytes, redirects and time, all together in time, and what fails for a
//! passing reason is tried once more. Each is read as soon as it is here, so that no more than four are
//! held whole. What each URL's failure was is kept, for the customer to read.

use std::{sync::Arc, time::Duration};

use domain::manager::{ApplyError, ApplyErrorCode};
use futures::StreamExt;
use outbound::{Client, Error, Failure, Limits};
use tokio::time::Instant;
use tracing::Instrument as _;
use url::Url;

use crate::{
    compile::{CompileFailure, Seed},
    extract,
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
    max_body_bytes: extract::MAX_BODY_BYTES,
};
/// Of a URL that a message repeats.
const MAX_SHOWN_CHARS: usize = 200;
/// Of a message, in which the first failures stand for the others.
const MAX_REASONS_CHARS: usize = 800;

/// How the part of a `brief` begins that names what was not read.
const NOT_READ: &str = "Not read: ";
/// Answers after which a page is not expected back.
const GONE: [&str; 2] = ["answered 404", "answered 410"];

/// What became of the seed URLs.
pub(crate) struct Seeds {
    pub(crate) read: Vec<Seed>,
    /// The URLs of those that are pages about a subject.
    subjects: Vec<String>,
    failures: Vec<SeedFailure>,
}

struct SeedFailure {
    code: ApplyErrorCode,
    text: String,
    url: String,
    is_gone: bool,
}

/// The URLs that told nothing, though others did.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// As the `brief` tells it; empty where none was missed.
    pub(crate) told: String,
    /// Those that may answer again.
    passing: Vec<String>,
}

impl Missed {
    /// Whether one of them, which may answer again, was read when `brief` was written.
    pub(crate) fn is_news_to(&self, brief: &str) -> bool {
        let told = brief.split_once(NOT_READ).map_or("", |(_, told)| told);
        self.passing.iter().any(|url| !told.contains(url.as_str()))
    }
}

impl Seeds {
    /// In the order of `urls`. Pages of configured platforms name feeds and need not be read.
    pub(crate) async fn fetch(
        client: &Client,
        urls: &[String],
        source: &str,
        platforms: &Arc<Vec<Platform>>,
    ) -> Self {
        let end = Instant::now() + PATIENCE;
        let mut fetches = Vec::with_capacity(urls.len());
        for url in urls {
            let place = Url::parse(url)
                .ok()
                .filter(|url| feeds::platform_page(url, source, platforms).is_some());
            fetches.push(async move {
                let fetched = match place {
                    // It is what it is, without being fetched.
                    Some(url) => Ok(Fetched::place(url)),
                    None => tokio::time::timeout_at(end, fetch(client, url))
                        .instrument(tracing::info_span!("fetch seed"))
                        .await
                        .unwrap_or_else(|_elapsed| {
                            let reason = format!("not read within the {PATIENCE:?} for all urls");
                            Err((ApplyErrorCode::NoReachableUrl, reason))
                        }),
                };
                let read = match fetched {
                    Ok(fetched) => read(fetched, source, platforms).await,
                    Err(failure) => Err(failure),
                };
                read.map_err(|(code, reason)| SeedFailure {
                    code,
                    text: format!("{}: {reason}", shown(url)),
                    url: shown(url),
                    is_gone: GONE.contains(&reason.as_str()),
                })
            });
        }
        let results: Vec<_> = futures::stream::iter(fetches)
            .buffered(AT_A_TIME)
            .collect()
            .await;
        let mut seeds = Self {
            read: Vec::new(),
            subjects: Vec::new(),
            failures: Vec::new(),
        };
        for (url, result) in urls.iter().zip(results) {
            match result {
                Ok(seed) => {
                    if matches!(seed, Seed::Subject(..)) {
                        seeds.subjects.push(shown(url));
                    }
                    seeds.read.push(seed);
                }
                Err(failure) => seeds.failures.push(failure),
            }
        }
        seeds
    }

    /// What is left out, should the others do.
    pub(crate) fn missed(&self) -> Missed {
        if self.failures.is_empty() {
            return Missed::default();
        }
        let texts = self.failures.iter().map(|failure| failure.text.clone());
        let passing = self.failures.iter().filter(|failure| !failure.is_gone);
        Missed {
            told: format!("{NOT_READ}{}.", joined(texts)),
            passing: passing.map(|failure| failure.url.clone()).collect(),
        }
    }

    /// Why there is nothing to go by, should it come to that: the code that helps most, in words, and
    /// each URL's own reason.
    pub(crate) fn why(&self) -> Why {
        let is = |code| move |failure: &SeedFailure| failure.code == code;
        let forbidden = is(ApplyErrorCode::ForbiddenAddress);
        let unreachable = is(ApplyErrorCode::NoReachableUrl);
        let nothing_read = self.read.is_empty();
        let (code, heading) = if self.failures.iter().any(forbidden) {
            let all = nothing_read && self.failures.iter().all(forbidden);
            let heading = if all {
                "no url is allowed to be read"
            } else {
                "not every url is allowed to be read, and no other says what to listen for"
            };
            (ApplyErrorCode::ForbiddenAddress, Some(heading))
        } else if nothing_read && !self.failures.is_empty() && self.failures.iter().all(unreachable)
        {
            (ApplyErrorCode::NoReachableUrl, Some("no url answered"))
        } else {
            (ApplyErrorCode::NoUsableContent, None)
        };
        let subjects = self.subjects.iter();
        let wordless = subjects.map(|url| format!("{url}: no words that tell a subject"));
        let failures = self.failures.iter().map(|failure| failure.text.clone());
        Why {
            code,
            heading,
            reasons: joined(failures.chain(wordless)),
        }
    }
}

/// The answer to the customer, but for what the compiler says.
pub(crate) struct Why {
    code: ApplyErrorCode,
    /// Where the code is not about what the pages say.
    heading: Option<&'static str>,
    reasons: String,
}

impl Why {
    pub(crate) fn of(self, failure: CompileFailure) -> ApplyError {
        let mut message = match self.heading {
            Some(heading) => heading.to_owned(),
            None => failure.to_string(),
        };
        if !self.reasons.is_empty() {
            message = format!("{message}: {}", self.reasons);
        }
        message = format!("{message}. {}", advice(self.code));
        ApplyError {
            code: self.code,
            message,
        }
    }
}

/// What the customer can do about it.
fn advice(code: ApplyErrorCode) -> &'static str {
    match code {
        ApplyErrorCode::ForbiddenAddress => "Give urls on the public internet.",
        ApplyErrorCode::NoReachableUrl => {
            "Apply again when one of them answers from outside, or give others."
        }
        _ => {
            "Give a public page whose text is in its HTML, not drawn by scripts nor behind a login."
        }
    }
}

fn joined(reasons: impl Iterator<Item = String>) -> String {
    let (mut joined, mut left_out) = (String::new(), 0);
    for reason in reasons {
        let room = joined.chars().count() + reason.chars().count() <= MAX_REASONS_CHARS;
        if joined.is_empty() {
            joined = reason.chars().take(MAX_REASONS_CHARS).collect();
        } else if room && left_out == 0 {
            joined = format!("{joined}; {reason}");
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        joined = format!("{joined}; and {left_out} more");
    }
    joined
}

struct Fetched {
    url: Url,
    content_type: Option<String>,
    body: bytes::Bytes,
}

impl Fetched {
    fn place(url: Url) -> Self {
        Self {
            url,
            content_type: None,
            body: bytes::Bytes::new(),
        }
    }
}

/// Why a URL is of no use.
type Reason = (ApplyErrorCode, String);

async fn fetch(client: &Client, url: &str) -> Result<Fetched, Reason> {
    let accept = [(
        "accept".to_owned(),
        "text/html, application/xhtml+xml, text/*;q=0.8, */*;q=0.5".to_owned(),
    )];
    let mut fetched = client.fetch(url, LIMITS, &accept).await;
    if fetched.as_ref().is_err_and(may_pass) {
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
        fetched = client.fetch(url, LIMITS, &accept).await;
    }
    let page =
        fetched.map_err(|error| (code(&error), format!("{:#}", anyhow::Error::from(error))))?;
    if !(200..300).contains(&page.status) {
        let reason = format!("answered {}", page.status);
        return Err((ApplyErrorCode::NoReachableUrl, reason));
    }
    let content_type = match (page.content_type, page.charset) {
        (Some(media_type), Some(charset)) => Some(format!("{media_type}; charset={charset}")),
        (content_type, _) => content_type,
    };
    Ok(Fetched {
        url: page.url,
        content_type,
        body: page.body,
    })
}

/// Reads a page where it holds up nobody else.
async fn read(
    fetched: Fetched,
    source: &str,
    platforms: &Arc<Vec<Platform>>,
) -> Result<Seed, Reason> {
    let (source, platforms) = (source.to_owned(), Arc::clone(platforms));
    let reading = tokio::task::spawn_blocking(move || {
        let Fetched {
            url,
            content_type,
            body,
        } = fetched;
        Seed::read(&url, content_type.as_deref(), &body, &source, &platforms)
    });
    let reason = match reading.await {
        Ok(Ok(seed)) => return Ok(seed),
        Ok(Err(unreadable)) => unreadable.to_string(),
        Err(panic) => {
            tracing::error!("reading a page panicked: {panic}");
            "cannot be read".to_owned()
        }
    };
    Err((ApplyErrorCode::NoUsableContent, reason))
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

/// A URL as messages and logs repeat it: its query may hold a token.
fn shown(url: &str) -> String {
    let masked = url.split_once('?').map(|(url, _)| format!("{url}?***"));
    let mut chars = masked.as_deref().unwrap_or(url).chars();
    let mut shown: String = chars.by_ref().take(MAX_SHOWN_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}
