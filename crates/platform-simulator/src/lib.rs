//! Implements the platforms' APIs on a list of posts: for tests, end-to-end runs and the demo.
//!
//! | Path | Speaks as |
//! |---|---|
//! | `/hackernews/api/v1/…` | Algolia: `search_by_date`, `search`, `items/{id}` |
//! | `/hackernews/v0/…` | Firebase: `newstories.json` and its kin, `maxitem.json`, `item/{id}.json` |
//! | `/lemmy/api/v3/…` | Lemmy 0.19: `site`, `post/list`, `post`, `community`, `search` |
//! | `/discourse/…` | Discourse: `latest.json`, `c/…/l/latest.json`, `t/{id}.json`, `posts.json`, … |
//! | `/reddit/…` | Reddit: its tokens, `r/{group}/new`, `r/{group}/comments`, `api/info`, … |
//! | `/linkedin/rest/posts` | LinkedIn's Posts API |
//! | `/facebook/{version}/{page}/feed` | the Graph API's feed of a Page |
//! | `/bluesky/…` | Jetstream at `subscribe`, by WebSocket; `xrpc/…`: `getProfiles`, `getPosts` |
//! | `/mastodon/…` | a Mastodon instance: timelines, statuses, search of hashtags |
//! | `/x/2/…` | X: recent search, posts and users by id |
//! | `/lobsters/…` | Lobsters: `newest`, `t/{tag}`, `s/{id}` |
//! | `/feeds/{name}.rss`, `.atom`, `.json` | a feed of 50 entries, with `ETag` and `Last-Modified` |
//! | `/control/…` | takes posts and faults, returns counts of requests and times of responses ([`control`]) |
//! | `/demo/` | the page of the demo's customer ([`demo`]) |
//!
//! It keeps the pitfalls of the originals: Algolia never returns more than 1,000 hits, Lemmy refuses more than
//! 50 posts and puts pinned ones first, an item of Firebase may be `null` for a while.
//!
//! It runs on a separate thread and stops when dropped. All data is in memory and lost then.

mod ask;
mod bill;
mod control;
pub mod demo;
mod discourse;
mod facebook;
mod faults;
mod feeds;
mod hackernews;
mod ids;
mod instance;
mod jetstream;
mod kinds;
mod lemmy;
mod linkedin;
pub mod load;
mod lobsters;
mod mastodon;
mod meddle;
mod memory;
mod names;
mod post;
pub mod reddit;
mod stream;
mod world;
mod x;

use std::{io, net::SocketAddr, sync::Arc, thread, time::Duration};

use actix_web::{App, HttpServer, dev::ServerHandle, middleware::from_fn, rt::System, web};
use domain::Timestamp;
use platforms::{Settings, Source};
use runtime::config::Access;
use url::Url;

pub use bill::XBill;
pub use faults::{Fault, FaultKind};
pub use instance::MastodonRules;
pub use memory::InMemory;
pub use names::{
    BLOG, BLUESKY, DISCOURSE, FACEBOOK, HACKER_NEWS, LEMMY, LINKEDIN, LOBSTERS, MASTODON, REDDIT, X,
};
pub use post::{NewPost, Published};

/// A running simulator.
pub struct Simulator {
    addr: SocketAddr,
    server: ServerHandle,
    world: Arc<world::World>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Simulator {
    /// Starts on `addr`; port 0 picks a free one. It serves requests when this returns.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub fn start(addr: SocketAddr) -> io::Result<Self> {
        Self::start_as(addr, None)
    }

    /// Like [`Simulator::start`], but posts and pages use `public_url` as their address.
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
                            .wrap(from_fn(meddle::meddle))
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
                            // This fails only if the caller is gone.
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

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `http://<address>` or the public address, without a path.
    pub fn base_url(&self) -> String {
        self.world.base_url().to_owned()
    }

    /// The page of the demo's customer.
    pub fn demo_page_url(&self) -> String {
        format!("{}/demo/", self.world.base_url())
    }

    /// Three platforms on this simulator: Hacker News, a Lemmy instance, and a blog's feed.
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

    /// A platform of `kind`, named like it, on this simulator: for the kinds that [`Simulator::settings`]
    /// leaves out. Its credentials are valid.
    pub fn settings_of(&self, kind: &str) -> Settings {
        let url = Url::parse(&format!("{}/{kind}", self.world.base_url())).ok();
        let access = match kind {
            X => Access {
                token: Some("good".into()),
                posts_per_day: Some(1_000_000),
                ..Access::default()
            },
            REDDIT => Access {
                client_id: Some(reddit::CLIENT_ID.to_owned()),
                client_secret: Some(reddit::CLIENT_SECRET.into()),
                user_agent: Some("linux:org.example.earshot:1 (by /u/someone)".to_owned()),
                ..Access::default()
            },
            _ => Access::default(),
        };
        Settings {
            name: kind.to_owned(),
            kind: kind.to_owned(),
            items_url: url.clone().filter(|_| kind == BLUESKY),
            base_url: url,
            poll_interval: Some(Duration::from_secs(1)),
            access,
            ..Settings::default()
        }
    }

    /// Publishes posts, as `POST /control/posts` does.
    pub fn publish(&self, posts: Vec<NewPost>) -> Vec<Published> {
        self.world.publish(posts)
    }

    /// The time when each post was first part of a response, by its `Post.id`, in microseconds.
    pub fn served(&self) -> std::collections::BTreeMap<String, i64> {
        self.world.served()
    }

    /// Forgets all posts except the newest and the pinned ones, because every response scans all posts.
    pub fn keep_newest(&self, number: usize) {
        self.world.keep_newest(number);
    }

    /// Deletes a post, as its author would. Returns false if it does not exist.
    pub fn delete(&self, id: u64) -> bool {
        self.world.delete(id)
    }

    /// Hides a post until it is revealed, as moderators do. Returns false if it does not exist.
    pub fn hide(&self, id: u64) -> bool {
        self.world.set_hidden(id, true)
    }

    /// Shows a hidden post. Returns false if it does not exist.
    pub fn reveal(&self, id: u64) -> bool {
        self.world.set_hidden(id, false)
    }

    /// Changes a post's text. Returns false if it does not exist.
    pub fn edit(&self, id: u64, text: &str) -> bool {
        self.world.edit(id, text)
    }

    /// Invalidates all of Reddit's tokens. New ones live so many seconds, or an hour without a value.
    pub fn end_tokens(&self, lifetime_seconds: i64) {
        self.world.renew_tokens(lifetime_seconds);
    }

    /// Sets the clock and stops it.
    pub fn set_now(&self, now: Timestamp) {
        self.world.set_now(now);
    }

    /// Bluesky: closes all streams, and each later one after so many events.
    pub fn cut_streams(&self, close_after: Option<u64>) {
        self.world.jetstream.cut(close_after);
    }

    /// Bluesky: the newest time of an event of the stream.
    pub fn newest_event(&self) -> Option<Timestamp> {
        self.world.jetstream.newest()
    }

    /// Bluesky: the maximum number of streams open at the same time.
    pub fn most_streams(&self) -> usize {
        self.world.jetstream.most_open()
    }

    /// Bluesky: sets the maximum age of a cursor.
    pub fn set_look_back(&self, look_back: Duration) {
        self.world.jetstream.set_look_back(look_back);
    }

    /// Bluesky: deactivates an author's account.
    pub fn end_account(&self, author: &str) {
        self.world
            .jetstream
            .account(author, false, self.world.now());
    }

    /// Mastodon: changes the settings of the instance.
    pub fn set_mastodon(&self, rules: MastodonRules) {
        *self.world.mastodon.get() = rules;
    }

    /// X: posts billed so far.
    pub fn x_bill(&self) -> XBill {
        self.world.x.bill()
    }

    /// Injects a fault into the next responses of a platform.
    pub fn fail(&self, fault: Fault) {
        self.world.faults.add(fault);
    }

    /// Number of requests to paths that start with `path`.
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
        // The command is sent at once; the future only waits for its end.
        drop(self.server.stop(false));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn routes(config: &mut web::ServiceConfig) {
    config
        .route("/bluesky/subscribe", web::get().to(jetstream::subscribe))
        .service(web::scope("/feeds").configure(feeds::routes))
        .service(web::scope("/control").configure(control::routes))
        .service(web::scope("/demo").configure(demo::routes));
    for (name, answer) in kinds::KINDS {
        ask::serve(config, &format!("/{name}"), answer);
    }
}
