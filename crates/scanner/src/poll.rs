//! One poll: from the platform's answer to the committed Scans.
//!
//! A poll without new posts costs one transaction of four statements; one with posts five more (they are
//! kept, and counted twice), one with matches nine more for each [`BLOCK`] of them. What the platform says is
//! deleted costs one to five. Of a stream that brings nothing only one poll in a second is stored. Nothing is
//! held open while the platform is waited for, save the lease.
//!
//! The poller of a whole network's stream keeps its lease from poll to poll, until it stops, fails or
//! dies: at each change of hands some seconds of the network are read twice.
//!
//! A poll that matches for very many Managers stores its Scans in blocks, and the cursor with the last: who
//! dies between them leaves posts that are read again, and whose Scans are there already.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use backbone::Backbone;
use domain::{Post, ScanName, Timestamp};
use events::ScanCreated;
use matching::Index;
use platforms::{Cursor, PollError, PollLimits, Polled, Throttled, budget::Left};
use runtime::Config;
use store::{
    AsyncPgConnection, erasure,
    feeds::{
        self, DayCounts, FeedGap, IdCounts, LeasedFeed, Next, PollOutcome, QuarantineKind,
        Quarantined, Reading, Trouble,
    },
    keyed, outbox, plans as plan_store, recent_posts,
    scans::{self, NewScan, Origin, ScanCounter},
};

use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Span};

use crate::{
    adapt, budget,
    find::find,
    metrics,
    plans::{Plans, backfill_start},
    watched::{Watched, classify},
};

mod apart;
mod ids;
mod late;

use late::Late;

/// Deadline for one poll. It leaves time for what begins just before [`PollLimits::max_time`]: a page that waits for the
/// budget as long as requests may wait, the page before it, and their answers.
const DEADLINE: Duration = Duration::from_secs(300);
/// A poll that takes longer is slow, and so is the next one of its feed taken to be.
pub(crate) const SLOW: Duration = Duration::from_secs(5);
/// For a stream: how long polls without posts continue before their cursor is stored.
const STREAM_TURN: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(10);
/// Scans in one transaction, except for the last few of a poll.
const BLOCK: usize = 2_000;
const MAX_BACKOFF: Duration = Duration::from_secs(3_600);
/// Number of refusals in a row that count as temporary.
const SLIPS: u32 = 3;
const STORE_RETRY: Duration = Duration::from_millis(500);
const MAX_STORE_RETRY: Duration = Duration::from_secs(60);
/// Losing against changing plans or quotas this often in a row means that something else is wrong.
const MAX_REMATCHES: u32 = 20;

pub(crate) struct Poll {
    pub(crate) watched: Watched,
    pub(crate) config: Arc<Config>,
    pub(crate) backbone: Backbone,
    pub(crate) plans: Arc<Plans>,
    pub(crate) feed: LeasedFeed,
    pub(crate) shutdown: CancellationToken,
}

/// State that the next poll under the same lease begins with.
struct Read {
    cursor: Cursor,
    posts_per_day: f64,
    time: Instant,
}

/// The result of a poll, to be stored.
struct Found<'a> {
    index: &'a Index,
    matches: &'a [NewScan<'a>],
    polled: &'a Polled,
    posts_per_day: f64,
    late: &'a Late,
    ids: &'a IdCounts,
    next: Next,
}

/// The stored part of a poll.
#[derive(Default)]
struct Batch {
    made: Vec<ScanName>,
    /// Number of matches that wait for room in a quota.
    refused: usize,
    /// The oldest time that is still kept, if older posts had to be removed.
    kept_cut: Option<Timestamp>,
}

/// How the transaction at the end went.
enum Stored {
    Scans {
        batch: Batch,
        /// How many posts were blanked.
        erased: usize,
        /// The posts that were skipped.
        quarantined: Vec<Quarantined>,
        /// The lease goes on.
        kept: bool,
    },
    /// Another replica has the feed now, or the database is older than this replica's cursor: the same posts
    /// are read again.
    LeaseLost,
    /// Plans changed since the posts were matched.
    Behind,
}

impl Poll {
    /// Polls once; a stream again and again, for as long as the lease is kept.
    pub(crate) async fn run(mut self) {
        while let Some(read) = self.poll().instrument(self.span()).await {
            self.feed = LeasedFeed {
                cursor: Some(read.cursor.to_json()),
                posts_per_day: Some(read.posts_per_day),
                failure_count: 0,
                late: Duration::ZERO,
                unread: Some(read.time.elapsed()),
                ..self.feed
            };
        }
    }

    fn span(&self) -> Span {
        tracing::info_span!("poll feed", feed.name = %self.feed.name.masked(), feed.platform = self.watched.name())
    }

    /// Polls once. What it read, where the lease is kept.
    async fn poll(&self) -> Option<Read> {
        let begin = Instant::now();
        let (outcome, kept) = match self.read().await {
            Ok(mut polled) => {
                let slow = begin.elapsed() > SLOW;
                let mut late = self.add_late(&mut polled).await;
                let ids = self.account(&mut polled, &mut late).await;
                match self.store(polled, &late, &ids, begin, slow).await {
                    Ok(stored) => stored,
                    Err(error) => {
                        self.fail_to_store(error.into()).await;
                        ("store_failed", None)
                    }
                }
            }
            Err(error) => {
                self.fail(error, begin).await;
                ("failed", None)
            }
        };
        metrics::POLL_DURATION
            .with_label_values(&[self.watched.name(), outcome])
            .observe(begin.elapsed().as_secs_f64());
        kept
    }

    /// The platform's answer; of a stream that brings nothing, the last of a second.
    async fn read(&self) -> Result<Polled, PollError> {
        let stored = self.feed.cursor.as_ref();
        let mut cursor = stored.and_then(Cursor::from_json);
        if cursor.is_none() && stored.is_some() {
            tracing::warn!(feed.name = %self.feed.name.masked(), "the cursor cannot be read: starting anew");
        }
        let limits = PollLimits {
            since: Some(backfill_start(self.config.scanner.backfill)),
            ..PollLimits::default()
        };
        let begin = Instant::now();
        loop {
            let adapter = &self.watched.platform.adapter;
            let poll = adapter.poll(self.feed.name.what(), cursor.as_ref(), &limits);
            let answer = tokio::time::timeout(
                DEADLINE,
                budget::undertake(false, Some(&self.feed.name), poll),
            );
            let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
            let polled = answer.await.map_err(cut_off)??;
            let is_empty = polled.posts.is_empty() && polled.deleted.is_empty();
            let goes_on = self.is_stream() && polled.more && is_empty && polled.gap.is_none();
            if !goes_on || begin.elapsed() >= STREAM_TURN {
                return Ok(polled);
            }
            cursor = Some(polled.cursor);
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Matches, and commits what matched with the cursor; again when plans have changed meanwhile. How it went
    /// in a word, and what was read where the lease is kept.
    async fn store(
        &self,
        polled: Polled,
        late: &Late,
        ids: &IdCounts,
        begin: Instant,
        slow: bool,
    ) -> Result<(&'static str, Option<Read>), store::Error> {
        let now = Timestamp::now();
        let posts_per_day = adapt::posts_per_day(
            self.feed.posts_per_day,
            self.feed.unread,
            &polled.posts,
            now,
        );
        let next = Next {
            poll_in: self.wait(&polled, posts_per_day),
            slow,
            keeps_lease: self.is_stream() && polled.more && !self.shutdown.is_cancelled(),
        };
        for _ in 0..MAX_REMATCHES {
            let index = self.plans.index();
            let matches = find(
                &self.plans,
                &index,
                &self.feed.name,
                &polled.posts,
                |_, _| true,
            );
            let matches = self.plans.decide(matches).await;
            let span = tracing::info_span!("store scans", scans = matches.len());
            let found = Found {
                index: &index,
                matches: &matches,
                polled: &polled,
                posts_per_day,
                late,
                ids,
                next,
            };
            let stored = match self.commit(&found).instrument(span.clone()).await {
                Err(error) if self.may_be_of_a_post(&error) => {
                    self.commit_apart(&found).instrument(span).await
                }
                stored => stored,
            };
            let stored = match stored {
                Err(store::Error::QuotaRace) => continue,
                stored => stored?,
            };
            match stored {
                Stored::Behind => self.plans.refresh().await?,
                Stored::LeaseLost => {
                    tracing::info!(feed.name = %self.feed.name.masked(), "another replica took the feed over, or the database lost its last polls");
                    return Ok(("lease_lost", None));
                }
                Stored::Scans {
                    batch,
                    erased,
                    kept,
                    quarantined,
                } => {
                    self.tell_batch(&batch);
                    self.tell(&polled, erased);
                    metrics::LATE
                        .with_label_values(&[self.watched.name()])
                        .inc_by(late.posts as u64);
                    self.tell_quarantined(&quarantined);
                    if let Some(Throttled { retry_after }) = polled.throttled {
                        self.pause_platform(retry_after).await;
                    }
                    let read = Read {
                        cursor: polled.cursor,
                        posts_per_day,
                        time: begin,
                    };
                    return Ok(("ok", kept.then_some(read)));
                }
            }
        }
        let error = anyhow::anyhow!("plans or quotas change faster than a poll can be stored");
        self.fail_to_store(error).await;
        Ok(("behind", None))
    }

    /// How long until the next poll.
    fn wait(&self, polled: &Polled, posts_per_day: f64) -> Duration {
        if polled.more {
            // It is there to be read: waiting would only let it grow, unless the platform needs a pause.
            return polled.next_hint.unwrap_or_default();
        }
        if let Some(exactly) = self.watched.platform.poll_interval {
            return exactly;
        }
        let adapted = adapt::interval(
            self.watched.platform.interval(),
            self.config.scanner.poll_interval_min,
            posts_per_day,
            polled.posts.len(),
            self.feed.unread,
        );
        // Feeds that became due together must not stay together.
        let adapted = adapted.mul_f64(rand::random_range(0.9..1.1));
        adapted.max(polled.next_hint.unwrap_or_default())
    }

    async fn commit(&self, found: &Found<'_>) -> Result<Stored, store::Error> {
        let last = found.matches.len().saturating_sub(1) / BLOCK * BLOCK;
        let (blocks, last) = found.matches.split_at(last);
        let mut conn = self.backbone.pool.get().await?;
        for block in blocks.chunks(BLOCK) {
            keyed::begin(&mut conn).await?;
            let stored = async {
                if let Some(lost) = self.check(&mut conn, found).await? {
                    return Ok(lost);
                }
                let mut counter = self.counter();
                let batch = self.record(&mut conn, 0, block, &mut counter).await?;
                counter.store(&mut conn).await?;
                Ok::<_, store::Error>(Stored::Scans {
                    batch,
                    erased: 0,
                    quarantined: Vec::new(),
                    kept: true,
                })
            };
            let stored = stored.await;
            match keyed::end(&mut conn, stored).await? {
                // Told at once: the blocks after it may fail.
                Stored::Scans { batch, .. } => self.tell_batch(&batch),
                lost => return Ok(lost),
            }
        }
        keyed::begin(&mut conn).await?;
        let stored = async {
            let conn = &mut *conn;
            if let Some(lost) = self.check(conn, found).await? {
                return Ok(lost);
            }
            let mut counter = self.counter();
            let posts = &found.polled.posts;
            let batch = self.store_posts(conn, posts, last, &mut counter).await?;
            self.finish(conn, found, batch, Vec::new(), counter).await
        };
        let stored = stored.await;
        keyed::end(&mut conn, stored).await
    }

    /// Keeps posts, and stores what they match.
    async fn store_posts(
        &self,
        conn: &mut AsyncPgConnection,
        posts: &[Post],
        matches: &[NewScan<'_>],
        counter: &mut ScanCounter,
    ) -> Result<Batch, store::Error> {
        let kept_cut = if self.is_stream() {
            None
        } else {
            recent_posts::keep(conn, &self.feed.name, posts, Timestamp::now()).await?
        };
        let batch = self
            .record(conn, posts.len() as u64, matches, counter)
            .await?;
        Ok(Batch { kept_cut, ..batch })
    }

    /// The end of a poll's last transaction: what was skipped and what is gone, the cursor, the lease, and the counters.
    async fn finish(
        &self,
        conn: &mut AsyncPgConnection,
        found: &Found<'_>,
        batch: Batch,
        refused: Vec<Quarantined>,
        counter: ScanCounter,
    ) -> Result<Stored, store::Error> {
        let polled = found.polled;
        let (feed, replica) = (&self.feed.name, self.backbone.replica);
        let unreadable = polled.unreadable.iter().map(|one| Quarantined {
            kind: QuarantineKind::Unreadable,
            post_id: one.id.clone(),
            reason: one.reason.clone(),
        });
        let posts = polled.posts.len().saturating_sub(refused.len());
        let quarantined: Vec<Quarantined> = refused.into_iter().chain(unreadable).collect();
        feeds::quarantine(conn, feed, &quarantined).await?;
        let erased = if self.watched.erases {
            erasure::erase(conn, &polled.deleted).await?
        } else {
            0
        };
        let counts = DayCounts {
            posts,
            late: found.late.posts,
            gone: erased,
            quarantined: quarantined.len(),
            ids: found.ids.clone(),
        };
        let gap = polled.gap.as_ref().map(|gap| FeedGap {
            from: gap.from,
            to: gap.to.unwrap_or_else(Timestamp::now),
            reason: gap.reason.to_owned(),
            is_filled: false,
        });
        feeds::record_day(conn, feed, &counts, gap.as_ref()).await?;
        feeds::fill_gaps(conn, feed, &found.late.filled).await?;
        let keeps = !self.is_stream();
        let cursor = polled.cursor.to_json();
        let outcome = PollOutcome::Read(Reading {
            cursor: (self.feed.cursor.as_ref() != Some(&cursor)).then_some(cursor),
            gap: polled.gap.as_ref().map(|gap| gap.to),
            posts_per_day: Some(found.posts_per_day),
            newest_post: polled.posts.iter().map(|post| post.time).max(),
            kept_since: keeps.then(|| backfill_start(self.config.scanner.backfill)),
            kept_cut: batch.kept_cut,
            late_in: found.late.next_in,
        });
        let kept = feeds::release(conn, feed, replica, &outcome, found.next).await?;
        counter.store(conn).await?;
        Ok(Stored::Scans {
            batch,
            erased,
            quarantined,
            kept,
        })
    }

    /// Returns true if something forbids to store, under the feed's lock.
    async fn check(
        &self,
        conn: &mut AsyncPgConnection,
        found: &Found<'_>,
    ) -> Result<Option<Stored>, store::Error> {
        let (feed, replica) = (&self.feed.name, self.backbone.replica);
        if !feeds::lock(conn, feed, replica, self.feed.cursor.as_ref()).await? {
            return Ok(Some(Stored::LeaseLost));
        }
        let matched_by = found.index.version();
        if !found.polled.posts.is_empty() && plan_store::version(conn).await? != matched_by {
            return Ok(Some(Stored::Behind));
        }
        Ok(None)
    }

    fn counter(&self) -> ScanCounter {
        ScanCounter::new(self.config.quotas.scans_per_day)
    }

    /// Stores Scans with their events; `posts` were read. What a feed's first reading finds is of the past.
    async fn record(
        &self,
        conn: &mut AsyncPgConnection,
        posts: u64,
        matches: &[NewScan<'_>],
        counter: &mut ScanCounter,
    ) -> Result<Batch, store::Error> {
        let (feed, now) = (&self.feed.name, Timestamp::now());
        let origin = if self.is_first_reading() {
            Origin::FirstReading
        } else {
            Origin::Poll
        };
        let recorded = scans::record_from(conn, feed, posts, matches, now, origin, counter).await?;
        let refused = recorded.refused;
        if !refused.is_empty() {
            // A stream keeps no others, and a poll in blocks keeps its posts with the last: the note on the clocks must not
            // be seen before them.
            let posts: Vec<Post> = refused.iter().map(|(_, post)| (*post).clone()).collect();
            recent_posts::keep(conn, feed, &posts, now).await?;
        }
        let refused = refused.len();
        tell_of(conn, &recorded.made).await?;
        Ok(Batch {
            made: recorded.made,
            refused,
            kept_cut: None,
        })
    }

    /// Counts and logs the Scans of a transaction, after its commit.
    fn tell_batch(&self, batch: &Batch) {
        self.backbone.outbox.wake();
        let label = [self.watched.name()];
        metrics::SCANS
            .with_label_values(&label)
            .inc_by(batch.made.len() as u64);
        metrics::REFUSED
            .with_label_values(&label)
            .inc_by(batch.refused as u64);
        for name in &batch.made {
            tracing::info!(scan.name = %name, feed.name = %self.feed.name.masked(), "found a post");
        }
        if batch.refused > 0 {
            tracing::debug!(feed.name = %self.feed.name.masked(), matches = batch.refused, "matches wait for room in the quota of their account");
        }
    }

    fn tell(&self, polled: &Polled, erased: usize) {
        let label = [self.watched.name()];
        metrics::POSTS
            .with_label_values(&label)
            .inc_by(polled.posts.len() as u64);
        let now = Timestamp::now();
        for post in &polled.posts {
            metrics::DISCOVERY
                .with_label_values(&label)
                .observe(now.since(post.time).as_secs_f64());
        }
        if let Some(gap) = &polled.gap {
            metrics::GAPS.with_label_values(&label).inc();
            tracing::warn!(feed.name = %self.feed.name.masked(), reason = gap.reason, from = ?gap.from, to = ?gap.to, "posts may be missing");
        }
        if erased > 0 {
            metrics::ERASED
                .with_label_values(&label)
                .inc_by(erased as u64);
            tracing::info!(feed.name = %self.feed.name.masked(), erased, "posts were deleted at their source and are blanked");
        }
        if self.feed.failure_count > 0 {
            tracing::info!(feed.name = %self.feed.name.masked(), "the feed answers again");
        }
        tracing::debug!(feed.name = %self.feed.name.masked(), posts = polled.posts.len(), "polled");
    }

    /// Leaves the cursor and backs off: this feed alone, or, where the platform asks for it, all of it.
    async fn fail(&self, error: PollError, begin: Instant) {
        let (trouble, reason) = classify(&error);
        if let Some(Throttled { retry_after }) = error.throttled() {
            self.pause_platform(retry_after).await;
        }
        let jitter = rand::random_range(0.8..1.2);
        let wait = match (trouble, error.retry_after()) {
            (Trouble::BudgetSpent, Some(wait)) => wait.mul_f64(rand::random_range(1.0..1.1)),
            (_, asked) => self
                .backoff(&error)
                .mul_f64(jitter)
                .max(asked.unwrap_or_default()),
        };
        let slow = begin.elapsed() > SLOW;
        let error = format!("{:#}", anyhow::Error::from(error));
        self.watched
            .tell_failure(&self.feed.name.masked(), reason, &error);
        let next = Next {
            poll_in: wait,
            slow,
            keeps_lease: false,
        };
        self.release_failed(error, trouble, next).await;
    }

    /// The platform asked to slow down. Where it says for how long, it means all feeds of its host.
    async fn pause_platform(&self, retry_after: Option<Duration>) {
        metrics::THROTTLED
            .with_label_values(&[self.watched.name()])
            .inc();
        if let Some(reset_in) = retry_after.filter(|_| self.watched.is_one_host) {
            let left = Left {
                requests: 0,
                reset_in,
            };
            platforms::Budget::told(&*self.watched.budget, left).await;
        }
    }

    fn backoff(&self, error: &PollError) -> Duration {
        let doubled = self
            .usual_interval()
            .saturating_mul(1 << self.feed.failure_count.min(16));
        // One refusal may be a slip of the platform's; several mean it.
        let settled = error.is_permanent() && self.feed.failure_count >= SLIPS;
        if settled {
            MAX_BACKOFF
        } else {
            doubled.min(MAX_BACKOFF)
        }
    }

    /// A failure of ours. The cursor stays, so the next poll reads the same posts again: soon, but the
    /// platform is not asked without a pause for what cannot be stored.
    async fn fail_to_store(&self, error: anyhow::Error) {
        tracing::warn!(feed.name = %self.feed.name.masked(), "cannot store a poll: {error:#}");
        let doubled = STORE_RETRY.saturating_mul(1 << self.feed.failure_count.min(16));
        let wait = doubled.min(self.usual_interval().max(MAX_STORE_RETRY));
        let error = format!("cannot store a poll: {error:#}");
        self.release_failed(error, Trouble::Failing, wait.into())
            .await;
    }

    async fn release_failed(&self, error: String, trouble: Trouble, next: Next) {
        let released = async {
            let mut conn = self.backbone.pool.get().await?;
            let outcome = PollOutcome::Failed { error, trouble };
            let replica = self.backbone.replica;
            feeds::release(&mut conn, &self.feed.name, replica, &outcome, next).await?;
            Ok::<_, store::Error>(())
        };
        if let Err(error) = released.await {
            tracing::warn!(feed.name = %self.feed.name.masked(), "cannot end a lease: {:#}", anyhow::Error::from(error));
        }
    }

    /// Returns true if the posts are of the feed's first reading, which may take several polls.
    fn is_first_reading(&self) -> bool {
        let Some(cursor) = &self.feed.cursor else {
            return true;
        };
        Cursor::from_json(cursor).is_some_and(|cursor| cursor.is_first_reading())
    }

    /// Returns true if the feed is the stream of a whole network.
    fn is_stream(&self) -> bool {
        let adapter = &self.watched.platform.adapter;
        adapter.is_whole_network(self.feed.name.what())
    }

    /// The operator's interval exactly, or the platform's, never below the floor.
    fn usual_interval(&self) -> Duration {
        let platform = &self.watched.platform;
        platform.poll_interval.unwrap_or_else(|| {
            platform
                .interval()
                .max(self.config.scanner.poll_interval_min)
        })
    }
}

/// Enqueues the events of Scans, in the transaction that made them.
pub(crate) async fn tell_of(
    conn: &mut AsyncPgConnection,
    made: &[ScanName],
) -> Result<(), store::Error> {
    let events = made.iter().map(|name| ScanCreated {
        name: *name,
        create_time: name.scan.time(),
    });
    outbox::enqueue_all(conn, events).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_leaves_time_for_the_last_page() {
        let page = budget::MAX_PATIENCE + platforms::FetchLimits::default().timeout;
        assert!(PollLimits::default().max_time + page * 2 <= DEADLINE);
    }
}
