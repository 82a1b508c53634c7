//! Waiting by polling, and what to say when the wait is in vain.

use std::time::{Duration, Instant};

/// Shortest pause between two looks. Each look costs CPU time, so the pause grows the longer it takes.
const TICK: Duration = Duration::from_millis(20);
const LONGEST_TICK: Duration = Duration::from_millis(500);

/// Begins the message of a test that found what no slow machine explains: something lost or doubled, or a service that
/// ended or needed more memory than it has. `cargo xtask test` fails for such a message, even if a retry passes.
pub(crate) const LOSS: &str = "LOSS: ";

/// Watched feeds that were not polled since a time.
pub(crate) const NOT_POLLED: &str =
    "SELECT count(*) FROM feeds WHERE watched AND coalesce(last_poll_time, '-infinity') <= ";

/// Number of Scans and deliveries that are not finished.
pub(crate) const WAITING: &str = "SELECT (SELECT count(*) FROM scans WHERE NOT fanned_out) \
    + (SELECT count(*) FROM deliveries WHERE state <> 'SUCCEEDED')";

/// Polls until there is an answer; panics, naming `what`, if none arrives `within` that time.
pub(crate) async fn eventually<T>(
    what: &str,
    within: Duration,
    ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let answer = ask_within(within, ask).await;
    answer.unwrap_or_else(|| panic!("not within {within:?}: {what}"))
}

/// Works like [`eventually`], on a service whose database answers `query`. If there is no answer in time, although every
/// feed was polled again and no work is left, then it does not only take long: something is lost.
pub(crate) async fn eventually_or_lost<T>(
    what: &str,
    within: Duration,
    query: impl Fn(&str) -> String,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    if let Some(answer) = ask_within(within, &mut ask).await {
        return answer;
    }
    let not_polled = format!("{NOT_POLLED}'{}'", query("SELECT clock_timestamp()"));
    let is_idle = ask_within(within, async || {
        let is_idle = query(&not_polled) == "0" && query(WAITING) == "0";
        is_idle.then_some(())
    });
    let is_lost = is_idle.await.is_some() && ask().await.is_none();
    assert!(!is_lost, "{LOSS}{what}, and nothing is left to do");
    panic!("not within {within:?}: {what}");
}

/// Polls until there is an answer; returns `None` if none arrives `within` that time.
async fn ask_within<T>(within: Duration, mut ask: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    let waiting = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep((begin.elapsed() / 10).clamp(TICK, LONGEST_TICK)).await;
        }
    };
    tokio::time::timeout(within, waiting).await.ok()
}
