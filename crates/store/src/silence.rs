//! Closes connections to a server that accepts statements and never answers them.
//!
//! TCP reports no error, because the kernel of such a server still acknowledges: its disk hangs or it is frozen,
//! and another server may be the primary by now. PostgreSQL itself ends every statement in time ([`crate::pool`]),
//! so a server that does not is lost.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Counts signs that connections lead to a server that is no longer the primary: it refused writes, or did not
/// answer.
pub(crate) static LOST_SERVERS: AtomicU64 = AtomicU64::new(0);

const TICK: Duration = Duration::from_secs(1);
/// A COMMIT has no time limit at the server, because it may wait for a synchronous standby. Closing its connection
/// leaves a session behind.
const COMMIT_FACTOR: u32 = 10;

const WAITS: u64 = 1;
const COMMITS: u64 = 2;
const ONE_ANSWER: u64 = 4;

/// What a connection waits for, and how many answers it received: flags in the lowest bits, and the number above
/// them.
///
/// A statement whose caller has gone still counts as waiting, until the next answer.
#[derive(Debug, Default)]
pub(crate) struct Answers(AtomicU64);

impl Answers {
    pub(crate) fn begin(&self, is_commit: bool) {
        let flags = if is_commit { WAITS | COMMITS } else { WAITS };
        self.0.fetch_or(flags, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self) {
        // Only the connection's own statements write here, one at a time.
        let before = self.0.load(Ordering::Relaxed);
        let after = before.wrapping_add(ONE_ANSWER) & !(WAITS | COMMITS);
        self.0.store(after, Ordering::Relaxed);
    }
}

/// Limit of a connection's wait for an answer.
#[derive(Debug, Clone)]
pub(crate) struct Silence {
    pub(crate) answers: Arc<Answers>,
    pub(crate) patience: Duration,
    /// [`LOST_SERVERS`], except in tests.
    pub(crate) lost_servers: &'static AtomicU64,
}

impl Silence {
    /// Drives a connection until its end. After too long a silence the connection is dropped, which ends its open
    /// statement with an error.
    pub(crate) async fn drive<E>(self, connection: impl Future<Output = Result<(), E>>) {
        let mut ticks = interval(TICK);
        // A process that was frozen itself must not count that time.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        tokio::select! {
            // The open statement gets the error.
            _ = connection => {}
            () = self.is_too_long(&mut ticks) => {
                self.lost_servers.fetch_add(1, Ordering::Relaxed);
                tracing::warn!("the database takes statements and does not answer: reconnecting");
            }
        }
    }

    async fn is_too_long(&self, ticks: &mut Interval) {
        let (mut before, mut waited) = (0, Duration::ZERO);
        let lost_servers = || self.lost_servers.load(Ordering::Relaxed);
        let mut lost_before = lost_servers();
        loop {
            ticks.tick().await;
            let now = self.answers.0.load(Ordering::Relaxed);
            let is_silent = now & WAITS != 0 && now / ONE_ANSWER == before / ONE_ANSWER;
            if is_silent {
                waited += TICK;
            } else {
                (waited, lost_before) = (Duration::ZERO, lost_servers());
            }
            before = now;
            // If other statements are not answered either, the COMMIT is not waiting for a standby.
            let is_lost = lost_servers() != lost_before;
            let patience = if now & COMMITS == 0 || is_lost {
                self.patience
            } else {
                self.patience * COMMIT_FACTOR
            };
            if waited > patience {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    fn silence(patience: Duration) -> Silence {
        Silence {
            answers: Arc::default(),
            patience,
            lost_servers: Box::leak(Box::default()),
        }
    }

    /// Returns the time until a connection is closed whose first call was `first_call`.
    async fn given_up_after(first_call: impl FnOnce(&Answers)) -> Duration {
        let silence = silence(Duration::from_secs(40));
        first_call(&silence.answers);
        let begin = Instant::now();
        silence
            .drive(std::future::pending::<Result<(), ()>>())
            .await;
        begin.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_commit_may_wait_longer_than_a_statement() {
        let statement = given_up_after(|answers| answers.begin(false)).await;
        let commit = given_up_after(|answers| answers.begin(true)).await;
        assert!((40..45).contains(&statement.as_secs()), "{statement:?}");
        assert!((400..405).contains(&commit.as_secs()), "{commit:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn commit_waits_no_longer_than_a_statement_once_the_server_is_known_to_be_lost() {
        let silence = silence(Duration::from_secs(40));
        let (lost, begin) = (silence.lost_servers, Instant::now());
        silence.answers.begin(true);
        let driven = tokio::spawn(silence.drive(std::future::pending::<Result<(), ()>>()));
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(!driven.is_finished());
        lost.fetch_add(1, Ordering::Relaxed);
        driven.await.unwrap();
        assert!(begin.elapsed().as_secs() < 105, "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_is_answered_or_idle_is_kept() {
        let silence = silence(Duration::from_secs(3));
        let answers = Arc::clone(&silence.answers);
        let driven = tokio::spawn(silence.drive(std::future::pending::<Result<(), ()>>()));
        for _ in 0..10 {
            answers.begin(false);
            tokio::time::sleep(Duration::from_secs(2)).await;
            answers.answered();
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(!driven.is_finished());
        // Repeated by callers that do not wait for it.
        for _ in 0..10 {
            answers.begin(false);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        assert!(driven.is_finished());
    }
}
