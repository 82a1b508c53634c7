//! One poll: from the platform's response to the committed Scans.
//!
//! It has four steps, and each makes a value from that of the step before. [`read`] reads from the platform,
//! [`complete`] adds late posts and those of skipped ids, [`matched`] matches a part of the posts, and [`commit`]
//! stores the part. The last two are repeated for each part, and if plans change in between.
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

mod commit;
mod complete;
mod context;
mod failure;
mod matched;
mod read;
mod report;
mod used_up;

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use platforms::{Cursor, Throttled};
use store::feeds::LeasedFeed;
use tracing::{Instrument as _, Span};

use crate::metrics;

use commit::Commit;
pub(crate) use commit::{publish, report_dropped};
use complete::CompletePoll;
pub(crate) use context::{Limits, Poll, SLOW};
pub(crate) use used_up::UsedUp;

/// Maximum number of conflicts in a row with changing plans or quotas without storing anything; more means that
/// something else is wrong.
const MAX_REMATCHES: u32 = 20;
/// Number of last tries in which an account that lost a race for its quota counts as one without Scans left.
const LAST_TRIES: u32 = 5;

/// State for the next poll under the same lease.
struct NextPoll {
    cursor: Cursor,
    posts_per_day: f64,
    time: Instant,
    caught_up: bool,
}

impl Poll {
    /// Polls once, or, for a stream, again and again while the lease is kept.
    pub(crate) async fn run(mut self) {
        while let Some(last) = self.poll_in_turn().await {
            self.feed = LeasedFeed {
                cursor: Some(last.cursor.to_json()),
                first_watch_time: None,
                rewatch_time: self.feed.rewatch_time.filter(|_| !last.caught_up),
                posts_per_day: Some(last.posts_per_day),
                failure_count: 0,
                late: Duration::ZERO,
                unread: Some(last.time.elapsed()),
                ..self.feed
            };
        }
        if self.is_stream() {
            // Another replica may read the stream now.
            metrics::STREAM_LAG
                .with_label_values(&[self.watched.name()])
                .set(0.0);
        }
    }

    fn span(&self) -> Span {
        tracing::info_span!("poll feed", feed.name = %self.feed.name.masked(), feed.platform = self.watched.name())
    }

    async fn poll_in_turn(&self) -> Option<NextPoll> {
        let poll = self.poll().instrument(self.span());
        self.limits.in_turn(self.account, poll).await
    }

    /// Polls once, and returns the state for the next poll if the lease is kept.
    async fn poll(&self) -> Option<NextPoll> {
        let begin = Instant::now();
        let (outcome, next) = match self.read(begin).await {
            Ok(response) => {
                let complete = self.complete(response).await;
                match self.match_and_commit(&complete).await {
                    Ok((outcome, keeps_lease)) => {
                        let next = NextPoll {
                            caught_up: self.is_caught_up(&complete.polled),
                            cursor: complete.polled.cursor,
                            posts_per_day: complete.posts_per_day,
                            time: begin,
                        };
                        (outcome, keeps_lease.then_some(next))
                    }
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
        next
    }

    /// Matches part by part, and commits each part; repeats this if plans or quotas have changed meanwhile. Returns the
    /// outcome for metrics, and true if the lease is kept.
    async fn match_and_commit(
        &self,
        poll: &CompletePoll,
    ) -> Result<(&'static str, bool), store::Error> {
        let mut part = self.match_part(&poll.polled.posts, Vec::new()).await;
        let mut racing = HashSet::new();
        let mut tries = 0;
        while tries < MAX_REMATCHES {
            tries += 1;
            let commit = match self.commit(poll, &mut part, &racing).await {
                Err(store::Error::QuotaRace(accounts)) => {
                    // A shared feed must not fail because of these accounts. Their matches are refused, and wait.
                    if tries + LAST_TRIES >= MAX_REMATCHES {
                        racing.extend(accounts);
                    }
                    continue;
                }
                commit => commit?,
            };
            match commit {
                Commit::Behind { stored } => {
                    if stored > 0 {
                        tries = 0;
                    }
                    self.plans.refresh().await?;
                    part.matches.update(&self.plans).await;
                }
                Commit::Part => {
                    part = self.match_part(part.rest(), part.broken()).await;
                    tries = 0;
                }
                Commit::LeaseLost => {
                    tracing::info!(feed.name = %self.feed.name.masked(), "another replica took the feed over, or the database lost its last polls");
                    return Ok(("lease_lost", false));
                }
                Commit::Scans {
                    erased,
                    quarantined,
                    kept,
                    ..
                } => {
                    self.report(&poll.polled, erased);
                    metrics::LATE
                        .with_label_values(&[self.watched.name()])
                        .inc_by(poll.late.posts as u64);
                    self.report_quarantined(&quarantined);
                    if let Some(Throttled { retry_after }) = poll.polled.throttled {
                        self.pause_platform(retry_after).await;
                    }
                    return Ok(("ok", kept));
                }
            }
        }
        let error = anyhow::anyhow!("plans or quotas change faster than a poll can be stored");
        self.fail_to_store(error).await;
        Ok(("behind", false))
    }
}
