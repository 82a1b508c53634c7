//! Speaks the platforms' own APIs from a list of posts: for tests, end-to-end runs and the demo.
//!
//! | Path | Speaks as |
//! |---|---|
//! | `/hackernews/api/v1/…` | Algolia: `search_by_date`, `search`, `items/{id}` |
//! | `/hackernews/v0/…` | Firebase: `newstories.json` and its kin, `maxitem.json`, `item/{id}.json` |
//! | `/lemmy/api/v3/…` | Lemmy 0.19: `site`, `post/list`, `post`, `community`, `search` |
//! | `/feeds/{name}.rss`, `.atom`, `.json` | a feed of 50 entries, with `ETag` and `Last-Modified` |
//! | `/control/…` | takes posts and faults, tells what was asked and served ([`control`]) |
//! | `/demo/` | the page of the demo's customer ([`demo`]) |
//!
//! It keeps the traps of the originals: Algolia never answers more than 1,000 hits, Lemmy refuses more
//! than 50 posts and puts pinned ones first, an item of Firebase may be `null` for a while.
//!
//! It runs on a thread of its own and stops when dropped. Everything is in memory and forgotten then.

mod control;
pub mod demo;
mod faults;
mod feeds;
mod hackernews;
mod lemmy;
mod world;

use std::{io, net::SocketAddr, sync::Arc, thread, time::Duration};

use actix_web::{App, HttpServer, dev::ServerHandle, middleware::from_fn, rt::System, web};
use url::Url;

pub use faults::{Fault, FaultKind};
pub use world::{NewPost, Published};

use crate::{Settings, Source};

/// The platforms' names in [`Simulator::settings`].
pub const HACKER_NEWS: &str = "hackernews";
pub const LEMMY: &str = "lemmy";
pub const BLOG: &str = "blog";

/// A running simulator.
pub struct Simulator {
    addr: SocketAddr,
    server: ServerHandle,
    world: Arc<world::World>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Simulator {
    /// Starts on `addr`; port 0 picks a free one. Answers requests once it returns.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(addr: SocketAddr) -> io::Result<Self> {
        Self::start_as(addr, None)
    }

    /// As [`Simulator::start`]; posts and pages name `public_url` as where they are.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start_as(addr: SocketAddr, public_url: Option<&Url>) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(addr)?;
        let addr = listener.local_addr()?;
        let base_url = match public_url {
            Some(url) => url.as_str().trim_end_matches('/').to_owned(),
            None => format!("http://{addr}"),
        };
        let world = Arc::new(world::World::new(base_url));
        let shared = web::Data::from(Arc::clone(&world));
        let (started, starts) = std::sync::mpsc::channel();
        let thread = thread::Builder::new()
            .name("platform-simulator".to_owned())
            .spawn(move || {
                System::new().block_on(async move {
                    let server = HttpServer::new(move || {
                        App::new()
                            .app_data(shared.clone())
                            .app_data(web::JsonConfig::default().limit(16 * 1024 * 1024))
                            .wrap(from_fn(faults::meddle))
                            .configure(routes)
                    })
                    .workers(1)
                    .disable_signals()
                    .shutdown_timeout(1)
                    .keep_alive(Duration::from_secs(75))
                    .listen(listener);
                    match server {
                        Ok(server) => {
                            let server = server.run();
                            // Nobody waits any more only when the caller is gone.
                            let _ = started.send(Ok(server.handle()));
                            if let Err(error) = server.await {
                                tracing::error!(%error, "the platform simulator failed");
                            }
                        }
                        Err(error) => {
                            let _ = started.send(Err(error));
                        }
                    }
                });
            })?;
        let server = starts.recv().map_err(io::Error::other)??;
        Ok(Self {
            addr,
            server,
            world,
            thread: Some(thread),
        })
    }

    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://<address>` or the public address, without a path.
    #[must_use]
    pub fn base_url(&self) -> String {
        self.world.base_url().to_owned()
    }

    /// The page of the demo's customer.
    #[must_use]
    pub fn demo_page_url(&self) -> String {
        format!("{}/demo/", self.world.base_url())
    }

    /// Three platforms that point here: Hacker News, a Lemmy instance, and a blog's feed.
    #[must_use]
    pub fn settings(&self) -> Vec<Settings> {
        let url = |path: &str| Url::parse(&format!("{}{path}", self.world.base_url())).ok();
        let platform = |name: &str, kind: &str, path: &str| Settings {
            name: name.to_owned(),
            kind: kind.to_owned(),
            base_url: url(path),
            poll_interval: Some(Duration::from_secs(1)),
            ..Settings::default()
        };
        vec![
            Settings {
                items_url: url("/hackernews/v0"),
                ..platform(HACKER_NEWS, "hackernews", "/hackernews/api/v1")
            },
            platform(LEMMY, "lemmy", "/lemmy"),
            Settings {
                source: Some(Source::Network),
                ..platform(BLOG, "feed", "/feeds/blog.rss")
            },
        ]
    }

    /// Publishes posts, as `POST /control/posts` does.
    pub fn publish(&self, posts: Vec<NewPost>) -> Vec<Published> {
        self.world.publish(posts)
    }

    /// Takes a post away, as its author would. False when there is none.
    pub fn delete(&self, id: u64) -> bool {
        self.world.delete(id)
    }

    /// Makes the next answers of a platform go wrong.
    pub fn fail(&self, fault: Fault) {
        self.world.faults.add(fault);
    }

    /// How many requests came to paths that begin with `path`.
    #[must_use]
    pub fn requests(&self, path: &str) -> u64 {
        let counts = self.world.requests();
        let matching = counts.iter().filter(|(own, _)| own.starts_with(path));
        matching.map(|(_, count)| count).sum()
    }

    fn world(&self) -> Arc<world::World> {
        Arc::clone(&self.world)
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        // The command is sent at once; its future only tells when it is done.
        drop(self.server.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn routes(config: &mut web::ServiceConfig) {
    config
        .service(web::scope("/hackernews").configure(hackernews::routes))
        .service(web::scope("/lemmy/api/v3").configure(lemmy::routes))
        .service(web::scope("/feeds").configure(feeds::routes))
        .service(web::scope("/control").configure(control::routes))
        .service(web::scope("/demo").configure(demo::routes));
}
