//! Last step of a poll: stores its posts, their Scans, the cursor and the lease, in one transaction or in blocks.

use std::{collections::HashSet, sync::Arc};

use bus::EventPublisher;
use domain::{Id, ManagerName, Post, ScanName, Timestamp};
use events::ScanCreated;
use matching::Index;
use store::{
    AsyncPgConnection, erasure, feed_post_ids,
    feeds::{self, DayCounts, FeedGap, PollOutcome, QuarantineKind, Quarantined, Reading},
    keyed, recent_posts,
    refused_posts::{self, Written},
    scans::{self, NewScan, Origin, ScanCounter},
};
use tracing::Instrument as _;

use super::{complete::CompletePoll, context::Poll, matched::MatchedPart};
use crate::{find::Pick, metrics, plans::is_current};

mod halves;

/// Number of Scans in one transaction, except for the last few of a poll.
const BLOCK: usize = 500;

/// A try to commit matches.
struct Attempt<'a> {
    poll: &'a CompletePoll,
    index: &'a Arc<Index>,
    /// Accounts whose matches are refused, because in each try another transaction used their quota first.
    racing: &'a HashSet<Id>,
}

/// Result of one transaction.
#[derive(Default)]
pub(super) struct Batch {
    made: Vec<ScanName>,
    /// Number of matches that the quota refused.
    refused: usize,
    /// Number of matches that the quota refused, now or earlier, and that are not kept.
    dropped: usize,
    /// Refused posts that were stored, as of the end of the transaction.
    written: Written,
    /// The oldest time that is still kept, if older posts had to be removed.
    kept_cut: Option<Timestamp>,
}

/// Outcome of a part.
pub(super) enum Commit {
    Scans {
        batch: Batch,
        /// How many posts were blanked.
        erased: usize,
        /// The posts that were skipped.
        quarantined: Vec<Quarantined>,
        /// True if the lease continues.
        kept: bool,
    },
    /// Another replica has leased the feed, or the database is older than this replica's cursor: the same posts are
    /// read again.
    LeaseLost,
    /// All matches of a poll's part are stored, and nothing else.
    Part,
    /// Plans of the feed changed since the posts were matched. This many matches were stored before that.
    Behind { stored: usize },
}

impl Poll {
    /// Stores the matches of a part, and with the last part of a poll its posts and its cursor.
    pub(super) async fn commit(
        &self,
        poll: &CompletePoll,
        part: &mut MatchedPart<'_, impl Fn(&ManagerName, &Post) -> bool>,
        racing: &HashSet<Id>,
    ) -> Result<Commit, store::Error> {
        let picks = part.matches.picks();
        let span = tracing::info_span!("store scans", scans = picks.len());
        let index = Arc::clone(part.matches.index());
        let attempt = Attempt {
            poll,
            index: &index,
            racing,
        };
        let commit = self.commit_blocks(&attempt, part, &picks);
        let commit = match commit.instrument(span.clone()).await {
            Err(error) if self.may_be_of_a_post(&error) => {
                // Boxed, because it is rare and a large future.
                let commit = Box::pin(self.commit_by_halves(&attempt));
                commit.instrument(span.clone()).await?
            }
            commit => commit?,
        };
        match &commit {
            Commit::Scans { batch, .. } => span.in_scope(|| self.report_batch(batch)),
            Commit::Behind { stored } => part.matches.record_stored(&picks[..*stored]),
            Commit::Part | Commit::LeaseLost => {}
        }
        Ok(commit)
    }

    async fn commit_blocks(
        &self,
        attempt: &Attempt<'_>,
        part: &mut MatchedPart<'_, impl Fn(&ManagerName, &Post) -> bool>,
        picks: &[Pick],
    ) -> Result<Commit, store::Error> {
        let is_last = part.is_last();
        let mut done = 0;
        loop {
            let next = &picks[done..picks.len().min(done + BLOCK)];
            if next.is_empty() && !is_last {
                return Ok(Commit::Part);
            }
            let (scans, covered) = part.matches.decide(&self.plans, next).await;
            let is_end = is_last && done + covered == picks.len();
            let _share = self.limits.connections.take(self.account, 1).await;
            let mut conn = self.backbone.pool.get().await?;
            keyed::begin(&mut conn).await?;
            let counter = self.counter(attempt);
            let counter = counter.refusing(Arc::clone(part.matches.used_up()));
            let commit = if is_end {
                self.store_last(&mut conn, attempt, &scans, part.broken(), counter)
                    .await
            } else {
                self.store_block(&mut conn, attempt, &scans, counter).await
            };
            match keyed::end(&mut conn, commit).await? {
                // Events are published at once, because later blocks may fail.
                Commit::Scans { batch, .. } if !is_end => {
                    self.report_batch(&batch);
                    if batch.refused > 0 {
                        let used_up = self.limits.used_up.namespaces();
                        part.matches.set_used_up(used_up);
                    }
                }
                Commit::Behind { .. } => return Ok(Commit::Behind { stored: done }),
                commit => return Ok(commit),
            }
            done += covered;
        }
    }

    /// Stores matches ahead of the last transaction of a poll.
    async fn store_block(
        &self,
        conn: &mut AsyncPgConnection,
        attempt: &Attempt<'_>,
        block: &[NewScan<'_>],
        mut counter: ScanCounter,
    ) -> Result<Commit, store::Error> {
        if let Some(lost) = self.check(conn, attempt).await? {
            return Ok(lost);
        }
        let mut batch = self.record(conn, 0, block, &mut counter).await?;
        batch.written = std::mem::take(&mut counter.refused_posts);
        counter.store(conn).await?;
        Ok(Commit::Scans {
            batch,
            erased: 0,
            quarantined: Vec::new(),
            kept: true,
        })
    }

    /// Stores the last matches of a poll, its posts and its cursor.
    async fn store_last(
        &self,
        conn: &mut AsyncPgConnection,
        attempt: &Attempt<'_>,
        last: &[NewScan<'_>],
        broken: Vec<Quarantined>,
        mut counter: ScanCounter,
    ) -> Result<Commit, store::Error> {
        if let Some(lost) = self.check(conn, attempt).await? {
            return Ok(lost);
        }
        let posts = &attempt.poll.polled.posts;
        let batch = self.store_posts(conn, posts, last, &mut counter).await?;
        self.finish(conn, attempt.poll, batch, broken, counter)
            .await
    }

    /// Stores posts and their matches.
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
            let bytes = self.config.quotas.recent_post_bytes;
            recent_posts::insert(conn, &self.feed.name, posts, Timestamp::now(), bytes).await?
        };
        if self.has_late_posts() {
            feed_post_ids::record(conn, &self.feed.name, posts, Timestamp::now()).await?;
        }
        let batch = self
            .record(conn, posts.len() as u64, matches, counter)
            .await?;
        Ok(Batch { kept_cut, ..batch })
    }

    /// End of a poll's last transaction: skipped and deleted posts, the cursor, the lease, and the counters.
    async fn finish(
        &self,
        conn: &mut AsyncPgConnection,
        poll: &CompletePoll,
        mut batch: Batch,
        refused: Vec<Quarantined>,
        mut counter: ScanCounter,
    ) -> Result<Commit, store::Error> {
        let polled = &poll.polled;
        let (feed, replica) = (&self.feed.name, self.backbone.replica);
        let skipped = polled.skipped.iter().map(|one| Quarantined {
            kind: if one.is_readable {
                QuarantineKind::Unfit
            } else {
                QuarantineKind::Unreadable
            },
            post_id: one.id.clone(),
            reason: one.reason.clone(),
        });
        let posts = polled.posts.len().saturating_sub(refused.len());
        let quarantined: Vec<Quarantined> = refused.into_iter().chain(skipped).collect();
        feeds::quarantine(conn, feed, &quarantined).await?;
        let erased = if self.watched.erases {
            erasure::erase(conn, &polled.deleted).await?
        } else {
            0
        };
        let counts = DayCounts {
            posts,
            late: poll.late.posts,
            gone: erased,
            quarantined: quarantined.len(),
            ids: poll.ids.clone(),
        };
        let missed = self.missed(polled);
        let gap = missed.map(|gap| FeedGap {
            from: gap.from,
            to: gap.to.unwrap_or_else(Timestamp::now),
            reason: gap.reason.to_owned(),
            is_filled: false,
        });
        feeds::record_day(conn, feed, &counts, gap.as_ref()).await?;
        feeds::fill_gaps(conn, feed, &poll.late.filled).await?;
        let keeps = !self.is_stream();
        let cursor = polled.cursor.to_json();
        let outcome = PollOutcome::Read(Reading {
            cursor: (self.feed.cursor.as_ref() != Some(&cursor)).then_some(cursor),
            gap: missed.map(|gap| gap.to),
            posts_per_day: Some(poll.posts_per_day),
            newest_post: polled.posts.iter().map(|post| post.time).max(),
            kept_since: keeps.then_some(poll.since),
            // Before the end of a gap, stored posts are incomplete, even if no Manager watched the feed then.
            kept_cut: batch
                .kept_cut
                .max(polled.gap.as_ref().and_then(|gap| gap.to)),
            late_in: poll.late.next_in,
            late_reading: poll.late.reading.clone(),
            notes_ids: self.has_late_posts(),
            caught_up: self.is_caught_up(polled),
            notice: (!polled.not_modified).then_some(polled.notice),
        });
        let kept = feeds::release(conn, feed, replica, &outcome, poll.next).await?;
        batch.written = std::mem::take(&mut counter.refused_posts);
        counter.store(conn).await?;
        Ok(Commit::Scans {
            batch,
            erased,
            quarantined,
            kept,
        })
    }

    /// Locks the feed, and returns the poll's result if it must not be stored.
    async fn check(
        &self,
        conn: &mut AsyncPgConnection,
        attempt: &Attempt<'_>,
    ) -> Result<Option<Commit>, store::Error> {
        let (feed, replica) = (&self.feed.name, self.backbone.replica);
        if !feeds::lock(conn, feed, replica, self.feed.cursor.as_ref()).await? {
            return Ok(Some(Commit::LeaseLost));
        }
        if !attempt.poll.polled.posts.is_empty() && !is_current(conn, attempt.index, feed).await? {
            return Ok(Some(Commit::Behind { stored: 0 }));
        }
        Ok(None)
    }

    fn counter(&self, attempt: &Attempt<'_>) -> ScanCounter {
        let counter = ScanCounter::new(self.config.quotas.scans_per_day);
        counter.refusing_accounts(attempt.racing.clone())
    }

    /// Stores Scans of a poll that read this number of posts. Posts of a feed's first reading count as posts of the
    /// past.
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
        let limit = &self.limits.refused_posts;
        let written = &mut counter.refused_posts;
        let dropped = refused_posts::insert(conn, feed, &refused, limit, written).await?;
        self.limits
            .used_up
            .add(refused.iter().map(|(manager, _)| manager.namespace));
        Ok(Batch {
            made: recorded.made,
            refused: refused.len(),
            dropped,
            written: Written::default(),
            kept_cut: None,
        })
    }

    /// Publishes, counts and logs the Scans of a transaction, after its commit.
    fn report_batch(&self, batch: &Batch) {
        publish(&self.backbone.events, &batch.made);
        self.limits.refused_posts.count(&batch.written);
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
        report_dropped(batch.dropped);
        if batch.refused > 0 {
            tracing::debug!(feed.name = %self.feed.name.masked(), matches = batch.refused, "matches wait for room in the quota of their account");
        }
    }
}

/// Counts and logs refused matches that are not kept.
pub(crate) fn report_dropped(matches: usize) {
    metrics::DROPPED.inc_by(matches as u64);
    if matches > 0 {
        tracing::warn!(
            matches,
            "matches that an account's quota refused are dropped: too many bytes or too old"
        );
    }
}

/// Publishes the events of Scans, after the commit that created them.
pub(crate) fn publish(events: &EventPublisher, made: &[ScanName]) {
    events.publish_all(made.iter().map(|name| ScanCreated {
        name: *name,
        create_time: name.scan.time(),
    }));
}
