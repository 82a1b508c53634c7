//! Next state of a delivery after an attempt.

use std::time::Duration;

use runtime::config::Dispatcher as Settings;
use store::deliveries::Verdict;

const GONE: u16 = 410;
const TOO_MANY_REQUESTS: u16 = 429;
const UNAVAILABLE: u16 = 503;
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// Pause after a 429 that names none.
const UNNAMED_PAUSE: Duration = Duration::from_secs(5);
/// Tolerance for differences between the clocks of replicas: if less than this is left of the maximum age, the
/// delivery does not wait for it.
const CLOSE: Duration = Duration::from_secs(1);
const JITTER: std::ops::Range<f64> = 0.8..1.2;
/// Deliveries that our own limit delays come back within this time after it.
const SPREAD: Duration = Duration::from_secs(60);

/// Result of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    /// `None` if there was no response.
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
    /// This attempt's number, from 1.
    pub(crate) number: u32,
    pub(crate) age: Duration,
}

/// Returns the next state: 2xx succeeds, 410 ends, and everything else is retried after the schedule's next wait with
/// ±20 % jitter. `Retry-After` of a 429 or 503 may lengthen the wait, up to a day, and never shortens it. The delivery
/// is given up after the schedule's last wait, and at its maximum age, when it is tried for the last time.
pub(crate) fn verdict(tried: Tried, settings: &Settings) -> Verdict {
    verdict_with(tried, settings, rand::random_range(JITTER))
}

fn verdict_with(tried: Tried, settings: &Settings, jitter: f64) -> Verdict {
    match tried.status {
        Some(200..=299) => return Verdict::Succeeded,
        Some(GONE) => return Verdict::Exhausted,
        _ => {}
    }
    let left = settings.max_age.saturating_sub(tried.age);
    if left < CLOSE {
        return Verdict::Expired;
    }
    let place = usize::try_from(tried.number.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(wait) = settings.retry_schedule.get(place) else {
        return Verdict::Exhausted;
    };
    let asked = asked_pause(tried.status, tried.retry_after).unwrap_or_default();
    Verdict::RetryIn(wait.mul_f64(jitter).max(asked).min(left))
}

/// Returns the next state of a delivery that waits for our own limit: it comes back after `pause`, but not all at once. Only
/// its maximum age ends it, because the schedule is for failures of others.
pub(crate) fn delayed(pause: Duration, age: Duration, settings: &Settings) -> Verdict {
    let left = settings.max_age.saturating_sub(age);
    if left < CLOSE {
        return Verdict::Expired;
    }
    let wait = pause + SPREAD.mul_f64(rand::random_range(0.0..1.0));
    Verdict::RetryIn(wait.min(left))
}

/// Returns how long the endpoint wants no request, of any delivery. A 429 without a time asks for a short pause, and a
/// 503 without one is an ordinary failure.
pub(crate) fn asked_pause(status: Option<u16>, retry_after: Option<Duration>) -> Option<Duration> {
    let asked = retry_after.filter(|asked| !asked.is_zero());
    let asked = match status? {
        TOO_MANY_REQUESTS => asked.unwrap_or(UNNAMED_PAUSE),
        UNAVAILABLE => asked?,
        _ => return None,
    };
    Some(asked.min(MAX_RETRY_AFTER))
}

/// Returns true if the endpoint reports that it is permanently gone and must not get anything more.
pub(crate) fn is_gone(status: Option<u16>) -> bool {
    status == Some(GONE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use runtime::Config;
    use store::deliveries::Verdict;

    use super::{Tried, verdict_with};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_outcome_sets_the_next_state() {
        let settings = Config::default().dispatcher;
        let retry = |wait| Verdict::RetryIn(seconds(wait));
        for (status, number, retry_after, expected) in [
            (Some(200), 1, None, Verdict::Succeeded),
            (Some(204), 7, None, Verdict::Succeeded),
            (Some(299), 1, None, Verdict::Succeeded),
            (Some(410), 1, None, Verdict::Exhausted),
            (None, 1, None, retry(5)),
            (None, 2, None, retry(30)),
            (Some(301), 1, None, retry(5)),
            (Some(404), 1, None, retry(5)),
            (Some(500), 3, None, retry(300)),
            (Some(429), 1, Some(60), retry(60)),
            (Some(503), 3, Some(60), retry(300)),
            (Some(500), 1, Some(60), retry(5)),
            (Some(429), 1, Some(1_000_000), retry(86_400)),
            (Some(500), 10, None, retry(86_400)),
            (Some(500), 11, None, Verdict::Exhausted),
        ] {
            let tried = Tried {
                status,
                retry_after: retry_after.map(seconds),
                number,
                age: Duration::ZERO,
            };
            let found = verdict_with(tried, &settings, 1.0);
            assert_eq!(
                found, expected,
                "{status:?}, attempt {number}, retry after {retry_after:?}"
            );
        }
    }

    #[test]
    fn delivery_that_our_limit_delays_ends_only_by_its_age() {
        let settings = Config::default().dispatcher;
        let delayed = |age| super::delayed(seconds(30), age, &settings);
        let Verdict::RetryIn(wait) = delayed(Duration::ZERO) else {
            panic!("it has ended");
        };
        assert!((seconds(30)..=seconds(90)).contains(&wait), "{wait:?}");
        let max = settings.max_age;
        assert_eq!(delayed(max - seconds(2)), Verdict::RetryIn(seconds(2)));
        assert_eq!(delayed(max), Verdict::Expired);
    }

    #[test]
    fn pause_is_asked_for_by_429_and_by_503_with_a_time() {
        for (status, retry_after, expected) in [
            (Some(429), Some(60), Some(60)),
            (Some(503), Some(60), Some(60)),
            (Some(429), None, Some(5)),
            (Some(429), Some(0), Some(5)),
            (Some(429), Some(1), Some(1)),
            (Some(503), None, None),
            (Some(503), Some(0), None),
            (Some(500), Some(60), None),
            (None, None, None),
        ] {
            let found = super::asked_pause(status, retry_after.map(seconds));
            assert_eq!(
                found,
                expected.map(seconds),
                "{status:?}, retry after {retry_after:?}"
            );
        }
    }

    #[test]
    fn waits_have_a_jitter_of_a_fifth() {
        let settings = Config::default().dispatcher;
        let tried = |number| Tried {
            status: Some(500),
            retry_after: None,
            number,
            age: Duration::ZERO,
        };
        for (number, wait) in (1..).zip(&settings.retry_schedule) {
            let waits: Vec<_> = (0..200)
                .map(|_| match super::verdict(tried(number), &settings) {
                    Verdict::RetryIn(wait) => wait,
                    other => panic!("{other:?}"),
                })
                .collect();
            let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
            assert!(*least >= wait.mul_f64(0.8) && *most <= wait.mul_f64(1.2));
            assert!(*least < wait.mul_f64(0.9) && *most > wait.mul_f64(1.1));
        }
    }

    #[test]
    fn last_attempt_is_at_the_maximum_age() {
        let settings = Config::default().dispatcher;
        let at_age = |age, status, number| {
            let tried = Tried {
                status: Some(status),
                retry_after: None,
                number,
                age,
            };
            verdict_with(tried, &settings, 1.0)
        };
        let max = settings.max_age;
        for (age, status, number, expected) in [
            (max, 500, 1, Verdict::Expired),
            (max, 500, 11, Verdict::Expired),
            (max, 200, 1, Verdict::Succeeded),
            (max, 410, 1, Verdict::Exhausted),
            // The next wait would exceed it.
            (max - seconds(60), 500, 3, Verdict::RetryIn(seconds(60))),
            (max - seconds(60), 500, 1, Verdict::RetryIn(seconds(5))),
            (max - seconds(60), 500, 11, Verdict::Exhausted),
        ] {
            let found = at_age(age, status, number);
            assert_eq!(found, expected, "{status} at {age:?}, attempt {number}");
        }
    }
}
