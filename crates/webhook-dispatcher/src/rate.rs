//! How many deliveries a rate limit allows, and when each may be sent.
//!
//! All replicas share one time line in the database: the seconds before `rate_time` are spent. A claim spends a
//! second of the future and spreads its requests over it; a rate below one a second spends the time of one request.
//! The next claim is due half a second before the spent time ends (`store::lanes::settle`). So a rate costs two
//! queries a second, for any rate and any backlog, and a query may be half a second late without delaying a request.
//! Slightly longer delays are caught up, so that the rate is reached. Unused time is not saved.

use std::time::Duration;

use domain::Timestamp;

/// How far into the future time may be spent.
const AHEAD: Duration = Duration::from_secs(1);
/// Maximum delay of the time line that is caught up.
const CATCH_UP: Duration = Duration::from_millis(200);

/// Number of requests that may be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Allowance {
    start: Timestamp,
    now: Timestamp,
    per_minute: u32,
    pub(crate) count: u32,
}

impl Allowance {
    pub(crate) fn new(rate_time: Option<Timestamp>, now: Timestamp, per_minute: u32) -> Self {
        let start = match rate_time {
            Some(time) if time >= now.minus(CATCH_UP) => time,
            _ => now,
        };
        let horizon = now.plus(AHEAD);
        let count = if start > horizon {
            0
        } else {
            let ahead = horizon.since(start).as_micros() * u128::from(per_minute) / 60_000_000;
            u32::try_from(ahead).unwrap_or(u32::MAX).saturating_add(1)
        };
        Self {
            start,
            now,
            per_minute,
            count,
        }
    }

    /// Returns how long the delivery at `place` has to wait.
    pub(crate) fn wait(&self, place: u32) -> Duration {
        self.start.plus(self.span(place)).since(self.now)
    }

    /// Returns the time line after `count` deliveries.
    pub(crate) fn spent(&self, count: u32) -> Timestamp {
        self.start.plus(self.span(count))
    }

    fn span(&self, count: u32) -> Duration {
        let micros = u64::from(count) * 60_000_000 / u64::from(self.per_minute.max(1));
        Duration::from_micros(micros)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::Timestamp;

    use super::Allowance;

    const SIMULATED: Duration = Duration::from_secs(200);

    /// Simulates `replicas` dispatchers that query the limit every `look`. Returns the times of the requests.
    fn simulate(per_minute: u32, look: Duration, replicas: u32) -> Vec<Duration> {
        let begin = Timestamp::now();
        let mut line = None;
        let mut sent = Vec::new();
        let mut elapsed = Duration::ZERO;
        while elapsed < SIMULATED {
            for _ in 0..replicas {
                let now = begin.plus(elapsed);
                let allowance = Allowance::new(line, now, per_minute);
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
                let sent = simulate(per_second * 60, look, replicas);
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

    /// A query comes 600 ms late, after a claim that had spread its requests over that time.
    #[test]
    fn late_queries_do_not_slow_the_rate() {
        let sent = simulate(20 * 60, Duration::from_millis(1_100), 1);
        for second in 1..18 {
            let window = Duration::from_secs(second)..Duration::from_secs(second + 1);
            let count = sent.iter().filter(|at| window.contains(*at)).count();
            assert!((18..=22).contains(&count), "{count} in second {second}");
        }
    }

    /// Discord takes 30 a minute.
    #[test]
    fn a_rate_below_one_a_second_is_met_in_every_minute() {
        for (look, replicas) in [(5, 1), (700, 3), (1_000, 2)] {
            let sent = simulate(28, Duration::from_millis(look), replicas);
            for second in 0..140 {
                let window = Duration::from_secs(second)..=Duration::from_secs(second + 60);
                let count = sent.iter().filter(|at| window.contains(*at)).count();
                assert!(
                    (20..=30).contains(&count),
                    "{count}, looking every {look} ms"
                );
            }
        }
    }

    #[test]
    fn unused_rate_is_not_saved() {
        let now = Timestamp::now();
        let long_ago = now.minus(Duration::from_secs(60));
        let allowance = Allowance::new(Some(long_ago), now, 600);
        assert_eq!(allowance.count, 11);
        assert_eq!(allowance.wait(0), Duration::ZERO);
        assert_eq!(allowance.wait(5), Duration::from_millis(500));
        let spent = allowance.spent(11);
        assert_eq!(Allowance::new(Some(spent), now, 600).count, 0);
    }
}
