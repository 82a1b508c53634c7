//! Bluesky through Jetstream: the posts of the whole network, as JSON over a WebSocket.
//!
//! - `subscribe?wantedCollections=app.bsky.feed.post`: creates, edits and deletes of posts. Events about
//!   identities and accounts always come too. No credentials.
//! - `cursor=<microseconds>` resumes an earlier reading, on any host; times are only roughly in order, and each
//!   host has its own ([`position`]). On another host the reading goes back a minute: if the earlier host was
//!   further behind, some of what it had not sent is never read, which is reported as a gap ([`lag`]). A host keeps about 36 hours. For an older cursor it
//!   silently starts at its oldest event. On resuming, the last event that was read comes again; if the first event
//!   is later, there is a gap.
//! - A post is `(did, rkey)`. The stream contains no handles: they are looked up separately if the operator
//!   sets `items_url`, and a poll never waits for them ([`app_view`]). Without the lookup, an author who asks
//!   not to be shown in public is recognised only by a label on the post itself.
//! - `createdAt` is set by the author: the earlier of it and the stream's time counts. An edit is the same post
//!   and is not returned again. The stream reports deleted posts. It does not report the posts of a deleted
//!   account; [`Adapter::recheck`] finds them missing later.
//!
//! The socket stays open between polls ([`socket`]), for a caller with the cursor that the last poll returned.
//! With another cursor the stream is opened there, on the next host if this one failed. One poll takes the
//! events within [`GATHER`] of the first event, and waits up to [`IDLE`] for the first: a silent stream costs
//! one poll a second, a busy one four.
//!
//! Compression is not used: it needs a dictionary and a C library to halve some 60 kB/s.

mod app_view;
mod event;
pub(crate) mod kind;
mod lag;
mod position;
mod post;
mod socket;

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use domain::{Post, Timestamp};
use tokio::time::{Instant, timeout_at};
use url::Url;

use self::{
    app_view::AppView,
    event::Event,
    lag::Lags,
    position::{Position, Recent},
    socket::{Item, Reader},
};
use crate::{
    Adapter, Budget, Cursor, Fetch, Gap, PollError, PollLimits, Polled, RecheckResult, Skipped,
    address::below, fetch::USER_AGENT,
};

/// The only feed: every post of the network.
pub(crate) const JETSTREAM: &str = "jetstream";
/// The position's name in the cursor.
const POSITION: &str = "stream";
/// The network's public API.
pub(crate) const PUBLIC_API: &str = "https://public.api.bsky.app";

const GATHER: Duration = Duration::from_millis(250);
const IDLE: Duration = Duration::from_secs(1);
/// Silence after which the stream is pinged; it is closed after the same time again.
const SILENCE: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of posts and deletions in one poll.
const MAX_POSTS: usize = 500;
const MAX_EVENTS: usize = 5_000;
/// Earliest start of a first reading: the network has too many posts for a backfill of a day.
const FIRST_LOOK_BACK: Duration = Duration::from_mins(1);
/// Allowed delay of the stream's beginning in microseconds, because the clocks of hosts differ.
const LATE: i64 = 10_000_000;

/// The hosts that the network's operators run. They are interchangeable.
const HOSTS: [&str; 4] = [
    "jetstream2.us-east.bsky.network",
    "jetstream1.us-east.bsky.network",
    "jetstream2.us-west.bsky.network",
    "jetstream1.us-west.bsky.network",
];

/// The adapter of kind `bluesky`.
pub struct Jetstream {
    hosts: Vec<Url>,
    /// Index of the next host, never reset.
    host: AtomicUsize,
    user_agent: String,
    budget: Arc<dyn Budget>,
    app_view: Option<AppView>,
    name_authors: bool,
    /// Open streams, by feed.
    readers: Mutex<HashMap<String, Reader>>,
    waits: Waits,
}

/// Timeouts of a poll.
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// Time to wait for more events after the first one.
    pub gather: Duration,
    /// Time to wait for the first event.
    pub idle: Duration,
    /// Silence after which the stream is pinged.
    pub silence: Duration,
    /// Time to wait for a connection to open.
    pub connect: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self {
            gather: GATHER,
            idle: IDLE,
            silence: SILENCE,
            connect: CONNECT_TIMEOUT,
        }
    }
}

/// Events that one poll has taken from the stream so far.
#[derive(Default)]
struct Taken {
    posts: Vec<Post>,
    deleted: Vec<String>,
    gap: Option<Gap>,
    /// True if any event was readable; `unreadable` if any was not.
    readable: bool,
    has_unreadable: bool,
    /// Skipped frames that were not met before.
    skipped: Vec<Skipped>,
    ended: Option<PollError>,
}

impl Jetstream {
    /// The first of `hosts` is tried first; the others replace it when it fails. Each connection takes a
    /// request out of `budget`.
    pub fn new(hosts: Vec<Url>, user_agent: Option<&str>, budget: Arc<dyn Budget>) -> Self {
        Self {
            hosts,
            host: AtomicUsize::new(0),
            user_agent: user_agent.unwrap_or(USER_AGENT).to_owned(),
            budget,
            app_view: None,
            name_authors: false,
            readers: Mutex::default(),
            waits: Waits::default(),
        }
    }

    /// Looks up posts at `url`, and authors' handles too if `name_authors` is set.
    #[must_use]
    pub fn with_app_view(mut self, url: Url, fetch: Arc<dyn Fetch>, name_authors: bool) -> Self {
        self.app_view = Some(AppView::new(url, fetch));
        self.name_authors = name_authors;
        self
    }

    #[must_use]
    pub fn with_waits(mut self, waits: Waits) -> Self {
        self.waits = waits;
        self
    }

    /// The stream at `cursor`: the open one if it is at this position, else a new one.
    async fn reader(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        at: &mut Recent,
    ) -> Result<Reader, PollError> {
        let open = self.readers().remove(what);
        if let Some(reader) = open.filter(|open| cursor.is_some() && open.given.as_ref() == cursor)
        {
            return Ok(reader);
        }
        let spent = |retry_after| PollError::BudgetSpent { retry_after };
        self.budget.request().await.map_err(spent)?;
        let (url, from) = self.address(at);
        let resumed = at.met.then_some(at.at);
        let opened = Reader::open(&url, &self.user_agent, resumed, self.waits).await;
        let mut opened = opened.inspect_err(|_| self.turn())?;
        opened.lags = Lags::open(at, from);
        Ok(opened)
    }

    /// Returns the address of the next connection, and where its stream begins.
    fn address(&self, at: &Recent) -> (Url, i64) {
        let host = self.host.load(Ordering::Relaxed) % self.hosts.len().max(1);
        let mut url = below(&self.hosts[host], "subscribe");
        let from = at.resume_at(&socket::host_name(&url));
        url.query_pairs_mut()
            .append_pair("wantedCollections", event::COLLECTION)
            .append_pair("maxMessageSizeBytes", &socket::MAX_RECORD_BYTES.to_string())
            .append_pair("cursor", &from.to_string());
        (url, from)
    }

    /// Switches to the next host for the next connection.
    fn turn(&self) {
        self.host.fetch_add(1, Ordering::Relaxed);
    }

    async fn take(&self, reader: &mut Reader, recent: &mut Recent, max_posts: usize) -> Taken {
        let mut taken = Taken::default();
        let mut until = Instant::now() + self.waits.idle;
        for _ in 0..MAX_EVENTS {
            if taken.posts.len() + taken.deleted.len() >= max_posts {
                break;
            }
            let event = match timeout_at(until, reader.items.recv()).await {
                Err(_) => break,
                Ok(Some(Item::Event(event))) => event,
                Ok(Some(Item::Ended(error))) => {
                    taken.ended = Some(error);
                    break;
                }
                Ok(None) => {
                    let gone = "the stream was not read for too long".into();
                    taken.ended = Some(PollError::Unavailable(crate::FetchError::Failed(gone)));
                    break;
                }
            };
            if !taken.readable {
                until = until.min(Instant::now() + self.waits.gather);
            }
            self.record(event, reader, recent, &mut taken);
        }
        taken
    }

    fn record(&self, event: Event, reader: &mut Reader, recent: &mut Recent, taken: &mut Taken) {
        if let Event::Unreadable { key, reason } = event {
            taken.has_unreadable = true;
            // A stream that is resumed sends some frames twice.
            if recent.meet(key, recent.at) {
                taken.skipped.push(Skipped {
                    id: None,
                    reason,
                    is_readable: false,
                });
            }
            return;
        }
        let Some(time) = event.time() else {
            return;
        };
        taken.readable = true;
        if let Some(left) = reader.resumed.take()
            && time > left.saturating_add(LATE)
        {
            taken.gap = Some(Gap {
                from: Timestamp::from_micros(left),
                to: Timestamp::from_micros(time),
                reason: "the stream no longer reaches back to the last position",
            });
        }
        recent.advance(time, &reader.host);
        match event {
            Event::Created { key, post, .. } => {
                if let Some(post) = &post {
                    let lag = time.saturating_sub(post.time.micros());
                    let gap = reader.lags.record(lag, recent);
                    taken.gap = taken.gap.take().or(gap);
                }
                if recent.meet(key, time) {
                    taken.posts.extend(post.map(|post| *post));
                }
            }
            Event::Deleted { uri, .. } => {
                taken.posts.retain(|post| post.id != uri);
                taken.deleted.push(uri);
            }
            Event::Inactive { did, .. } => {
                tracing::debug!(did, "an account became inactive");
                taken.posts.retain(|post| post.user.id != did);
            }
            Event::Renamed { did, handle, .. } => {
                if let Some(app_view) = &self.app_view {
                    app_view.rename(&did, &handle);
                }
            }
            Event::Other { .. } | Event::Unreadable { .. } => {}
        }
    }

    fn readers(&self) -> MutexGuard<'_, HashMap<String, Reader>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Adapter for Jetstream {
    fn default_interval(&self) -> Duration {
        IDLE
    }

    async fn poll(
        &self,
        what: &str,
        cursor: Option<&Cursor>,
        limits: &PollLimits,
    ) -> Result<Polled, PollError> {
        if !accepts(what) {
            return Err(PollError::NotFound(what.to_owned()));
        }
        let stored = cursor.and_then(|cursor| cursor.own::<Position>(POSITION));
        let mut recent = match stored {
            Some(position) => Recent::from(&position),
            None => Recent::beginning(beginning(limits)),
        };
        let before = (recent.at, recent.met);
        let mut reader = self.reader(what, cursor, &mut recent).await?;
        let max_posts = limits.max_posts.clamp(1, MAX_POSTS);
        let mut taken = self.take(&mut reader, &mut recent, max_posts).await;
        let moved = (recent.at, recent.met) != before;
        match taken.ended {
            // The events before the end count; the next poll resumes the stream.
            Some(_) if moved => self.turn(),
            Some(error) => {
                self.turn();
                return Err(error);
            }
            None if taken.has_unreadable && !taken.readable => {
                self.turn();
                return Err(PollError::Malformed(
                    "no event among the messages".to_owned(),
                ));
            }
            None => {}
        }
        if let Some(app_view) = self.app_view.as_ref().filter(|_| self.name_authors) {
            app_view.name_authors(&mut taken.posts).await;
        }
        taken.posts.sort_by_key(|post| post.time);
        if taken.readable || taken.has_unreadable {
            recent.renew();
        }
        let mut next = cursor.cloned().unwrap_or_else(Cursor::new);
        next.high_water = Timestamp::from_micros(recent.at);
        next.set_own(POSITION, &recent.position());
        if taken.ended.is_none() {
            reader.given = Some(next.clone());
            self.readers().insert(what.to_owned(), reader);
        }
        Ok(Polled {
            posts: taken.posts,
            deleted: taken.deleted,
            skipped: taken.skipped,
            cursor: next,
            gap: taken.gap,
            // This poll has already waited, so the next one may follow at once.
            more: true,
            not_modified: false,
            next_hint: None,
            notice: None,
            throttled: None,
        })
    }

    fn is_whole_network(&self, _what: &str) -> bool {
        true
    }

    fn recheck_batch(&self) -> usize {
        self.app_view.as_ref().map_or(0, |_| app_view::PER_CALL)
    }

    async fn recheck(&self, post_ids: &[String]) -> Result<RecheckResult, PollError> {
        let Some(app_view) = &self.app_view else {
            return Ok(RecheckResult::default());
        };
        let own = post_ids.iter().filter(|id| id.starts_with("at://"));
        let own: Vec<String> = own.collect::<HashSet<_>>().into_iter().cloned().collect();
        app_view.missing(&own).await.map(Into::into)
    }
}

/// Returns the post in one frame of the stream, received at `received`. For tests that supply frames without a
/// stream.
pub fn post_of_frame(frame: &str, received: Timestamp) -> Option<Post> {
    match Event::read(frame, received) {
        Event::Created { post, .. } => post.map(|post| *post),
        _ => None,
    }
}

/// Returns true if `what` is the stream.
pub(crate) fn accepts(what: &str) -> bool {
    what == JETSTREAM
}

/// The hosts to read from: `base_url`, and if it is one of the network operators' hosts, their others too.
pub(crate) fn hosts(base_url: &Url) -> Vec<Url> {
    let mut first = base_url.clone();
    let scheme = match base_url.scheme() {
        "https" => "wss",
        "http" => "ws",
        other => other,
    }
    .to_owned();
    // Between special schemes, this cannot fail.
    let _ = first.set_scheme(&scheme);
    let mut hosts = vec![first];
    if is_public(base_url) {
        let others = HOSTS
            .iter()
            .filter(|host| base_url.host_str() != Some(host));
        hosts.extend(others.filter_map(|host| Url::parse(&format!("wss://{host}")).ok()));
    }
    hosts
}

/// Returns true if the network's operators run the host of `base_url`.
pub(crate) fn is_public(base_url: &Url) -> bool {
    base_url
        .host_str()
        .is_some_and(|host| HOSTS.contains(&host))
}

/// Start of a first reading, in microseconds.
fn beginning(limits: &PollLimits) -> i64 {
    let now = Timestamp::now();
    // Polls may have failed since the feed was first watched.
    let watched = limits.first_watch_time.unwrap_or(now).min(now);
    let earliest = watched.minus(FIRST_LOOK_BACK);
    let start = limits.since.map_or(now, |since| since.max(earliest));
    start.min(watched).micros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_hosts_stand_in_for_each_other() {
        let hosts = |url: &str| hosts(&url.parse().unwrap());
        let public = hosts("wss://jetstream1.us-west.bsky.network");
        assert_eq!(public.len(), 4);
        assert_eq!(public[0].as_str(), "wss://jetstream1.us-west.bsky.network/");
        let own = hosts("http://localhost:6008/jetstream");
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].as_str(), "ws://localhost:6008/jetstream");
    }

    #[test]
    fn stored_position_is_written_as_it_was_read() {
        let stored = serde_json::json!({
            "version": 1,
            "highWater": "2026-07-04T14:38:08.085434Z",
            "seen": "",
            "stream": {
                "at": 1_783_175_888_085_434_i64,
                "met": true,
                "seen": [[1_783_175_887, "AAECAwQF"]],
                "host": "jetstream.example",
                "lag": -5,
                "reopened": {"at": 1_783_175_888_085_000_i64, "rewind": 3_000_000},
                "nonce": 7
            }
        });
        let mut cursor = Cursor::from_json(&stored).unwrap();
        let position: Position = cursor.own(POSITION).unwrap();
        cursor.set_own(POSITION, &position);
        assert_eq!(cursor.to_json(), stored);
    }

    #[test]
    fn first_read_of_bluesky_is_short() {
        let now = Timestamp::now();
        let start = |since, first_watch_time| {
            beginning(&PollLimits {
                since,
                first_watch_time,
                ..PollLimits::default()
            })
        };
        assert!(start(None, None) >= now.micros());
        let day = now.minus(Duration::from_hours(24));
        assert!(start(Some(day), None) >= now.minus(Duration::from_secs(61)).micros());
        let hour = now.minus(Duration::from_hours(1));
        let earliest = hour.minus(Duration::from_secs(60)).micros();
        assert_eq!(start(Some(day), Some(hour)), earliest);
        assert_eq!(start(Some(hour), Some(hour)), hour.micros());
    }
}
