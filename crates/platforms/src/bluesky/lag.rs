//! How far a host is behind the network: the time from `createdAt` to the host's stamp.
//!
//! One address may lead to several hosts. If the next one is less far behind, what the earlier one had not sent is older
//! than the position, and is never read.

use domain::Timestamp;

use super::position::Recent;
use crate::Gap;

/// Number of posts after which the lag is known.
const WINDOW: usize = 50;
/// A post with a longer lag is an import, or has a false date.
const LONGEST: i64 = 600_000_000;

/// Lags of the posts of one connection, in microseconds.
#[derive(Debug, Default)]
pub(super) struct Lags {
    window: Vec<i64>,
    /// The position when the connection was opened, and how far before it the stream began.
    resumed: Option<(i64, i64)>,
}

impl Lags {
    /// Returns the lags of a connection that is opened at `from`.
    pub(super) fn resumed(at: &Recent, from: i64) -> Self {
        Self {
            resumed: at.met.then_some((at.at, at.at.saturating_sub(from))),
            ..Self::default()
        }
    }

    /// Notes a post. Returns a gap if the connection turns out to be to a host that is less far behind than the earlier
    /// one, by more than what was read again.
    pub(super) fn note(&mut self, lag: i64, recent: &mut Recent) -> Option<Gap> {
        if (0..=LONGEST).contains(&lag) {
            self.window.push(lag);
        }
        if self.window.len() < WINDOW {
            return None;
        }
        // Programs that post what was written long before make up less than three quarters of all posts.
        self.window.sort_unstable();
        let lag = self.window[WINDOW / 4];
        self.window.clear();
        let (before, resumed) = (recent.lag.replace(lag), self.resumed.take());
        let (before, (at, rewind)) = (before?, resumed?);
        (before - lag > rewind).then(|| Gap {
            from: Timestamp::from_micros(at.saturating_sub(before)),
            to: Timestamp::from_micros(at),
            reason: "an earlier host of the stream was further behind than this one",
        })
    }
}
