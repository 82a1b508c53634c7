//! The server of both customers: feeds, pages and endpoints, good and bad.
//!
//! | Path | |
//! |---|---|
//! | `/victim.xml` | the victim's posts |
//! | `/fresh/<n>.xml` | an empty feed, whose first request is recorded |
//! | `/hook` | the victim's endpoint, which records the posts that arrive |
//! | `/stock/<name>.xml` | a feed of 100 long posts, always the same |
//! | `/noisy/<n>.xml` | a feed with 10 new posts in each answer |
//! | `/slow/<n>.xml` | an empty feed, after 10 to 30 seconds |
//! | `/silent/<n>` | never an answer; counted together |
//! | `/hang/<n>` | never an answer; counted per path |
//! | `/late/<n>` | 200, after eight seconds |
//! | `/500` | a failure |
//! | all others | those of [`documents`], or 200 |

mod documents;
mod feeds;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use super::product::PLATFORM;
use crate::requests;
pub(super) use documents::{muted_words, terms};
use feeds::{feed, noise, ok, rss};

/// Posts in an answer of `/victim.xml`.
const NEWEST: usize = 100;
/// Addresses of the server. An account polls each only ten times a second, which is not measured here.
const ADDRESSES: u8 = 64;
/// Delay of `/late`.
const LATE: Duration = Duration::from_secs(8);
/// Words of the posts.
pub(super) const VICTIMS_WORD: &str = "kettle";
pub(super) const HOSTILE_WORD: &str = "flood";

#[derive(Clone)]
pub(super) struct Site {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    posts: Vec<Post>,
    /// Time of the first request of each feed whose posts do not change.
    first_polls: HashMap<String, Instant>,
    open: HashMap<String, Open>,
}

/// A post of the victim's feed.
#[derive(Clone, Copy)]
pub(super) struct Post {
    pub(super) published: Instant,
    /// First answer of the feed with the post.
    pub(super) served: Option<Instant>,
    /// Arrival at the victim's endpoint.
    pub(super) delivered: Option<Instant>,
}

/// Requests without an answer.
#[derive(Default)]
struct Open {
    now: usize,
    most: usize,
}

fn address(number: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 0, number)
}

impl Site {
    pub(super) async fn start() -> Result<Self> {
        let mut listeners = vec![TcpListener::bind((address(1), 0)).await?.into_std()?];
        let port = listeners[0].local_addr()?.port();
        for number in 2..=ADDRESSES {
            listeners.push(
                TcpListener::bind((address(number), port))
                    .await?
                    .into_std()?,
            );
        }
        let site = Self {
            port,
            seen: Arc::default(),
        };
        let serving = site.clone();
        // A separate thread, so that load and server do not delay each other.
        std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async move {
                let mut accepting = JoinSet::new();
                for listener in listeners {
                    let serving = serving.clone();
                    accepting.spawn(async move {
                        let listener = TcpListener::from_std(listener)?;
                        loop {
                            let (stream, _) = listener.accept().await?;
                            tokio::spawn(serving.clone().serve(stream));
                        }
                    });
                }
                accepting.join_next().await.context("nothing listens")??
            })
        });
        Ok(site)
    }

    /// Returns the address of a path. Each path has one host.
    pub(super) fn url(&self, path: &str) -> String {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        let number = u8::try_from(hasher.finish() % u64::from(ADDRESSES)).unwrap_or_default();
        format!("http://{}:{}{path}", address(number + 1), self.port)
    }

    /// Returns the name of the feed at a path.
    pub(super) fn feed(&self, path: &str) -> String {
        format!("{PLATFORM}:{}", self.url(path))
    }

    /// Adds a post to the victim's feed and returns its number.
    pub(super) fn publish(&self) -> usize {
        let mut seen = self.seen();
        seen.posts.push(Post {
            published: Instant::now(),
            served: None,
            delivered: None,
        });
        seen.posts.len() - 1
    }

    pub(super) fn post(&self, number: usize) -> Post {
        self.seen().posts[number]
    }

    pub(super) fn first_poll(&self, path: &str) -> Option<Instant> {
        self.seen().first_polls.get(path).copied()
    }

    /// Returns the most requests that were open at a time: of one path, or of one kind of feed or page.
    pub(super) fn most_open(&self, start: &str) -> usize {
        let seen = self.seen();
        let open = seen.open.iter().filter(|(key, _)| key.starts_with(start));
        open.map(|(_, open)| open.most).max().unwrap_or(0)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn serve(self, mut stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        let mut buffer = Vec::with_capacity(4_096);
        while let Some((path, body)) = requests::next(&mut stream, &mut buffer).await? {
            // On another thread, because a large document takes long, and other paths must not wait for it.
            let wanted = path.clone();
            let document = tokio::task::spawn_blocking(move || documents::of(&wanted));
            if let Some(document) = document.await? {
                stream.write_all(&document?).await?;
                continue;
            }
            let Some(answer) = self.answer(&mut stream, &path, &buffer[body..]).await else {
                break;
            };
            stream.write_all(answer.as_bytes()).await?;
        }
        Ok(())
    }

    /// Returns the answer to a request; `None` if the client closed the connection before.
    async fn answer(&self, stream: &mut TcpStream, path: &str, body: &[u8]) -> Option<String> {
        let mut parts = path.trim_start_matches('/').splitn(2, '/');
        let kind = parts.next().unwrap_or_default();
        let number = parts.next().unwrap_or_default().trim_end_matches(".xml");
        Some(match kind {
            "victim.xml" => self.victims_feed(),
            "hook" => {
                self.record_delivery(body);
                ok("")
            }
            "fresh" => {
                self.record_poll(path);
                rss(std::iter::empty())
            }
            "stock" => {
                self.record_poll(path);
                rss((0..100).map(|item| format!("{number} {item}")))
            }
            "noisy" => rss(noise(number)),
            "slow" => {
                let spread = number.parse::<u64>().unwrap_or(0) % 21;
                self.hang(stream, kind, Duration::from_secs(10 + spread))
                    .await?;
                rss(std::iter::empty())
            }
            "late" => self.hang(stream, kind, LATE).await?,
            "silent" => self.hang(stream, kind, Duration::MAX).await?,
            "hang" => self.hang(stream, path, Duration::MAX).await?,
            "500" => "HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n".to_owned(),
            _ => ok(""),
        })
    }

    fn record_poll(&self, path: &str) {
        let now = Instant::now();
        let mut seen = self.seen();
        seen.first_polls.entry(path.to_owned()).or_insert(now);
    }

    fn victims_feed(&self) -> String {
        let now = Instant::now();
        let mut seen = self.seen();
        let from = seen.posts.len().saturating_sub(NEWEST);
        let mut items = Vec::new();
        for (number, post) in seen.posts.iter_mut().enumerate().skip(from) {
            post.served.get_or_insert(now);
            items.push(format!("{VICTIMS_WORD} {number}"));
        }
        feed(items.into_iter(), "A victim's post.")
    }

    fn record_delivery(&self, body: &[u8]) {
        let now = Instant::now();
        let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
        let title = body["post"]["title"].as_str().unwrap_or_default();
        let number = title.strip_prefix(VICTIMS_WORD).unwrap_or_default().trim();
        let Ok(number) = number.parse::<usize>() else {
            return;
        };
        if let Some(post) = self.seen().posts.get_mut(number) {
            post.delivered.get_or_insert(now);
        }
    }

    /// Waits, and returns an empty answer, unless the client closes the connection first.
    async fn hang(&self, stream: &mut TcpStream, key: &str, wait: Duration) -> Option<String> {
        {
            let mut seen = self.seen();
            let open = seen.open.entry(key.to_owned()).or_default();
            open.now += 1;
            open.most = open.most.max(open.now);
        }
        let mut rest = [0; 64];
        let is_over = tokio::select! {
            () = tokio::time::sleep(wait) => true,
            _ = stream.read(&mut rest) => false,
        };
        if let Some(open) = self.seen().open.get_mut(key) {
            open.now -= 1;
        }
        is_over.then(|| ok(""))
    }
}
