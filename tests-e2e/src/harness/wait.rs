//! Waiting by polling.

use std::time::{Duration, Instant};

/// Shortest pause between two looks. Each look costs CPU time, so the pause grows the longer it takes.
const TICK: Duration = Duration::from_millis(20);
const LONGEST_TICK: Duration = Duration::from_millis(200);

/// Polls until there is an answer; panics, naming `what`, if none arrives `within` that time.
pub(crate) async fn eventually<T>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begin = Instant::now();
    let waiting = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep((begin.elapsed() / 10).clamp(TICK, LONGEST_TICK)).await;
        }
    };
    let answer = tokio::time::timeout(within, waiting).await;
    answer.unwrap_or_else(|_elapsed| panic!("not within {within:?}: {what}"))
}
