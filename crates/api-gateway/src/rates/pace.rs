//! Limits how fast an account spends points on this replica.
//!
//! With only the limit per minute, an account with many keys could spend all of it at once, and keep every core
//! busy for seconds. This is the virtual scheduling of ITU-T I.371 (GCRA): spent points are paid back at a steady
//! rate, and an account with a debt of more than [`BURST`] has to wait.

use std::time::{Duration, Instant};

/// Minimum rate in points per second, for accounts with a low limit, which cannot keep the cores busy for long.
const LEAST_PER_SECOND: f64 = 100.0;
/// Time whose points may be spent at once.
const BURST: Duration = Duration::from_secs(1);
/// Maximum wait; a request that would wait longer is refused.
const MAX_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Time when the debt is paid back.
    paid_back: Option<Instant>,
}

impl Pace {
    /// Returns true if the waiting requests already reach the maximum wait.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.wait(now) > MAX_WAIT
    }

    /// Spends `points` of an account with this limit, and returns how long the request has to wait.
    pub(super) fn spend(&mut self, now: Instant, points: u32, limit_per_minute: u32) -> Duration {
        let wait = self.wait(now);
        let per_second = (f64::from(limit_per_minute) / 60.0).max(LEAST_PER_SECOND);
        let debt = Duration::from_secs_f64(f64::from(points) / per_second);
        self.paid_back = Some(self.paid_back.map_or(now, |time| time.max(now)) + debt);
        wait
    }

    fn wait(&self, now: Instant) -> Duration {
        let debt = self
            .paid_back
            .map(|time| time.saturating_duration_since(now));
        debt.unwrap_or_default().saturating_sub(BURST)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Pace;

    /// Returns the points that requests of `points` each spend within `seconds`, if each starts as soon as it may.
    fn spent_within(seconds: u64, points: u32, limit_per_minute: u32) -> u32 {
        let begin = Instant::now();
        let (mut pace, mut now, mut spent) = (Pace::default(), begin, 0);
        loop {
            now += pace.spend(now, points, limit_per_minute);
            if now > begin + Duration::from_secs(seconds) {
                return spent;
            }
            spent += points;
        }
    }

    #[test]
    fn account_spends_its_limit_evenly_and_one_second_of_it_at_once() {
        for points in [1, 5, 20] {
            for seconds in [0, 1, 10] {
                let spent = spent_within(seconds, points, 60_000);
                let most = 1_000 * (u32::try_from(seconds).unwrap() + 1);
                assert!(
                    (most..=most + points).contains(&spent),
                    "{spent} in {seconds} s, {points} at a time"
                );
            }
        }
    }

    #[test]
    fn low_limit_is_not_spread() {
        assert!(spent_within(0, 1, 60) >= 100);
    }

    #[test]
    fn request_is_refused_when_others_wait_for_five_seconds() {
        let now = Instant::now();
        let mut pace = Pace::default();
        let mut waits = Vec::new();
        while !pace.is_full(now) {
            waits.push(pace.spend(now, 5, 12_000));
        }
        assert_eq!(waits[0], Duration::ZERO);
        assert!(waits.is_sorted() && waits.last() <= Some(&Duration::from_secs(5)));
        // Six seconds of 200 points, and one request more.
        assert_eq!(waits.len(), 241);
        assert!(!pace.is_full(now + Duration::from_secs(1)));
    }
}
