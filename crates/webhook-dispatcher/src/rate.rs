//! How many deliveries a rate limit allows, and when each may go.
//!
//! All replicas draw on one time line in the database: the seconds before `rate_time` are
//! spent. A claim spends a second of what is to come and paces its requests over it; the next claim is due when
//! half of that is left (`store::lanes::settle`). So a rate costs two looks a second, however high it is and
//! however much waits, and a look may be late by half a second and no one waits for it. What is late by a little
//! more is caught up, so that the rate is met; what no one asked for is not saved up.

use std::time::Duration;

use domain::Timestamp;

/// How far ahead of now is spent.
const AHEAD: Duration = Duration::from_secs(1);
/// A time line that is behind by no more than this is caught up.
const CATCH_UP: Duration = Duration::from_millis(200);

/// Number of requests that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    start: Timestamp,
    now: Timestamp,
    per_second: u32,
    pub(crate) count: u32,
}

impl Allowance {
    pub(crate) fn new(rate_time: Option<Timestamp>, now: Timestamp, per_second: u32) -> Self {
        let start = match rate_time {
            Some(time) if time >= now.minus(CATCH_UP) => time,
            _ => now,
        };
        let horizon = now.plus(AHEAD);
        let count = if start > horizon {
            0
        } else {
            let ahead = horizon.since(start).as_micros() * u128::from(per_second) / 1_000_000;
            u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1)
        };
        Self {
            start,
            now,
            per_second,
            count,
        }
    }

    /// How long the delivery at `place` is to wait.
    pub(crate) fn wait(&self, place: u32) -> Duration {
        self.start.plus(self.span(place)).since(self.now)
    }

    /// The time line after `count` were spent.
    pub(crate) fn spent(&self, count: u32) -> Timestamp {
        self.start.plus(self.span(count))
    }

    fn span(&self, count: u32) -> Duration {
        let micros = u64::from(count) * 1_000_000 / u64::from(self.per_second.max(1));
        Duration::from_micros(micros)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::Timestamp;

    use super::Allowance;

    /// Sends as much as is allowed, looking every `look`, by as many replicas; returns when each went.
    fn simulate(per_second: u32, look: Duration, replicas: u32) -> Vec<Duration> {
        let begin = Timestamp::now();
        let mut line = None;
        let mut sent = Vec::new();
        let mut elapsed = Duration::ZERO;
        while elapsed < Duration::from_secs(20) {
            for _ in 0..replicas {
                let now = begin.plus(elapsed);
                let allowance = Allowance::new(line, now, per_second);
                // A lane takes no more at a time.
                let count = allowance.count.min(128);
                sent.extend((0..count).map(|place| elapsed + allowance.wait(place)));
                line = Some(allowance.spent(count));
            }
            elapsed += look;
        }
        sent
    }

    #[test]
    fn a_rate_is_met_within_five_percent_in_every_second() {
        for per_second in [1, 3, 10, 50, 200, 1_000] {
            for (look, replicas) in [(5, 1), (40, 3), (90, 2)] {
                let look = Duration::from_millis(look);
                if per_second == 1_000 && look > Duration::from_millis(40) {
                    continue;
                }
                let sent = simulate(per_second, look, replicas);
                for second in 1..19 {
                    let window = Duration::from_secs(second)..Duration::from_secs(second + 1);
                    let count = sent.iter().filter(|at| window.contains(*at)).count();
                    let count = f64::from(u32::try_from(count).unwrap());
                    let most = f64::from(per_second) * 1.05 + 1.0;
                    let least = f64::from(per_second) * 0.95 - 1.0;
                    assert!(
                        (least..=most).contains(&count),
                        "{count} of {per_second}, looking every {look:?}"
                    );
                }
            }
        }
    }

    /// A look that comes 600 ms after it was due: a claim before it had paced that long ahead.
    #[test]
    fn looks_that_are_late_lose_no_pace() {
        let sent = simulate(20, Duration::from_millis(1_100), 1);
        for second in 1..18 {
            let window = Duration::from_secs(second)..Duration::from_secs(second + 1);
            let count = sent.iter().filter(|at| window.contains(*at)).count();
            assert!((18..=22).contains(&count), "{count} in second {second}");
        }
    }

    #[test]
    fn nothing_is_saved_up() {
        let now = Timestamp::now();
        let long_ago = now.minus(Duration::from_secs(60));
        let allowance = Allowance::new(Some(long_ago), now, 10);
        assert_eq!(allowance.count, 11);
        assert_eq!(allowance.wait(0), Duration::ZERO);
        assert_eq!(allowance.wait(5), Duration::from_millis(500));
        let spent = allowance.spent(11);
        assert_eq!(Allowance::new(Some(spent), now, 10).count, 0);
    }
}
