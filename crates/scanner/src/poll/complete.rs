//! Second step of a poll: adds the posts that the platform's response does not have, and decides when the feed is due
//! again.

use std::time::{Duration, Instant};

use domain::Timestamp;
use outbound::large;
use platforms::Polled;
use store::feeds::{IdCounts, Next};

use super::{
    context::{Poll, SLOW},
    read::Response,
};
use crate::adapt;

mod ids;
mod late;

use late::Late;

/// A poll with all its posts.
pub(super) struct CompletePoll {
    pub(super) polled: Polled,
    /// Start of the feed's first reading.
    pub(super) since: Timestamp,
    pub(super) late: Late,
    pub(super) ids: IdCounts,
    pub(super) posts_per_day: f64,
    next: Next,
    begin: Instant,
}

impl CompletePoll {
    /// Returns when the feed is due again, for the end of the poll. A poll is slow if it took long to read, to match or to
    /// store; for its place it waits because of others.
    pub(super) fn next(&self) -> Next {
        Next {
            slow: self.begin.elapsed().saturating_sub(large::waited()) > SLOW,
            ..self.next
        }
    }
}

impl Poll {
    /// Adds late posts, and those of ids that were skipped.
    pub(super) async fn complete(&self, response: Response) -> CompletePoll {
        let Response {
            mut polled,
            since,
            begin,
        } = response;
        let mut late = self.add_late(&mut polled).await;
        let ids = self.account(&mut polled, &mut late).await;
        let posts_per_day = adapt::posts_per_day(
            self.feed.posts_per_day,
            self.feed.unread,
            &polled.posts,
            Timestamp::now(),
        );
        let next = Next {
            poll_in: self.wait(&polled, posts_per_day),
            slow: false,
            keeps_lease: self.is_stream() && polled.more && !self.shutdown.is_cancelled(),
        };
        CompletePoll {
            polled,
            since,
            late,
            ids,
            posts_per_day,
            next,
            begin,
        }
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
