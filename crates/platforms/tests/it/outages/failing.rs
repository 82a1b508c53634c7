//! A network that fails a share of the requests, as platforms do.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use async_trait::async_trait;
use platforms::{Fetch, FetchError, FetchLimits, Fetched};
use url::Url;

/// Pseudo-random numbers from a seed (splitmix64).
pub(super) struct Numbers(AtomicU64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed.wrapping_mul(0xA076_1D64_78BD_642F)))
    }

    pub(super) fn below(&self, end: u64) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end
    }

    pub(super) fn one_of<T: Copy, const N: usize>(&self, choices: [T; N]) -> T {
        choices[usize::try_from(self.below(N as u64)).unwrap()]
    }
}

/// How a request fails.
#[derive(Clone, Copy)]
enum Failure {
    Timeout,
    Status(u16),
    /// A page of a proxy, with status 200.
    OtherPage,
    /// The connection ends in the middle of the body.
    Cut,
}

const FAILURES: [Failure; 6] = [
    Failure::Timeout,
    Failure::Status(500),
    Failure::Status(503),
    Failure::Status(429),
    Failure::OtherPage,
    Failure::Cut,
];

/// Fails a share of the requests.
pub(super) struct Failing {
    fetch: Arc<dyn Fetch>,
    numbers: Numbers,
    percent: AtomicU64,
    /// The part of an address that only pages of the list have.
    page: &'static str,
    /// Pages that were read since [`Failing::begin_poll`] before a page failed.
    read: AtomicU64,
    has_failed: AtomicBool,
    /// True if a request that is not for a page failed.
    other_failed: AtomicBool,
}

impl Failing {
    pub(super) fn new(fetch: Arc<dyn Fetch>, page: &'static str, seed: u64) -> Self {
        Self {
            fetch,
            numbers: Numbers::new(seed),
            percent: AtomicU64::new(0),
            page,
            read: AtomicU64::new(0),
            has_failed: AtomicBool::new(false),
            other_failed: AtomicBool::new(false),
        }
    }

    pub(super) fn set_percent(&self, percent: u64) {
        self.percent.store(percent, Ordering::Relaxed);
    }

    pub(super) fn begin_poll(&self) {
        self.read.store(0, Ordering::Relaxed);
        self.has_failed.store(false, Ordering::Relaxed);
        self.other_failed.store(false, Ordering::Relaxed);
    }

    /// Number of pages that were read in this poll before one failed.
    pub(super) fn pages_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    pub(super) fn other_failed(&self) -> bool {
        self.other_failed.load(Ordering::Relaxed)
    }

    fn draw(&self) -> Option<Failure> {
        let fails = self.numbers.below(100) < self.percent.load(Ordering::Relaxed);
        fails.then(|| self.numbers.one_of(FAILURES))
    }

    fn note(&self, url: &Url, failed: bool) {
        if !url.path().contains(self.page) {
            self.other_failed.fetch_or(failed, Ordering::Relaxed);
            return;
        }
        if failed {
            self.has_failed.store(true, Ordering::Relaxed);
        } else if !self.has_failed.load(Ordering::Relaxed) {
            self.read.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn apply(
    failure: Failure,
    url: &Url,
    answer: Result<Fetched, FetchError>,
) -> Result<Fetched, FetchError> {
    let other = |status| Fetched {
        status,
        headers: Vec::new(),
        body: b"<html>something went wrong</html>".to_vec(),
        final_url: url.clone(),
    };
    match failure {
        Failure::Timeout => Err(FetchError::Timeout),
        Failure::Status(status) => Ok(other(status)),
        Failure::OtherPage => Ok(other(200)),
        Failure::Cut => answer.map(|mut answer| {
            answer.body.truncate(answer.body.len() / 2);
            answer
        }),
    }
}

#[async_trait]
impl Fetch for Failing {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let failure = self.draw();
        self.note(url, failure.is_some());
        let answer = self.fetch.get(url, headers, limits).await;
        match failure {
            Some(failure) => apply(failure, url, answer),
            None => answer,
        }
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let answer = self.fetch.post_form(url, headers, form, limits).await;
        match self.draw() {
            Some(failure) => apply(failure, url, answer),
            None => answer,
        }
    }
}
