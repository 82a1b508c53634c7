//! How far a host is behind the network: the time from `createdAt` to the host's stamp.
//!
//! One address may lead to several hosts. If the next one is less far behind, what the earlier one had not sent is older
//! than the position, and is never read.
//!
//! A connection may end before its lag is known. What the connections since the last known lag missed is then judged by
//! the lag of the first one that lasts.

use domain::Timestamp;

use super::position::{Recent, Reopened};
use crate::Gap;

/// Number of posts after which the lag is known.
const WINDOW: usize = 50;
/// A post with a longer lag is an import, or has a false date.
const LONGEST: i64 = 600_000_000;

/// Lags of the posts of one connection, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Lags {
    window: Vec<i64>,
    /// The position when the connection was opened.
    opened_at: i64,
}

impl Lags {
    /// Returns the lags of a connection that is opened at `from`, and notes in `recent` that it was.
    pub(super) fn open(recent: &mut Recent, from: i64) -> Self {
        let at = recent.at;
        if recent.met {
            let rewind = at.saturating_sub(from);
            let reopened = recent.reopened.get_or_insert(Reopened { at, rewind });
            reopened.rewind = reopened.rewind.min(rewind);
        }
        Self {
            opened_at: at,
            ..Self::default()
        }
    }

    /// Records a post. Returns a gap if the connection turns out to be to a host that is less far behind than the
    /// earlier one, by more than what was read again. Any connection since may have been the first to such a host.
    pub(super) fn record(&mut self, lag: i64, recent: &mut Recent) -> Option<Gap> {
        if (0..=LONGEST).contains(&lag) {
            self.window.push(lag);
        }
        if self.window.len() < WINDOW {
            return None;
        }
        // The first quartile, because programs also post what was written long before; these are less than three
        // quarters of all posts.
        self.window.sort_unstable();
        let lag = self.window[WINDOW / 4];
        self.window.clear();
        let (before, reopened) = (recent.lag.replace(lag), recent.reopened.take());
        let (before, reopened) = (before?, reopened?);
        (before - lag > reopened.rewind).then(|| Gap {
            from: Timestamp::from_micros(reopened.at.saturating_sub(before)),
            to: Timestamp::from_micros(self.opened_at),
            reason: "an earlier host of the stream was further behind than this one",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const START: i64 = 1_783_175_888_085_434;

    /// Reads `posts` posts from host `a`, which is `lag` seconds behind, on a connection that is opened at the position
    /// that is stored in `recent`. Returns the gaps.
    fn connect(recent: &mut Recent, lag: i64, posts: usize) -> Vec<Gap> {
        *recent = Recent::from(&recent.position());
        let from = recent.resume_at("a");
        let mut lags = Lags::open(recent, from);
        let mut gaps = Vec::new();
        for _ in 0..posts {
            recent.advance(recent.at + 1, "a");
            gaps.extend(lags.record(lag * SECOND, recent));
            // Each post is a poll.
            *recent = Recent::from(&recent.position());
        }
        gaps
    }

    #[test]
    fn connection_that_ends_early_hides_no_gap() {
        let mut recent = Recent::beginning(START);
        assert_eq!(connect(&mut recent, 20, WINDOW), []);
        let first = recent.at;
        // Either may be the one to the other host.
        assert_eq!(connect(&mut recent, 1, WINDOW - 1), []);
        let second = recent.at;
        let gaps = connect(&mut recent, 1, 2 * WINDOW);
        let ends: Vec<_> = gaps.iter().map(|gap| (gap.from, gap.to)).collect();
        let time = Timestamp::from_micros;
        assert_eq!(ends, [(time(first - 20 * SECOND), time(second))]);
        assert_eq!(connect(&mut recent, 1, WINDOW), []);
    }

    #[test]
    fn connections_to_hosts_with_the_same_lag_are_no_gap() {
        let mut recent = Recent::beginning(START);
        for posts in [WINDOW, WINDOW - 1, 0, WINDOW] {
            assert_eq!(connect(&mut recent, 20, posts), []);
        }
        assert_eq!(connect(&mut recent, 18, WINDOW), [], "it was read again");
    }
}
