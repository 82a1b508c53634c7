//! Responses of platforms, each through its adapter.
//!
//! The input is the responses to the adapter's requests in turn, separated by the byte 0x1e; the last one
//! answers all further requests. A response that starts with `#` has a head: `#<status> <name>: <value>; …` and
//! a line break.

use std::{
    cell::RefCell,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::Timestamp;
use platforms::{
    Adapter, Fetch, FetchError, FetchLimits, Fetched, PollLimits, Source, Unlimited,
    bluesky::{self, Jetstream},
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
use tokio::runtime::{Builder, Runtime};
use url::Url;

use crate::promises;

const MAX_POSTS: usize = 50;
/// Responses are there at once, so a longer time means an endless loop.
const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    static RUNTIME: RefCell<Runtime> = RefCell::new(
        Builder::new_current_thread().enable_time().build().expect("a runtime without I/O"),
    );
}

/// The responses of one input.
struct Answers {
    all: Vec<Fetched>,
    next: AtomicUsize,
}

impl Answers {
    fn read(data: &[u8]) -> Arc<Self> {
        Arc::new(Self {
            all: data.split(|&byte| byte == 0x1e).map(answer).collect(),
            next: AtomicUsize::new(0),
        })
    }

    fn next(&self, url: &Url, limits: &FetchLimits) -> Result<Fetched, FetchError> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let mut answer = self.all[next.min(self.all.len() - 1)].clone();
        if answer.body.len() > limits.max_bytes {
            let limit_bytes = limits.max_bytes;
            return Err(FetchError::TooLarge { limit_bytes });
        }
        answer.final_url = url.clone();
        Ok(answer)
    }
}

fn answer(data: &[u8]) -> Fetched {
    let mut fetched = Fetched {
        status: 200,
        headers: Vec::new(),
        body: data.to_vec(),
        final_url: base(),
    };
    let Some(rest) = data.strip_prefix(b"#") else {
        return fetched;
    };
    let end = rest
        .iter()
        .position(|&byte| byte == b'\n')
        .unwrap_or(rest.len());
    let head = String::from_utf8_lossy(&rest[..end]);
    fetched.body = rest.get(end + 1..).unwrap_or_default().to_vec();
    let (status, headers) = head.split_once(' ').unwrap_or((&head, ""));
    fetched.status = status.parse().unwrap_or(200);
    fetched.headers = headers
        .split(';')
        .filter_map(|header| header.split_once(':'))
        .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
        .collect();
    fetched
}

#[async_trait]
impl Fetch for Answers {
    async fn get(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.next(url, limits)
    }

    async fn post_form(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        _: &[(&str, &str)],
        limits: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        self.next(url, limits)
    }
}

fn base() -> Url {
    Url::parse("https://platform.example/").expect("a URL")
}

/// Polls each of the feeds from the start and from the resulting cursor, and calls all other functions of the
/// adapter; each call starts with the first response.
fn drive(
    data: &[u8],
    feeds: &[&str],
    ids: &[&str],
    adapter: impl Fn(Arc<Answers>) -> Box<dyn Adapter>,
) {
    let limits = PollLimits {
        max_posts: MAX_POSTS,
        max_pages: 4,
        ..PollLimits::default()
    };
    let anew = || adapter(Answers::read(data));
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let work = async {
        for what in feeds {
            let answers = Answers::read(data);
            let first = adapter(Arc::clone(&answers));
            let polled = first.poll(what, None, &limits).await;
            // An adapter refuses a malformed name without a request.
            let is_asked = answers.next.load(Ordering::Relaxed) > 0;
            assert!(is_asked, "{what} is no feed");
            let Ok(polled) = polled else {
                continue;
            };
            promises::hold_for(&polled, MAX_POSTS);
            let cursor = Some(&polled.cursor);
            if let Ok(polled) = anew().poll(what, cursor, &limits).await {
                promises::hold_for(&polled, MAX_POSTS);
            }
        }
        if let Ok(found) = anew().communities("words", 5).await {
            assert!(found.len() <= 5, "{found:?}");
        }
        if let Ok(found) = anew().recheck(&ids).await {
            let current = found.current.iter().map(|post| &post.id);
            assert!(
                found.gone.iter().chain(current).all(|id| ids.contains(id)),
                "{found:?} was not asked for"
            );
        }
    };
    RUNTIME.with_borrow(|runtime| {
        let done = runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await });
        assert!(done.is_ok(), "no end");
    });
}

/// The lines are frames of the stream; the responses are those of its API for posts.
pub(crate) fn bluesky(data: &[u8]) {
    let received = Timestamp::from_micros(1_767_225_600_000_000).expect("a time");
    for frame in data.split(|&byte| byte == b'\n' || byte == 0x1e) {
        let Ok(frame) = std::str::from_utf8(frame) else {
            continue;
        };
        if let Some(post) = bluesky::post_of_frame(frame, received) {
            promises::hold_for_post(&post);
        }
    }
    let ids = [
        "at://did:plc:a/app.bsky.feed.post/b",
        "at://did:plc:a/app.bsky.feed.post/c",
    ];
    drive(data, &[], &ids, |answers| {
        let stream = Jetstream::new(vec![base()], None, Arc::new(Unlimited));
        Box::new(stream.with_app_view(base(), answers, true))
    });
}

pub(crate) fn discourse(data: &[u8]) {
    drive(
        data,
        &["latest", "posts", "c/help/5"],
        &["d:1", "d:2"],
        |answers| Box::new(Discourse::new("d".into(), base(), None, answers)),
    );
}

pub(crate) fn facebook(data: &[u8]) {
    drive(data, &["page/1"], &[], |answers| {
        Box::new(Facebook::new(
            "f".into(),
            base(),
            "token".into(),
            None,
            answers,
        ))
    });
}

pub(crate) fn feed(data: &[u8]) {
    drive(data, &["https://platform.example/feed"], &[], |answers| {
        Box::new(FeedAdapter::new(
            "blogs".into(),
            Source::Forum,
            None,
            answers,
        ))
    });
    drive(data, &["newest"], &[], |answers| {
        Box::new(FeedAdapter::new(
            "blog".into(),
            Source::Network,
            Some(base()),
            answers,
        ))
    });
}

pub(crate) fn hackernews(data: &[u8]) {
    let ids = ["h:1", "h:8863"];
    drive(data, &["newest", "ask", "comments"], &ids, |answers| {
        Box::new(HackerNews::new("h".into(), base(), Some(base()), answers))
    });
}

pub(crate) fn lemmy(data: &[u8]) {
    let feeds = ["newest", "c/rust", "comments"];
    let ids = ["https://platform.example/post/1"];
    drive(data, &feeds, &ids, |answers| {
        Box::new(Lemmy::new(base(), answers))
    });
}

pub(crate) fn linkedin(data: &[u8]) {
    drive(data, &["organization/1"], &[], |answers| {
        Box::new(LinkedIn::new(
            base(),
            "token".into(),
            "202610".into(),
            answers,
        ))
    });
}

pub(crate) fn lobsters(data: &[u8]) {
    let ids = ["l:abc123", "l:q2wv3x"];
    drive(data, &["newest", "t/rust"], &ids, |answers| {
        Box::new(Lobsters::new("l".into(), base(), answers))
    });
}

pub(crate) fn mastodon(data: &[u8]) {
    drive(data, &["public", "tag/rust"], &[], |answers| {
        Box::new(Mastodon::new(base(), None, answers))
    });
}

pub(crate) fn reddit(data: &[u8]) {
    let feeds = ["r/rust", "r/rust+saas", "r/rust/comments"];
    drive(data, &feeds, &["t3_1", "t1_2"], |answers| {
        let secret = "secret".into();
        Box::new(Reddit::new(
            "r".into(),
            base(),
            "id".into(),
            secret,
            answers,
        ))
    });
}

pub(crate) fn x(data: &[u8]) {
    drive(data, &["search/rust"], &[], |answers| {
        Box::new(X::new(base(), "token".into(), answers, Arc::new(Unlimited)))
    });
}
