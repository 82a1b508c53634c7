//! Counts and logs what a poll has stored, after its commit.

use domain::Timestamp;
use platforms::Polled;
use store::feeds::{QuarantineKind, Quarantined};

use super::context::Poll;
use crate::metrics;

impl Poll {
    pub(super) fn report(&self, polled: &Polled, erased: usize) {
        let label = [self.watched.name()];
        metrics::POSTS
            .with_label_values(&label)
            .inc_by(polled.posts.len() as u64);
        let now = Timestamp::now();
        if let Some(newest) = polled.cursor.high_water().filter(|_| self.is_stream()) {
            let lag = now.since(newest).as_secs_f64();
            metrics::STREAM_LAG.with_label_values(&label).set(lag);
        }
        for post in &polled.posts {
            metrics::DISCOVERY
                .with_label_values(&label)
                .observe(now.since(post.time).as_secs_f64());
        }
        if let Some(gap) = self.missed(polled) {
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

    /// Counts and logs what was skipped, after the commit.
    pub(super) fn report_quarantined(&self, posts: &[Quarantined]) {
        let Some(last) = posts.last() else {
            return;
        };
        for post in posts {
            let reason = match post.kind {
                QuarantineKind::Unreadable => "unreadable",
                QuarantineKind::Refused => "refused",
                QuarantineKind::Unfit => "unfit",
            };
            metrics::QUARANTINED
                .with_label_values(&[self.watched.name(), reason])
                .inc();
        }
        tracing::warn!(
            feed.name = %self.feed.name.masked(),
            posts = posts.len(),
            post.id = last.post_id,
            kind = last.kind.as_str(),
            reason = last.reason,
            "posts were skipped and are quarantined"
        );
    }
}
