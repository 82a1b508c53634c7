//! Waiting between tries: twice as long each time up to a limit, and never quite in step with others.

use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    pub(crate) fn new(first: Duration, most: Duration) -> Self {
        Self {
            first,
            most,
            next: first,
        }
    }

    /// For a broker or a database that is away: from a tenth of a second to five.
    pub(crate) fn reconnect() -> Self {
        Self::new(Duration::from_millis(100), Duration::from_secs(5))
    }

    pub(crate) fn reset(&mut self) {
        self.next = self.first;
    }

    /// The next wait, between half and the whole of the step.
    pub(crate) fn step(&mut self) -> Duration {
        let step = self.next;
        self.next = (step * 2).min(self.most);
        step.mul_f64(0.5 + rand::random::<f64>() / 2.0)
    }

    pub(crate) async fn wait(&mut self) {
        tokio::time::sleep(self.step()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_limit_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));

        let steps: Vec<Duration> = (0..20).map(|_| backoff.step()).collect();
        assert!(steps[0] <= Duration::from_millis(100) && steps[0] >= Duration::from_millis(50));
        assert!(steps.iter().all(|step| *step <= Duration::from_secs(1)));
        assert!(steps[19] >= Duration::from_millis(500));

        backoff.reset();
        assert!(backoff.step() <= Duration::from_millis(100));
    }
}
