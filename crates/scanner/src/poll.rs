//! One poll: from the platform's response to the committed Scans.
//!
//! A poll without new posts costs one transaction of four statements. A poll with posts costs five more (they are
//! stored, and counted twice), and one with matches nine more for each block of
//! them (`commit::BLOCK`). Posts that the platform reports as deleted cost one to five. For a stream without posts,
//! only one poll per second is stored.
//! Nothing but the lease is held while waiting for the platform.
//!
//! The poller of a whole network's stream keeps its lease from poll to poll, until it stops, fails or dies. Each
//! change of the lease's holder reads some seconds of the network twice.
//!
//! A poll with matches for very many Managers stores its Scans in blocks, and the cursor with the last block. If
//! the replica dies in between, the posts are read again, and their stored Scans are not created twice.

mod apart;
mod commit;
mod context;
mod failure;
mod ids;
mod late;
mod report;
mod used_up;

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::{ManagerName, Post, Timestamp};
use outbound::large;
use platforms::{Cursor, PollError, PollLimits, Polled, Throttled};
use store::feeds::{IdCounts, LeasedFeed, Next};
use tracing::{Instrument as _, Span};

use crate::{adapt, budget, find::Matches, metrics, plans::backfill_start};

use commit::{Found, Stored, broken_by_us};
pub(crate) use commit::{report_dropped, tell_of};
pub(crate) use context::{Limits, Poll, SLOW};
use late::Late;
pub(crate) use used_up::UsedUp;

/// Deadline for one poll. It leaves time for work that starts just before [`PollLimits::max_time`]: a page that
/// waits for the budget as long as requests may wait, the page before it, and their responses.
const DEADLINE: Duration = Duration::from_secs(300);
/// For a stream: how long polls without posts continue before their cursor is stored.
const STREAM_TURN: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(10);
/// Maximum number of conflicts in a row with changing plans or quotas without storing anything; more means that
/// something else is wrong.
const MAX_REMATCHES: u32 = 20;
/// Number of tries at the end that take an account that loses a race for its quota as one without Scans left.
const LAST_TRIES: u32 = 5;

/// State for the next poll under the same lease.
struct Read {
    cursor: Cursor,
    posts_per_day: f64,
    time: Instant,
    caught_up: bool,
}

impl Poll {
    /// Polls once, or, for a stream, again and again while the lease is kept.
    pub(crate) async fn run(mut self) {
        while let Some(read) = self.poll_in_turn().await {
            self.feed = LeasedFeed {
                cursor: Some(read.cursor.to_json()),
                first_watch_time: None,
                rewatch_time: self.feed.rewatch_time.filter(|_| !read.caught_up),
                posts_per_day: Some(read.posts_per_day),
                failure_count: 0,
                late: Duration::ZERO,
                unread: Some(read.time.elapsed()),
                ..self.feed
            };
        }
        if self.is_stream() {
            // Another replica may read it now.
            metrics::STREAM_LAG
                .with_label_values(&[self.watched.name()])
                .set(0.0);
        }
    }

    fn span(&self) -> Span {
        tracing::info_span!("poll feed", feed.name = %self.feed.name.masked(), feed.platform = self.watched.name())
    }

    async fn poll_in_turn(&self) -> Option<Read> {
        let poll = self.poll().instrument(self.span());
        self.limits.in_turn(self.account, poll).await
    }

    /// Polls once. Returns what it read if the lease is kept.
    async fn poll(&self) -> Option<Read> {
        let begin = Instant::now();
        let since = backfill_start(self.feed.first_watch_time, self.config.scanner.backfill);
        let (outcome, kept) = match self.read(since).await {
            Ok(mut polled) => {
                let slow = begin.elapsed() > SLOW;
                let mut late = self.add_late(&mut polled).await;
                let ids = self.account(&mut polled, &mut late).await;
                match self.store(polled, since, &late, &ids, begin, slow).await {
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

    /// Returns the platform's response or, for a stream without posts, the last one of a second.
    async fn read(&self, since: Timestamp) -> Result<Polled, PollError> {
        let stored = self.feed.cursor.as_ref();
        let mut cursor = stored.and_then(Cursor::from_json);
        if cursor.is_none() && stored.is_some() {
            tracing::warn!(feed.name = %self.feed.name.masked(), "unreadable cursor: starting again");
        }
        let limits = PollLimits {
            since: Some(since),
            first_watch_time: self.feed.first_watch_time,
            ..PollLimits::default()
        };
        let begin = Instant::now();
        loop {
            let adapter = &self.watched.platform.adapter;
            let poll = adapter.poll(self.feed.name.what(), cursor.as_ref(), &limits);
            let answer = large::timeout(
                DEADLINE,
                budget::undertake(false, Some(&self.feed.name), poll),
            );
            let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
            let polled = answer.await.map_err(cut_off)??;
            let goes_on = self.is_stream() && polled.more && polled.is_empty();
            if !goes_on || begin.elapsed() >= STREAM_TURN {
                return Ok(polled);
            }
            cursor = Some(polled.cursor);
            tokio::time::sleep(BREATH).await;
        }
    }

    /// Matches, and commits the matches with the cursor; repeats this if plans have changed meanwhile. Returns the
    /// outcome for metrics and logs, and what was read if the lease is kept.
    async fn store(
        &self,
        polled: Polled,
        since: Timestamp,
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
        let (plans, feed, posts) = (&self.plans, &self.feed.name, &polled.posts);
        let matches_of = |posts| {
            let (index, account) = (plans.index(), self.account);
            let used_up = self.limits.used_up.namespaces();
            let wanted = |_: &ManagerName, post: &Post| self.is_wanted(post);
            Matches::of_first(plans, index, account, feed, posts, wanted, used_up)
        };
        let mut left = &posts[..];
        let mut part = matches_of(left).await;
        let mut broken = Vec::new();
        let mut racing = HashSet::new();
        let mut tries = 0;
        while tries < MAX_REMATCHES {
            tries += 1;
            let picks = part.picks();
            let span = tracing::info_span!("store scans", scans = picks.len());
            let is_last = part.posts().len() == left.len();
            let index = Arc::clone(part.index());
            let found = Found {
                index: &index,
                polled: &polled,
                since,
                posts_per_day,
                late,
                ids,
                next,
                broken: &broken,
                racing: &racing,
            };
            let stored = self.commit(&found, &mut part, &picks, is_last);
            let stored = match stored.instrument(span.clone()).await {
                Err(error) if self.may_be_of_a_post(&error) => {
                    // Boxed, because it is rare and a large future.
                    let stored = Box::pin(self.commit_apart(&found));
                    stored.instrument(span).await
                }
                stored => stored,
            };
            let stored = match stored {
                Err(store::Error::QuotaRace(accounts)) => {
                    // A shared feed must not fail for them. What they match is refused, and waits.
                    if tries + LAST_TRIES >= MAX_REMATCHES {
                        racing.extend(accounts);
                    }
                    continue;
                }
                stored => stored?,
            };
            match stored {
                Stored::Behind { stored } => {
                    if stored > 0 {
                        part.note_stored(&picks[..stored]);
                        tries = 0;
                    }
                    self.plans.refresh().await?;
                    part.update(&self.plans).await;
                }
                Stored::Part => {
                    broken.extend(part.broken().into_iter().map(broken_by_us));
                    left = &left[part.posts().len()..];
                    part = matches_of(left).await;
                    tries = 0;
                }
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
                        caught_up: self.is_caught_up(&polled),
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

    /// Returns the wait until the next poll.
    fn wait(&self, polled: &Polled, posts_per_day: f64) -> Duration {
        if polled.more {
            // More posts can be read already. Waiting would only increase the backlog, unless the platform needs a
            // pause.
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
        // Feeds that became due at the same time must not stay synchronised.
        let adapted = adapted.mul_f64(rand::random_range(0.9..1.1));
        adapted.max(polled.next_hint.unwrap_or_default())
    }
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
