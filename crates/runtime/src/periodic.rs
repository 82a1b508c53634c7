//! Work that a process repeats until it stops.

use std::{mem::replace, time::Duration};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Paces a loop: it ends between two rounds, never within one, and logs once when its work begins to fail.
#[derive(Debug)]
pub struct Periodic<'a> {
    stop: &'a CancellationToken,
    /// Start of the current round.
    begun: Option<Instant>,
    failing: bool,
}

impl<'a> Periodic<'a> {
    pub fn new(stop: &'a CancellationToken) -> Self {
        Self {
            stop,
            begun: None,
            failing: false,
        }
    }

    /// Waits until a round has to begin: the first one at once, others a period after the start of the one before.
    /// A round that takes longer is followed at once. `false` when the loop has to end.
    pub async fn every(&mut self, period: Duration) -> bool {
        let due = self.begun.map(|begun| begun + period);
        self.at(due.unwrap_or_else(Instant::now)).await
    }

    /// Waits for this long, from now on. `false` when the loop has to end.
    pub async fn after(&mut self, pause: Duration) -> bool {
        self.at(Instant::now() + pause).await
    }

    async fn at(&mut self, due: Instant) -> bool {
        let waited = self.stop.run_until_cancelled(sleep_until(due)).await;
        self.begun = Some(Instant::now());
        waited.is_some()
    }

    /// Logs a result if it is the first failure, or the first success after a failure. Returns the value. `task`
    /// completes the sentence "cannot …".
    pub fn log_once<T, E: Into<anyhow::Error>>(
        &mut self,
        task: &str,
        result: Result<T, E>,
    ) -> Option<T> {
        match result.map_err(Into::into) {
            Ok(value) => {
                if replace(&mut self.failing, false) {
                    tracing::info!("can {task} again");
                }
                Some(value)
            }
            Err(error) => {
                if !replace(&mut self.failing, true) {
                    tracing::warn!("cannot {task}: {error:#}");
                }
                None
            }
        }
    }
}

/// A database that was slow for once must not keep work from being done for long.
const MAX_REST: Duration = Duration::from_secs(300);

/// Limits reads whose cost grows with the data to a share of the time, however much data there is.
#[derive(Debug)]
pub struct Sparing {
    rest: u32,
    due: Instant,
}

impl Sparing {
    /// After each run comes a pause of `rest` times its duration.
    pub fn new(rest: u32) -> Self {
        Self {
            rest,
            due: Instant::now(),
        }
    }

    /// Runs `work` unless it is in its pause.
    pub async fn run<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let begun = Instant::now();
        if begun < self.due {
            return None;
        }
        let done = work.await;
        let ended = Instant::now();
        self.due = ended + (ended - begun).saturating_mul(self.rest).min(MAX_REST);
        Some(done)
    }
}

#[cfg(test)]
mod tests {
    use std::{io, time::Duration};

    use tokio::time::{Instant, sleep};
    use tokio_util::sync::CancellationToken;

    use super::{Periodic, Sparing};

    #[tokio::test(start_paused = true)]
    async fn rounds_begin_at_once_and_then_every_period() {
        let stop = CancellationToken::new();
        let mut rounds = Periodic::new(&stop);
        let start = Instant::now();
        let mut begun = Vec::new();
        for takes in [0, 25, 0] {
            assert!(rounds.every(Duration::from_secs(10)).await);
            begun.push(start.elapsed().as_secs());
            sleep(Duration::from_secs(takes)).await;
        }
        sleep(Duration::from_secs(3)).await;
        assert!(rounds.after(Duration::from_secs(10)).await);
        begun.push(start.elapsed().as_secs());
        assert_eq!(begun, [0, 10, 35, 48]);
    }

    #[tokio::test(start_paused = true)]
    async fn costly_work_is_left_out_for_a_multiple_of_its_duration() {
        let mut sparing = Sparing::new(10);
        let start = Instant::now();
        let mut done = Vec::new();
        while start.elapsed() < Duration::from_secs(30) {
            if sparing.run(sleep(Duration::from_secs(1))).await.is_some() {
                done.push(start.elapsed().as_secs());
            }
            sleep(Duration::from_secs(1)).await;
        }
        // A pause of ten seconds after each.
        assert_eq!(done, [1, 12, 23]);
    }

    #[tokio::test]
    async fn a_stop_ends_the_loop() {
        let stop = CancellationToken::new();
        let mut rounds = Periodic::new(&stop);
        stop.cancel();
        assert!(!rounds.every(Duration::ZERO).await);
        assert!(!rounds.after(Duration::from_secs(3_600)).await);
    }

    #[test]
    fn a_failure_is_reported_once() {
        let stop = CancellationToken::new();
        let mut rounds = Periodic::new(&stop);
        for _ in 0..2 {
            assert_eq!(
                rounds.log_once("test", Err::<(), _>(io::Error::other("gone"))),
                None
            );
            assert!(rounds.failing);
        }
        assert_eq!(rounds.log_once("test", Ok::<_, io::Error>(7)), Some(7));
        assert!(!rounds.failing);
    }
}
