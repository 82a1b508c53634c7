//! Hosts that accept a connection and send nothing, or one byte at a time: each adapter's poll ends and reports
//! the platform as unavailable.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use platforms::{
    Adapter, Direct, Fetch, FetchError, FetchLimits, Fetched, PollError, PollLimits, Source,
    Unlimited,
    bluesky::{Jetstream, Waits},
    discourse::Discourse,
    facebook::Facebook,
    feed::FeedAdapter,
    hackernews::HackerNews,
    lemmy::Lemmy,
    linkedin::LinkedIn,
    lobsters::Lobsters,
    mastodon::Mastodon,
    reddit::Reddit,
    x::X,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use url::Url;

/// Maximum time that an adapter may wait for one response.
const BOUND: Duration = Duration::from_secs(30);
/// The shorter timeout of the test.
const SHORT: Duration = Duration::from_millis(300);

/// Fetches with a shorter timeout than requested.
struct Impatient(Direct);

impl Impatient {
    fn limits(limits: &FetchLimits) -> FetchLimits {
        assert!(limits.timeout <= BOUND, "{:?}", limits.timeout);
        FetchLimits {
            timeout: SHORT,
            ..limits.clone()
        }
    }
}

#[async_trait]
impl Fetch for Impatient {
    async fn get(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let limits = Self::limits(limits);
        self.0.get(url, headers, &limits).await
    }

    async fn post_form(
        &self,
        url: &Url,
        headers: &[(&str, &str)],
        form: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let limits = Self::limits(limits);
        self.0.post_form(url, headers, form, &limits).await
    }
}

/// Each adapter, with one of its feeds.
fn adapters(url: &Url) -> Vec<(Box<dyn Adapter>, &'static str)> {
    let direct = Direct::new(None).unwrap();
    let fetch = || Arc::new(Impatient(direct.clone())) as Arc<dyn Fetch>;
    let host = url.as_str().replace("http:", "ws:").parse().unwrap();
    let stream = Jetstream::new(vec![host], None, Arc::new(Unlimited)).with_waits(Waits {
        connect: SHORT,
        ..Waits::default()
    });
    let url = || url.clone();
    let secret = || "secret".to_owned().into();
    let items = Some(url());
    let newest = HackerNews::new("h".into(), url(), items, fetch());
    let network = Source::Network;
    vec![
        (Box::new(newest), "newest"),
        (
            Box::new(HackerNews::new("h".into(), url(), None, fetch())),
            "comments",
        ),
        (Box::new(Lemmy::new(url(), fetch())), "newest"),
        (
            Box::new(Lobsters::new("l".into(), url(), fetch())),
            "newest",
        ),
        (
            Box::new(Discourse::new("d".into(), url(), None, fetch())),
            "latest",
        ),
        (
            Box::new(Discourse::new("d".into(), url(), None, fetch())),
            "posts",
        ),
        (
            Box::new(Reddit::new(
                "r".into(),
                url(),
                "id".into(),
                secret(),
                fetch(),
            )),
            "r/rust",
        ),
        (Box::new(Mastodon::new(url(), None, fetch())), "tag/rust"),
        (
            Box::new(X::new(url(), secret(), fetch(), Arc::new(Unlimited))),
            "search/crm",
        ),
        (
            Box::new(LinkedIn::new(url(), secret(), "202610".into(), fetch())),
            "organization/1",
        ),
        (
            Box::new(Facebook::new("f".into(), url(), secret(), None, fetch())),
            "page/1",
        ),
        (
            Box::new(FeedAdapter::new("b".into(), network, Some(url()), fetch())),
            "newest",
        ),
        (Box::new(stream), "jetstream"),
    ]
}

async fn none_answers(url: &Url) {
    for (nth, (adapter, what)) in adapters(url).into_iter().enumerate() {
        let limits = PollLimits::default();
        let poll = adapter.poll(what, None, &limits);
        let polled = tokio::time::timeout(Duration::from_secs(60), poll).await;
        let polled = polled.unwrap_or_else(|_| panic!("{what}: a poll without an end"));
        assert!(
            matches!(polled, Err(PollError::Unavailable(FetchError::Timeout))),
            "adapter {nth}, {what}: {polled:?}"
        );
    }
}

#[tokio::test]
async fn silent_host_counts_as_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            open.push(stream);
        }
    });
    none_answers(&url.parse().unwrap()).await;
}

#[tokio::test]
async fn slow_host_counts_as_unavailable() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4_096]).await;
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Slow: ";
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    sent = stream.write_all(b"a").await;
                }
            });
        }
    });
    none_answers(&url.parse().unwrap()).await;
}
