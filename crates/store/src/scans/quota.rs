//! The volume limit `maxScansPerDay`.
//!
//! Half of a day's Scans are admitted without further conditions, and more as the day goes on: what the time of day
//! allows is never held back. Beyond that, the effective threshold rises with each Scan, from the lowest score of
//! the day's matches to the highest, so that the best matches of a flood are still admitted. At the limit nothing
//! is. Scores are only compared with those of the same Manager, so any scale works. Rejected posts are counted.
//! Past posts spend at most half of a day, and nothing if their Scans are silent.
//!
//! The state is in the row of the Manager's clock. The row is locked before it is read and until it is written
//! back, so two scanners never spend the same Scan.

use chrono::{DateTime, Days, NaiveDate, Utc};

/// Part of a day's Scans that is admitted without a rising threshold, at any time of the day.
const FREE_PART: f64 = 0.5;
const DAY_SECONDS: f64 = 86_400.0;

/// State of a Manager's day.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Quota {
    max: u32,
    /// Part of the day that is over.
    elapsed: f64,
    pub(super) state: State,
}

/// State as stored in the table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct State {
    pub(super) day: NaiveDate,
    pub(super) made: u32,
    pub(super) suppressed: u32,
    /// Lowest and highest score of the day's matches.
    pub(super) range: Option<(f64, f64)>,
}

impl Quota {
    /// Uses `stored` if it is from today or tomorrow.
    pub(super) fn new(max: u32, now: DateTime<Utc>, stored: Option<State>) -> Self {
        let day = now.date_naive();
        let midnight = day.and_time(chrono::NaiveTime::MIN).and_utc();
        #[expect(
            clippy::cast_precision_loss,
            reason = "the milliseconds of a day are exact"
        )]
        let seconds = (now - midnight).num_milliseconds() as f64 / 1_000.0;
        let fresh = State {
            day,
            made: 0,
            suppressed: 0,
            range: None,
        };
        Self {
            max,
            elapsed: seconds / DAY_SECONDS,
            // If the clock was set back over midnight, the later day continues. A day further ahead is from a wrong
            // clock, and must not continue until then.
            state: stored
                .filter(|state| state.day >= day && state.day <= day + Days::new(1))
                .unwrap_or(fresh),
        }
    }

    /// Returns true if a match with this score becomes a Scan. It counts either way.
    pub(super) fn admits(&mut self, score: f64) -> bool {
        let (low, high) = self.state.range.unwrap_or((score, score));
        let (low, high) = (low.min(score), high.max(score));
        self.state.range = Some((low, high));
        let admitted = self.state.made < self.max && score >= low + (high - low) * self.pressure();
        if admitted {
            self.state.made += 1;
        } else {
            self.state.suppressed = self.state.suppressed.saturating_add(1);
        }
        admitted
    }

    /// Same as [`Self::admits`], for a past post: these leave half of the day to new posts.
    pub(super) fn admits_past(&mut self) -> bool {
        let admitted = (self.state.made + 1) * 2 <= self.max;
        if admitted {
            self.state.made += 1;
        } else {
            self.state.suppressed = self.state.suppressed.saturating_add(1);
        }
        admitted
    }

    /// Returns how far the threshold has risen: 0 to 1.
    fn pressure(&self) -> f64 {
        let max = f64::from(self.max);
        let free = max * self.elapsed.max(FREE_PART);
        let over = f64::from(self.state.made) - free;
        if over <= 0.0 {
            0.0
        } else {
            over / (max - free)
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::{Quota, State};

    fn at(time: &str) -> DateTime<Utc> {
        time.parse().unwrap()
    }

    fn morning(max: u32) -> Quota {
        Quota::new(max, at("2026-11-21T01:00:00Z"), None)
    }

    #[test]
    fn quiet_day_admits_all_matches() {
        let mut quota = morning(10);
        assert!((0..5).all(|n| quota.admits(f64::from(5 - n))));
        assert_eq!((quota.state.made, quota.state.suppressed), (5, 0));
    }

    #[test]
    fn best_matches_of_a_flood_are_admitted() {
        let mut quota = morning(100);
        // Scores come in no order: 0.50 to 0.99.
        let score = |n: u32| f64::from(50 + n * 37 % 50) / 100.0;
        let late: Vec<f64> = (0..1_000)
            .map(score)
            .filter(|&score| quota.admits(score))
            .skip(90)
            .collect();
        assert!(quota.state.made <= 100, "{:?}", quota.state);
        assert_eq!(quota.state.made + quota.state.suppressed, 1_000);
        assert!(
            !late.is_empty() && late.iter().all(|&score| score > 0.85),
            "{late:?}"
        );
    }

    #[test]
    fn no_match_is_admitted_at_the_limit() {
        let mut quota = morning(3);
        let admitted = (0..10).filter(|_| quota.admits(0.0)).count();
        assert_eq!((admitted, quota.state.suppressed), (3, 7));
    }

    #[test]
    fn matches_within_the_elapsed_part_of_the_day_are_admitted() {
        let mut quota = Quota::new(100, at("2026-11-21T23:00:00Z"), None);
        // Falling, so that any pressure would show.
        let admitted = (0..95)
            .filter(|&n| quota.admits(f64::from(100 - n)))
            .count();
        assert_eq!(admitted, 95);
    }

    #[test]
    fn new_day_resets_the_count_and_the_same_day_continues() {
        let state = State {
            day: "2026-11-21".parse().unwrap(),
            made: 3,
            suppressed: 4,
            range: Some((0.5, 0.9)),
        };
        let mut same = Quota::new(3, at("2026-11-21T23:59:59Z"), Some(state.clone()));
        assert!(!same.admits(1.0));
        assert_eq!(same.state.suppressed, 5);
        let mut next = Quota::new(3, at("2026-11-22T00:00:00Z"), Some(state));
        assert!(next.admits(0.1));
        assert_eq!((next.state.made, next.state.suppressed), (1, 0));
    }

    #[test]
    fn day_continues_after_a_small_clock_step_and_not_after_a_large_one() {
        let state = State {
            day: "2026-11-22".parse().unwrap(),
            made: 3,
            suppressed: 0,
            range: None,
        };
        let mut same = Quota::new(3, at("2026-11-21T23:59:59Z"), Some(state.clone()));
        assert!(!same.admits(1.0));
        let mut other = Quota::new(3, at("2026-11-01T12:00:00Z"), Some(state));
        assert!(other.admits(1.0));
        assert_eq!(other.state.day.to_string(), "2026-11-01");
    }
}
