//! Fetches a Manager's seed pages, through the guard of `outbound`.
//!
//! Fetches four at a time. Each fetch has limits for bytes, redirects and time, and there is a deadline for all of
//! them. A temporary failure is retried once. Each page is read as soon as it arrives, so that at most four bodies are
//! in memory. The reason of each URL's failure is kept for the customer.

use std::{sync::Arc, time::Duration};

use compiling::{
    compile::{CompileFailure, Seed},
    extract,
    feeds::{self, Platform},
};
use domain::manager::{ApplyError, ApplyErrorCode};
use futures::StreamExt;
use outbound::{
    Client, Error, Failure, Limits,
    large::{self, Deadline, SMALL_BYTES},
};
use tracing::Instrument as _;
use url::Url;

const AT_A_TIME: usize = 4;
const TRY_AGAIN_AFTER: Duration = Duration::from_millis(500);
/// Deadline for all URLs of a Manager.
const PATIENCE: Duration = Duration::from_secs(30);
const LIMITS: Limits = Limits {
    total: Duration::from_secs(8),
    max_redirects: 5,
    max_wire_bytes: 4 * 1024 * 1024,
    max_body_bytes: extract::MAX_BODY_BYTES,
};
/// Maximum length of a URL in a message.
const MAX_SHOWN_CHARS: usize = 200;
/// Maximum length of a message; the first failures are listed, the others are counted.
const MAX_REASONS_CHARS: usize = 800;

/// Beginning of the part of a `brief` that lists the URLs that were not read.
const NOT_READ: &str = "Not read: ";
/// Responses that mean that a page is gone permanently.
const GONE: [&str; 2] = ["answered 404", "answered 410"];

/// Results of fetching the seed URLs.
pub(crate) struct Seeds {
    pub(crate) read: Vec<Seed>,
    /// The URLs of pages about a subject.
    subjects: Vec<String>,
    failures: Vec<SeedFailure>,
}

struct SeedFailure {
    code: ApplyErrorCode,
    text: String,
    url: String,
    is_gone: bool,
}

/// The URLs without content, if others had some.
#[derive(Debug, Default)]
pub(crate) struct Missed {
    /// Sentence for the `brief` about URLs that could not be read; empty if there are none.
    pub(crate) unread_note: String,
    /// URLs that may answer again.
    passing: Vec<String>,
}

impl Missed {
    /// Returns whether a URL that may answer again was read when `brief` was written.
    pub(crate) fn is_news_to(&self, brief: &str) -> bool {
        let note = brief.split_once(NOT_READ).map_or("", |(_, note)| note);
        self.passing.iter().any(|url| !note.contains(url.as_str()))
    }
}

impl Seeds {
    /// Fetches seeds in the order of `urls`. Pages of configured platforms name feeds and need not be read.
    pub(crate) async fn fetch(
        client: &Client,
        urls: &[String],
        source: &str,
        platforms: &Arc<Vec<Platform>>,
    ) -> Self {
        let deadline = Deadline::after(PATIENCE);
        let mut fetches = Vec::with_capacity(urls.len());
        for url in urls {
            let place = Url::parse(url)
                .ok()
                .filter(|url| feeds::platform_page(url, source, platforms).is_some());
            let deadline = &deadline;
            // Each page has its own place, which ends with the page, so pages of a compilation never wait for each
            // other.
            fetches.push(large::separately(async move {
                let fetched = match place {
                    // The address is sufficient; the page is not fetched.
                    Some(url) => Ok(Fetched::place(url)),
                    None => deadline
                        .cut(fetch(client, url))
                        .instrument(tracing::info_span!("fetch seed"))
                        .await
                        .unwrap_or_else(|_elapsed| {
                            let reason =
                                format!("not read within {PATIENCE:?}, the limit for all urls");
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
            }));
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

    /// Returns the URLs that are left out if the others are sufficient.
    pub(crate) fn missed(&self) -> Missed {
        if self.failures.is_empty() {
            return Missed::default();
        }
        let texts = self.failures.iter().map(|failure| failure.text.clone());
        let passing = self.failures.iter().filter(|failure| !failure.is_gone);
        Missed {
            unread_note: format!("{NOT_READ}{}.", joined(texts)),
            passing: passing.map(|failure| failure.url.clone()).collect(),
        }
    }

    /// Returns the reason to report if there is no usable content: the most helpful code, a text, and each URL's own
    /// reason.
    pub(crate) fn why(&self) -> Why {
        let is = |code| move |failure: &SeedFailure| failure.code == code;
        let forbidden = is(ApplyErrorCode::ForbiddenAddress);
        let unreachable = is(ApplyErrorCode::NoReachableUrl);
        let nothing_read = self.read.is_empty();
        let (code, heading) = if self.failures.iter().any(forbidden) {
            let all = nothing_read && self.failures.iter().all(forbidden);
            let heading = if all {
                "no url is allowed"
            } else {
                "some urls are not allowed, and no other page describes the subject"
            };
            (ApplyErrorCode::ForbiddenAddress, Some(heading))
        } else if nothing_read && !self.failures.is_empty() && self.failures.iter().all(unreachable)
        {
            (ApplyErrorCode::NoReachableUrl, Some("no url answered"))
        } else {
            (ApplyErrorCode::NoUsableContent, None)
        };
        let subjects = self.subjects.iter();
        let wordless = subjects.map(|url| format!("{url}: no words that describe a subject"));
        let failures = self.failures.iter().map(|failure| failure.text.clone());
        Why {
            code,
            heading,
            reasons: joined(failures.chain(wordless)),
        }
    }
}

/// The answer to the customer, without the compiler's own message.
pub(crate) struct Why {
    code: ApplyErrorCode,
    /// Heading for codes that are not about the content of the pages.
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

/// Returns what the customer can do about it.
fn advice(code: ApplyErrorCode) -> &'static str {
    match code {
        ApplyErrorCode::ForbiddenAddress => "Give urls on the public internet.",
        ApplyErrorCode::NoReachableUrl => {
            "Apply again when one of them is reachable from the internet, or give other urls."
        }
        _ => {
            "Give a public page with its text in the HTML, not rendered by scripts or behind a login."
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

/// Reason why a URL cannot be used.
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

/// Reads a page on a thread where it delays nothing else.
async fn read(
    fetched: Fetched,
    source: &str,
    platforms: &Arc<Vec<Platform>>,
) -> Result<Seed, Reason> {
    let (source, platforms) = (source.to_owned(), Arc::clone(platforms));
    let is_packed = platforms::feed::is_packed(&fetched.body);
    if is_packed {
        large::take_place().await;
    }
    let is_long = is_packed || fetched.body.len() > SMALL_BYTES;
    let place = large::share_place();
    let reading = runtime::background::spawn_blocking(is_long, move || {
        // The place is held until the reading ends, even if its compilation ends earlier.
        let _place = place;
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

/// Returns a URL for messages and logs, without its query, which may contain a token.
fn shown(url: &str) -> String {
    let masked = url.split_once('?').map(|(url, _)| format!("{url}?***"));
    let mut chars = masked.as_deref().unwrap_or(url).chars();
    let mut shown: String = chars.by_ref().take(MAX_SHOWN_CHARS).collect();
    if chars.next().is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn page_that_is_compressed_without_saying_so_takes_a_place() {
        let page = "<rss version='2.0'><channel><title>Espresso machines</title></channel></rss>";
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        packed.write_all(page.as_bytes()).unwrap();
        for (body, taken) in [(page.into(), 0), (packed.finish().unwrap(), 1)] {
            let places = Arc::new(Semaphore::new(1));
            let url: Url = "https://shop.example/".parse().unwrap();
            let fetched = Fetched {
                body: body.into(),
                ..Fetched::place(url)
            };
            let work = async {
                let _ = read(fetched, "https://shop.example/", &Arc::default()).await;
                1 - places.available_permits()
            };
            let take = Arc::clone(&places);
            let done = large::in_turn(move || Arc::clone(&take).acquire_owned(), work);
            assert_eq!(done.await, taken);
        }
    }
}
