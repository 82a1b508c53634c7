//! Waiting by polling, and what to say when the wait is in vain.

use std::time::{Duration, Instant};

/// Shortest pause between two looks. Each look costs CPU time, so the pause grows the longer it takes.
const TICK: Duration = Duration::from_millis(20);
const LONGEST_TICK: Duration = Duration::from_millis(200);

/// Begins the message of a test that found something lost or doubled, which no slow machine explains. `cargo xtask test`
/// fails for such a message, even if a retry passes.
pub(crate) const LOSS: &str = "LOSS: ";

/// Polls until there is an answer; panics, naming `what`, if none arrives `within` that time.
pub(crate) async fn eventually<T>(
    what: &str,
    within: Duration,
    ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let answer = ask_within(within, ask).await;
    answer.unwrap_or_else(|| panic!("not within {within:?}: {what}"))
}

/// Polls until there is an answer; returns `None` if none arrives `within` that time.
pub(crate) async fn ask_within<T>(
    within: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> Option<T> {
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
