//! First step of a poll: reads from the platform.

use std::time::{Duration, Instant};

use domain::Timestamp;
use outbound::large;
use platforms::{Cursor, PollError, PollLimits, Polled};

use super::context::Poll;
use crate::{budget, plans::backfill_start};

/// Deadline for one poll. It leaves time for work that starts just before [`PollLimits::max_time`]: a page that
/// waits for the budget as long as requests may wait, the page before it, and their responses.
const DEADLINE: Duration = Duration::from_secs(300);
/// For a stream: how long polls without posts continue before their cursor is stored.
const STREAM_TURN: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(10);

/// Response of the platform.
pub(super) struct Response {
    pub(super) polled: Polled,
    /// Start of the feed's first reading.
    pub(super) since: Timestamp,
    /// Start of the poll.
    pub(super) begin: Instant,
}

impl Poll {
    /// Returns the platform's response. A stream without posts is read again for up to a second, and the last response
    /// is returned.
    pub(super) async fn read(&self, begin: Instant) -> Result<Response, PollError> {
        let since = backfill_start(self.feed.first_watch_time, self.config.scanner.backfill);
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
        let polled = loop {
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
                break polled;
            }
            cursor = Some(polled.cursor);
            tokio::time::sleep(BREATH).await;
        };
        Ok(Response {
            polled,
            since,
            begin,
        })
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
