//! Next state of a delivery after an attempt.

use std::time::Duration;

use domain::Timestamp;
use runtime::config::Dispatcher as Settings;
use store::deliveries::Verdict;

const GONE: u16 = 410;
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 3_600);
/// Tolerance between the clocks of replicas: the rest of the greatest age is then not worth waiting for.
const CLOSE: Duration = Duration::from_secs(1);
const JITTER: std::ops::Range<f64> = 0.8..1.2;

/// Facts after an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tried {
    /// `None` where there was no answer.
    pub(crate) status: Option<u16>,
    pub(crate) retry_after: Option<Duration>,
    /// This attempt's number, from 1.
    pub(crate) number: u32,
    pub(crate) delivery_time: Timestamp,
}

/// 2xx acknowledges, 410 ends, all else is tried again after the schedule's next wait with ±20 %
/// jitter. `Retry-After` of a 429 or 503 may lengthen the wait, up to a day, and never shortens it.
/// The delivery is given up after the schedule's last wait, and at its greatest age, when it is
/// tried for the last time.
pub(crate) fn verdict(tried: Tried, settings: &Settings, now: Timestamp) -> Verdict {
    verdict_with(tried, settings, now, rand::random_range(JITTER))
}

fn verdict_with(tried: Tried, settings: &Settings, now: Timestamp, jitter: f64) -> Verdict {
    match tried.status {
        Some(200..=299) => return Verdict::Succeeded,
        Some(GONE) => return Verdict::Exhausted,
        _ => {}
    }
    let age = now.since(tried.delivery_time);
    let left = settings.max_age.saturating_sub(age);
    if left < CLOSE {
        return Verdict::Expired;
    }
    let place = usize::try_from(tried.number.saturating_sub(1)).unwrap_or(usize::MAX);
    let Some(wait) = settings.retry_schedule.get(place) else {
        return Verdict::Exhausted;
    };
    let asked = match tried.status {
        Some(429 | 503) => tried.retry_after.unwrap_or_default().min(MAX_RETRY_AFTER),
        _ => Duration::ZERO,
    };
    Verdict::RetryIn(wait.mul_f64(jitter).max(asked).min(left))
}

/// Returns true if the endpoint said that it is gone permanently, so that nothing more must be sent to it.
pub(crate) fn is_gone(status: Option<u16>) -> bool {
    status == Some(GONE)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::Timestamp;
    use runtime::Config;
    use store::deliveries::Verdict;

    use super::{Tried, verdict_with};

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn each_outcome_has_its_verdict() {
        let settings = Config::default().dispatcher;
        let now = Timestamp::now();
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
                delivery_time: now,
            };
            let found = verdict_with(tried, &settings, now, 1.0);
            assert_eq!(
                found, expected,
                "{status:?}, attempt {number}, retry after {retry_after:?}"
            );
        }
    }

    #[test]
    fn waits_spread_by_a_fifth() {
        let settings = Config::default().dispatcher;
        let now = Timestamp::now();
        let tried = |number| Tried {
            status: Some(500),
            retry_after: None,
            number,
            delivery_time: now,
        };
        for (number, wait) in (1..).zip(&settings.retry_schedule) {
            let waits: Vec<_> = (0..200)
                .map(|_| match super::verdict(tried(number), &settings, now) {
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
    fn a_delivery_is_tried_last_at_its_greatest_age() {
        let settings = Config::default().dispatcher;
        let now = Timestamp::now();
        let at_age = |age, status, number| {
            let tried = Tried {
                status: Some(status),
                retry_after: None,
                number,
                delivery_time: now.minus(age),
            };
            verdict_with(tried, &settings, now, 1.0)
        };
        let max = settings.max_age;
        for (age, status, number, expected) in [
            (max, 500, 1, Verdict::Expired),
            (max, 500, 11, Verdict::Expired),
            (max, 200, 1, Verdict::Succeeded),
            (max, 410, 1, Verdict::Exhausted),
            // The next wait would cross it.
            (max - seconds(60), 500, 3, Verdict::RetryIn(seconds(60))),
            (max - seconds(60), 500, 1, Verdict::RetryIn(seconds(5))),
            (max - seconds(60), 500, 11, Verdict::Exhausted),
        ] {
            let found = at_age(age, status, number);
            assert_eq!(found, expected, "{status} at {age:?}, attempt {number}");
        }
    }
}
