//! Waits between attempts to reach an unavailable dependency.

use std::time::Duration;

use rand::Rng;

/// Doubles from `min` to `max`, and randomises each wait over its upper half, so that replicas that lost the
/// same broker do not reconnect at the same time.
#[derive(Debug, Clone)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    next: Duration,
}

impl Backoff {
    pub fn new(min: Duration, max: Duration) -> Self {
        let max = max.max(min);
        Self {
            min,
            max,
            next: min,
        }
    }

    /// For an unavailable broker or database: from a tenth of a second to five seconds.
    pub fn reconnect() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(5))
    }

    /// Returns the next wait; later ones are longer.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that never ends would invite to be collected"
    )]
    pub fn next(&mut self) -> Duration {
        let wait = self.next;
        self.next = wait.saturating_mul(2).min(self.max);
        wait.mul_f64(rand::rng().random_range(0.5..=1.0))
    }

    /// Sleeps for the next wait.
    pub async fn wait(&mut self) {
        tokio::time::sleep(self.next()).await;
    }

    /// Starts again from the shortest wait, because the dependency is back.
    pub fn reset(&mut self) {
        self.next = self.min;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Backoff;

    #[test]
    fn waits_double_up_to_the_maximum() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        for longest in [1, 2, 4, 5, 5, 5] {
            let longest = Duration::from_secs(longest);
            let wait = backoff.next();
            assert!(
                wait >= longest / 2 && wait <= longest,
                "{wait:?} of {longest:?}"
            );
        }
        backoff.reset();
        assert!(backoff.next() <= Duration::from_secs(1));
    }

    #[test]
    fn maximum_wait_is_never_below_the_minimum() {
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::ZERO);
        assert!(backoff.next() >= Duration::from_secs(1));
    }

    #[test]
    fn endless_waits_do_not_overflow() {
        let mut backoff = Backoff::new(Duration::MAX / 2, Duration::from_secs(u64::MAX / 4));
        for _ in 0..100 {
            backoff.reset();
            let _ = backoff.next();
        }
    }
}
