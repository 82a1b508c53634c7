//! Runs Managers over posts of the past: new ones, and those for which somebody asked.
//!
//! First over the posts that are kept of a feed, for all Managers that wait for it at once. Where these do
//! not reach back far enough and the platform does, a look-back reads the feed with a cursor of its own.
//! One step at a time in a replica, beside the polls of fresh posts and within the half of a platform's budget
//! that they leave; a step that is not finished is done again by whoever comes next, and makes no Scan twice.
//!
//! A post that comes while this goes on is the poll's business: before kept posts are read, every poll that
//! may not have known the Manager has ended ([`feeds::wait_for_polls`]), and what it read is then kept.
//!
//! Idle, this costs two small queries a second.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use backbone::Backbone;
use domain::{FeedName, ManagerName, Post, Reach, Timestamp};
use events::TraceContext;
use matching::Index;
use platforms::{Cursor, PollError, PollLimits, Polled};
use runtime::Config;
use store::{
    AsyncConnection, AsyncPgConnection,
    backfills::{
        self, Asked, KeptPosts, Rest, Waiting,
        look_backs::{self, LookBack, Reader},
    },
    feeds::{self, Trouble},
    plans as plan_store, recent_posts,
    scans::{self, NewScan},
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::{
    budget,
    find::find,
    metrics,
    plans::Plans,
    poll::tell_of,
    watched::{Watched, classify},
};

const LOOK: Duration = Duration::from_secs(1);
/// Between steps while there is more to do: others want a core too.
const BREATH: Duration = Duration::from_millis(20);
/// Managers that are run over a feed's kept posts at once.
const AT_ONCE: i64 = 100;
/// Posts of the first step of a look-back, and of a later one at most.
const POSTS: usize = 500;
const MOST_POSTS: usize = 5_000;
/// Between the steps of one look-back.
const BETWEEN_STEPS: Duration = Duration::from_millis(500);
const DEADLINE: Duration = Duration::from_secs(300);
/// Scans in one transaction, save for the last few of a step.
const BLOCK: usize = 1_000;
/// Of a feed without kept posts, what may still come to its polls is theirs.
const FRESH: Duration = Duration::from_secs(3_600);
const RETRY: Duration = Duration::from_secs(15);
const MAX_RETRY: Duration = Duration::from_secs(3_600);
const MAX_FAILURES: u32 = 8;
/// So often a Manager's part of it is tried, where trying again may change something.
const SET_ASIDE_AFTER: i32 = 8;
const MAX_REMATCHES: u32 = 20;

pub(crate) struct Backfill {
    watched: HashMap<String, Watched>,
    config: Arc<Config>,
    backbone: Backbone,
    plans: Arc<Plans>,
}

impl Backfill {
    pub(crate) fn new(
        watched: Vec<Watched>,
        config: Arc<Config>,
        backbone: Backbone,
        plans: Arc<Plans>,
    ) -> Self {
        let named = watched.into_iter();
        Self {
            watched: named.map(|one| (one.name().to_owned(), one)).collect(),
            config,
            backbone,
            plans,
        }
    }

    pub(crate) async fn run(self, shutdown: CancellationToken) {
        let mut failing = false;
        loop {
            let wait = match self.step().await {
                Ok(did) => {
                    failing = false;
                    if did { BREATH } else { LOOK }
                }
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        let error = anyhow::Error::from(error);
                        tracing::warn!("cannot backfill now: {error:#}");
                    }
                    LOOK
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Whether there was something to do.
    async fn step(&self) -> Result<bool, store::Error> {
        let platforms: Vec<&str> = self.watched.keys().map(String::as_str).collect();
        let mut conn = self.backbone.pool.get().await?;
        let waiting = backfills::next_waiting(&mut conn, &platforms).await?;
        if let Some(waiting) = waiting {
            feeds::wait_for_polls(&mut conn, waiting.feed.as_str()).await?;
            drop(conn);
            return self.match_kept(&waiting).await;
        }
        let (replica, take_over) = (self.backbone.replica, self.backbone.may_take_over());
        let leased = look_backs::lease(&mut conn, &platforms, replica, take_over).await?;
        drop(conn);
        match leased {
            Some(look_back) => {
                let (id, failures) = (look_back.id, look_back.failure_count);
                let stored = self.look_back(look_back).await;
                if let Err(error) = &stored {
                    // The platform is not asked without a pause for what cannot be stored.
                    let wait = backoff(failures);
                    let mut conn = self.backbone.pool.get().await?;
                    if is_refused(error) && failures + 1 >= MAX_FAILURES {
                        look_backs::give_up(&mut conn, id, &error.to_string()).await?;
                    } else {
                        look_backs::fail(&mut conn, id, replica, false, wait).await?;
                    }
                }
                stored.map(|()| true)
            }
            None => Ok(false),
        }
    }

    async fn match_kept(&self, waiting: &Waiting) -> Result<bool, store::Error> {
        match self.match_some(waiting, AT_ONCE).await {
            Err(error) if is_refused(&error) => self.match_one(waiting).await,
            matched => matched,
        }
    }

    /// Matches for the one that has waited longest, and sets it aside where that cannot be stored.
    async fn match_one(&self, waiting: &Waiting) -> Result<bool, store::Error> {
        let mut conn = self.backbone.pool.get().await?;
        let (asked, _) = backfills::waiting_for(&mut conn, waiting, 1).await?;
        drop(conn);
        let Some(first) = asked.first() else {
            return Ok(false);
        };
        match self.match_some(waiting, 1).await {
            Err(error) if is_refused(&error) => {
                let mut conn = self.backbone.pool.get().await?;
                set_aside(&mut conn, waiting, first.manager, error).await?;
                Ok(true)
            }
            matched => matched,
        }
    }

    async fn match_some(&self, waiting: &Waiting, most: i64) -> Result<bool, store::Error> {
        for _ in 0..MAX_REMATCHES {
            let index = self.plans.index();
            let (asked, rests, posts) = {
                let mut conn = self.backbone.pool.get().await?;
                if plan_store::version(&mut conn).await? > index.version() {
                    drop(conn);
                    self.plans.refresh().await?;
                    continue;
                }
                let (asked, kept) = backfills::waiting_for(&mut conn, waiting, most).await?;
                let rests: HashMap<ManagerName, (Timestamp, Rest)> = asked
                    .iter()
                    .map(|one| (one.manager, self.rest(waiting, one, &kept)))
                    .collect();
                let since = rests.values().map(|(since, _)| *since).min();
                let posts = match since.filter(|_| kept.is_read) {
                    Some(since) => recent_posts::since(&mut conn, &waiting.feed, since).await?,
                    None => Vec::new(),
                };
                (asked, rests, posts)
            };
            if asked.is_empty() {
                return Ok(false);
            }
            let wanted = |manager: &ManagerName, post: &Post| {
                let since = rests.get(manager).map(|(since, _)| *since);
                since.is_some_and(|since| post.time >= since)
            };
            let matches = find(&self.plans, &index, &waiting.feed, &posts, wanted);
            let matches = self.plans.decide(matches).await;
            let span = span(waiting, &asked);
            let mut conn = self.backbone.pool.get().await?;
            let version = index.version();
            let blocks = store_blocks(&mut conn, version, waiting, last_of(&matches).0);
            let Some(mut made) = blocks.instrument(span.clone()).await? else {
                continue;
            };
            let stored = conn.transaction(async |conn| {
                if plan_store::version(conn).await? > version {
                    return Ok(None);
                }
                let claimed = backfills::claim(conn, waiting, &asked).await?;
                let claimed: BTreeSet<ManagerName> = claimed.into_iter().collect();
                let mut last = last_of(&matches).1.to_vec();
                last.retain(|one| claimed.contains(&one.manager));
                let made = record_past(conn, waiting, &last).await?;
                let rests: Vec<Rest> = claimed
                    .iter()
                    .filter_map(|manager| rests.get(manager).map(|(_, rest)| rest.clone()))
                    .collect();
                backfills::matched_kept(conn, waiting, &rests).await?;
                Ok::<_, store::Error>(Some((made, rests.len())))
            });
            let Some((last, managers)) = stored.instrument(span).await? else {
                continue;
            };
            made += last;
            self.tell("kept", &waiting.feed, made);
            tracing::debug!(feed.name = %waiting.feed, managers, posts = posts.len(), scans = made, "matched kept posts");
            return Ok(managers > 0);
        }
        Ok(false)
    }

    /// From when on a Manager is to hear the kept posts, and what is left then.
    fn rest(&self, waiting: &Waiting, asked: &Asked, kept: &KeptPosts) -> (Timestamp, Rest) {
        let window = self.config.scanner.backfill;
        let since = asked
            .since
            .unwrap_or_else(|| asked.create_time.minus(window));
        let now = Timestamp::now();
        // What the first poll of a feed brings, it brings to everybody who is there.
        let covered = match (kept.is_read, kept.since) {
            (true, Some(kept)) => kept,
            (true, None) => asked.create_time.minus(FRESH),
            (false, _) => asked.create_time.minus(window),
        };
        let oldest = match self.reach_of(&waiting.feed) {
            Reach::Nothing => covered,
            Reach::Time(time) => now.minus(time.min(Duration::from_secs(3_650 * 86_400))),
            Reach::Posts(_) => since,
        };
        let from = since.max(oldest);
        let look_back = (from < covered).then_some((from, covered));
        let rest = Rest {
            manager: asked.manager,
            // Where nothing is kept, nothing of before can be had.
            reach_time: match kept.since {
                None if kept.is_read => asked.create_time,
                _ => since.max(covered),
            },
            look_back,
        };
        (since, rest)
    }

    fn reach_of(&self, feed: &FeedName) -> Reach {
        let watched = self.watched.get(feed.platform());
        watched.map_or(Reach::Nothing, |watched| {
            platforms::registry::reach(&watched.kind)
        })
    }

    async fn look_back(&self, look_back: LookBack) -> Result<(), store::Error> {
        let Some(watched) = self.watched.get(look_back.feed.platform()) else {
            return Ok(());
        };
        let cursor = look_back.cursor.as_ref().and_then(Cursor::from_json);
        let known = cursor.as_ref().map_or(0, Cursor::known);
        let limits = PollLimits {
            since: Some(look_back.since),
            max_posts: known.clamp(POSTS, MOST_POSTS),
            ..PollLimits::default()
        };
        let adapter = &watched.platform.adapter;
        let poll = adapter.poll(look_back.feed.what(), cursor.as_ref(), &limits);
        let answer = tokio::time::timeout(DEADLINE, budget::undertake(true, poll)).await;
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        match answer.map_err(cut_off).flatten() {
            Ok(polled) => self.store(&look_back, &polled).await,
            Err(error) => self.fail(watched, &look_back, error).await,
        }
    }

    async fn store(&self, look_back: &LookBack, polled: &Polled) -> Result<(), store::Error> {
        let waiting = Waiting {
            feed: look_back.feed.clone(),
            notify: look_back.notify,
        };
        let (id, replica) = (look_back.id, self.backbone.replica);
        for _ in 0..MAX_REMATCHES {
            let index: Arc<Index> = self.plans.index();
            let readers: HashMap<ManagerName, Reader> = {
                let mut conn = self.backbone.pool.get().await?;
                let readers = look_backs::readers(&mut conn, id).await?;
                readers.into_iter().map(|one| (one.manager, one)).collect()
            };
            let wanted = |manager: &ManagerName, post: &Post| {
                let reader = readers.get(manager);
                reader.is_some_and(|one| (one.since..one.before).contains(&post.time))
            };
            let matches = find(&self.plans, &index, &look_back.feed, &polled.posts, wanted);
            let matches = self.plans.decide(matches).await;
            let mut conn = self.backbone.pool.get().await?;
            let version = index.version();
            // What failed before may be one Manager's.
            let apart = look_back.failure_count > 0;
            let (before, last) = last_of(&matches);
            let (stored, last) = if apart {
                let stored = store_apart(&mut conn, version, &waiting, &matches).await?;
                (stored, &[][..])
            } else {
                let stored = store_blocks(&mut conn, version, &waiting, before).await?;
                (stored, last)
            };
            let Some(mut made) = stored else {
                drop(conn);
                self.plans.refresh().await?;
                continue;
            };
            let unreached = polled.gap.as_ref().map(|gap| {
                let newest = polled.posts.first().map(|post| post.time);
                gap.to.or(newest).unwrap_or(look_back.since)
            });
            let stored = conn.transaction(async |conn| {
                if !look_backs::lock(conn, id, replica).await? {
                    return Ok(Some(0));
                }
                if plan_store::version(conn).await? > version {
                    return Ok(None);
                }
                let made = record_past(conn, &waiting, last).await?;
                if polled.more {
                    let cursor = polled.cursor.to_json();
                    look_backs::go_on(conn, id, cursor, unreached, BETWEEN_STEPS).await?;
                } else {
                    look_backs::finish(conn, id, unreached).await?;
                }
                Ok::<_, store::Error>(Some(made))
            });
            let Some(rest) = stored.await? else {
                drop(conn);
                self.plans.refresh().await?;
                continue;
            };
            made += rest;
            self.tell("look_back", &look_back.feed, made);
            tracing::debug!(feed.name = %look_back.feed, posts = polled.posts.len(), scans = made, more = polled.more, "looked back");
            return Ok(());
        }
        // Plans change faster than a step can be matched.
        let mut conn = self.backbone.pool.get().await?;
        look_backs::fail(&mut conn, id, replica, true, RETRY).await?;
        Ok(())
    }

    async fn fail(
        &self,
        watched: &Watched,
        look_back: &LookBack,
        error: PollError,
    ) -> Result<(), store::Error> {
        let (trouble, reason) = classify(&error);
        let put_off = trouble == Trouble::BudgetSpent;
        let asked = error.retry_after().unwrap_or_default();
        let wait = if put_off {
            asked.max(RETRY)
        } else {
            backoff(look_back.failure_count).max(asked)
        };
        let error = format!("{:#}", anyhow::Error::from(error));
        watched.tell_failure(look_back.feed.as_str(), reason, &error);
        let (id, replica) = (look_back.id, self.backbone.replica);
        let mut conn = self.backbone.pool.get().await?;
        if !put_off && look_back.failure_count + 1 >= MAX_FAILURES {
            tracing::warn!(feed.name = %look_back.feed, error, "cannot look back, and gives up");
            let finished = conn.transaction(async |conn| {
                if look_backs::lock(conn, id, replica).await? {
                    look_backs::finish(conn, id, Some(Timestamp::now())).await?;
                }
                Ok::<_, store::Error>(())
            });
            return finished.await;
        }
        look_backs::fail(&mut conn, id, replica, put_off, wait).await?;
        Ok(())
    }

    fn tell(&self, source: &str, feed: &FeedName, made: usize) {
        if made > 0 {
            self.backbone.outbox.wake();
            metrics::BACKFILLS
                .with_label_values(&[source])
                .inc_by(made as u64);
            tracing::info!(feed.name = %feed, scans = made, source, "found posts of the past");
        }
    }
}

/// Goes on with the trace of the one that asked; several have a trace that is linked to each of theirs.
fn span(waiting: &Waiting, asked: &[Asked]) -> Span {
    let span = tracing::info_span!(parent: None, "backfill feed", feed.name = %waiting.feed, managers = asked.len());
    let traces = asked
        .iter()
        .map(|one| TraceContext::of_traceparent(one.traceparent.clone()));
    match asked.len() {
        1 => traces.for_each(|trace| trace.set_as_parent_of(&span)),
        _ => traces.for_each(|trace| trace.link_to(&span)),
    }
    span
}

fn backoff(failures: u32) -> Duration {
    RETRY.saturating_mul(1 << failures.min(16)).min(MAX_RETRY)
}

/// What goes before the last transaction, in blocks, and what goes into it.
fn last_of<'m, 'a>(matches: &'m [NewScan<'a>]) -> (&'m [NewScan<'a>], &'m [NewScan<'a>]) {
    matches.split_at(matches.len().saturating_sub(1) / BLOCK * BLOCK)
}

/// Stores all blocks but the last; `None` when plans changed since the posts were matched.
async fn store_blocks(
    conn: &mut AsyncPgConnection,
    version: i64,
    waiting: &Waiting,
    blocks: &[NewScan<'_>],
) -> Result<Option<usize>, store::Error> {
    let mut made = 0;
    for block in blocks.chunks(BLOCK) {
        let stored = conn.transaction(async |conn| {
            if plan_store::version(conn).await? > version {
                return Ok(None);
            }
            let made = record_past(conn, waiting, block).await?;
            Ok::<_, store::Error>(Some(made))
        });
        match stored.await? {
            Some(some) => made += some,
            None => return Ok(None),
        }
    }
    Ok(Some(made))
}

/// As [`store_blocks`], each Manager's by themselves: whose cannot be stored is set aside.
async fn store_apart(
    conn: &mut AsyncPgConnection,
    version: i64,
    waiting: &Waiting,
    matches: &[NewScan<'_>],
) -> Result<Option<usize>, store::Error> {
    let mut by_manager: BTreeMap<ManagerName, Vec<NewScan<'_>>> = BTreeMap::new();
    for one in matches {
        by_manager.entry(one.manager).or_default().push(one.clone());
    }
    let mut made = 0;
    for (manager, own) in by_manager {
        match store_blocks(conn, version, waiting, &own).await {
            Ok(Some(some)) => made += some,
            Ok(None) => return Ok(None),
            Err(error) if is_refused(&error) => set_aside(conn, waiting, manager, error).await?,
            Err(error) => return Err(error),
        }
    }
    Ok(Some(made))
}

/// Whether it may be for the values that they could not be stored, and not for the way to the database.
fn is_refused(error: &store::Error) -> bool {
    match error {
        store::Error::Pool(_) => false,
        store::Error::Query(error) => !store::is_passing(error),
        store::Error::Sealed(_) | store::Error::Json(_) => true,
    }
}

async fn set_aside(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    manager: ManagerName,
    error: store::Error,
) -> Result<(), store::Error> {
    let most = if error.is_refusal() {
        1
    } else {
        SET_ASIDE_AFTER
    };
    let error = format!("{:#}", anyhow::Error::from(error));
    let for_good = backfills::set_aside(conn, waiting, manager, &error, most).await?;
    let (feed, name) = (&waiting.feed, manager);
    if for_good {
        tracing::warn!(manager.name = %name, feed.name = %feed, error, "a backfill cannot be stored, and is set aside");
    } else {
        tracing::info!(manager.name = %name, feed.name = %feed, error, "a backfill cannot be stored now");
    }
    Ok(())
}

/// Stores Scans of the past: with their events where they are to be delivered.
async fn record_past(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    matches: &[NewScan<'_>],
) -> Result<usize, store::Error> {
    let now = Timestamp::now();
    let made = scans::record_past(conn, &waiting.feed, matches, now, !waiting.notify).await?;
    if waiting.notify {
        tell_of(conn, &made).await?;
    }
    Ok(made.len())
}
