//! Stores a poll: its posts, their Scans, the cursor and the lease, in one transaction or in blocks.

use std::{collections::HashSet, sync::Arc};

use domain::{Id, ManagerName, Post, ScanName, Timestamp};
use events::ScanCreated;
use matching::Index;
use platforms::Polled;
use store::{
    AsyncPgConnection, erasure, feed_post_ids,
    feeds::{
        self, DayCounts, FeedGap, IdCounts, Next, PollOutcome, QuarantineKind, Quarantined, Reading,
    },
    keyed, outbox, recent_posts, refused_posts,
    scans::{self, NewScan, Origin, ScanCounter},
};

use super::{context::Poll, late::Late};
use crate::{
    find::{Matches, Pick},
    metrics,
    plans::is_current,
};

/// Number of Scans in one transaction, except for the last few of a poll.
pub(super) const BLOCK: usize = 500;

/// The result of a poll, to be stored.
pub(super) struct Found<'a> {
    pub(super) index: &'a Arc<Index>,
    pub(super) polled: &'a Polled,
    /// Start of the feed's first reading.
    pub(super) since: Timestamp,
    pub(super) posts_per_day: f64,
    pub(super) late: &'a Late,
    pub(super) ids: &'a IdCounts,
    pub(super) next: Next,
    /// Posts of earlier parts of the poll that could not be matched.
    pub(super) broken: &'a [Quarantined],
    /// Accounts whose matches are refused, because others of their transactions made Scans each time.
    pub(super) racing: &'a HashSet<Id>,
}

/// The stored part of a poll.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) made: Vec<ScanName>,
    /// Number of matches that the quota refused.
    pub(super) refused: usize,
    /// Number of matches that the quota refused earlier, and that are not kept any longer.
    pub(super) dropped: usize,
    /// The oldest time that is still kept, if older posts had to be removed.
    pub(super) kept_cut: Option<Timestamp>,
}

/// Result of the last transaction.
pub(super) enum Stored {
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
    /// All matches of a poll's part, and nothing else.
    Part,
    /// Plans of the feed changed since the posts were matched. This many matches were stored before that.
    Behind { stored: usize },
}

impl Poll {
    /// Stores these matches of `all`, and with the last part of a poll its posts and its cursor.
    pub(super) async fn commit(
        &self,
        found: &Found<'_>,
        all: &mut Matches<'_, impl Fn(&ManagerName, &Post) -> bool>,
        picks: &[Pick],
        is_last: bool,
    ) -> Result<Stored, store::Error> {
        let mut done = 0;
        loop {
            let next = &picks[done..picks.len().min(done + BLOCK)];
            if next.is_empty() && !is_last {
                return Ok(Stored::Part);
            }
            let (scans, covered) = all.decide(&self.plans, next).await;
            let is_end = is_last && done + covered == picks.len();
            let _share = self.limits.connections.take(self.account, 1).await;
            let mut conn = self.backbone.pool.get().await?;
            keyed::begin(&mut conn).await?;
            let counter = self.counter(found).refusing(Arc::clone(all.used_up()));
            let stored = if is_end {
                let broken = found.broken.iter().cloned();
                let broken = broken.chain(all.broken().into_iter().map(broken_by_us));
                let broken = broken.collect();
                self.store_last(&mut conn, found, &scans, broken, counter)
                    .await
            } else {
                self.store_block(&mut conn, found, &scans, counter).await
            };
            match keyed::end(&mut conn, stored).await? {
                // Published at once, because the blocks after it may fail.
                Stored::Scans { batch, .. } if !is_end => {
                    self.tell_batch(&batch);
                    if batch.refused > 0 {
                        all.set_used_up(self.limits.used_up.namespaces());
                    }
                }
                Stored::Behind { .. } => return Ok(Stored::Behind { stored: done }),
                stored => return Ok(stored),
            }
            done += covered;
        }
    }

    /// Stores matches ahead of the last transaction of a poll.
    async fn store_block(
        &self,
        conn: &mut AsyncPgConnection,
        found: &Found<'_>,
        block: &[NewScan<'_>],
        mut counter: ScanCounter,
    ) -> Result<Stored, store::Error> {
        if let Some(lost) = self.check(conn, found).await? {
            return Ok(lost);
        }
        let batch = self.record(conn, 0, block, &mut counter).await?;
        counter.store(conn).await?;
        Ok(Stored::Scans {
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
        found: &Found<'_>,
        last: &[NewScan<'_>],
        broken: Vec<Quarantined>,
        mut counter: ScanCounter,
    ) -> Result<Stored, store::Error> {
        if let Some(lost) = self.check(conn, found).await? {
            return Ok(lost);
        }
        let posts = &found.polled.posts;
        let batch = self.store_posts(conn, posts, last, &mut counter).await?;
        self.finish(conn, found, batch, broken, counter).await
    }

    /// Stores posts and their matches.
    pub(super) async fn store_posts(
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
            recent_posts::keep(conn, &self.feed.name, posts, Timestamp::now(), bytes).await?
        };
        if self.has_late_posts() {
            feed_post_ids::note(conn, &self.feed.name, posts, Timestamp::now()).await?;
        }
        let batch = self
            .record(conn, posts.len() as u64, matches, counter)
            .await?;
        Ok(Batch { kept_cut, ..batch })
    }

    /// End of a poll's last transaction: skipped and deleted posts, the cursor, the lease, and the counters.
    pub(super) async fn finish(
        &self,
        conn: &mut AsyncPgConnection,
        found: &Found<'_>,
        batch: Batch,
        refused: Vec<Quarantined>,
        counter: ScanCounter,
    ) -> Result<Stored, store::Error> {
        let polled = found.polled;
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
            late: found.late.posts,
            gone: erased,
            quarantined: quarantined.len(),
            ids: found.ids.clone(),
        };
        let missed = self.missed(polled);
        let gap = missed.map(|gap| FeedGap {
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
            gap: missed.map(|gap| gap.to),
            posts_per_day: Some(found.posts_per_day),
            newest_post: polled.posts.iter().map(|post| post.time).max(),
            kept_since: keeps.then_some(found.since),
            // A gap that no Manager missed is one of the kept posts all the same.
            kept_cut: batch
                .kept_cut
                .max(polled.gap.as_ref().and_then(|gap| gap.to)),
            late_in: found.late.next_in,
            late_reading: found.late.reading.clone(),
            notes_ids: self.has_late_posts(),
            caught_up: self.is_caught_up(polled),
            notice: (!polled.not_modified).then_some(polled.notice),
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

    /// Returns a result if something forbids to store, under the feed's lock.
    pub(super) async fn check(
        &self,
        conn: &mut AsyncPgConnection,
        found: &Found<'_>,
    ) -> Result<Option<Stored>, store::Error> {
        let (feed, replica) = (&self.feed.name, self.backbone.replica);
        if !feeds::lock(conn, feed, replica, self.feed.cursor.as_ref()).await? {
            return Ok(Some(Stored::LeaseLost));
        }
        if !found.polled.posts.is_empty() && !is_current(conn, found.index, feed).await? {
            return Ok(Some(Stored::Behind { stored: 0 }));
        }
        Ok(None)
    }

    pub(super) fn counter(&self, found: &Found<'_>) -> ScanCounter {
        let counter = ScanCounter::new(self.config.quotas.scans_per_day);
        counter.refusing_accounts(found.racing.clone())
    }

    /// Stores Scans with their events; `posts` were read. Posts of a feed's first reading count as past ones.
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
        let dropped = refused_posts::keep(conn, feed, &refused).await?;
        self.limits
            .used_up
            .note(refused.iter().map(|(manager, _)| manager.namespace));
        tell_of(conn, &recorded.made).await?;
        Ok(Batch {
            made: recorded.made,
            refused: refused.len(),
            dropped,
            kept_cut: None,
        })
    }

    /// Counts and logs the Scans of a transaction, after its commit.
    pub(super) fn tell_batch(&self, batch: &Batch) {
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
        report_dropped(batch.dropped);
        if batch.refused > 0 {
            tracing::debug!(feed.name = %self.feed.name.masked(), matches = batch.refused, "matches wait for room in the quota of their account");
        }
    }
}

/// The record of a post whose matching panicked. The panic itself is in the log.
pub(super) fn broken_by_us(post: &Post) -> Quarantined {
    Quarantined {
        kind: QuarantineKind::Unreadable,
        post_id: Some(post.id.clone()),
        reason: "an internal error".to_owned(),
    }
}

/// Counts and logs refused matches that are not kept any longer.
pub(crate) fn report_dropped(matches: usize) {
    metrics::DROPPED.inc_by(matches as u64);
    if matches > 0 {
        tracing::warn!(
            matches,
            "matches that an account's quota refused are dropped: too large or too old"
        );
    }
}

/// Enqueues the events of Scans, in the transaction that created them.
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
