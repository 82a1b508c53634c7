//! Waiting by polling.

use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(20);

/// Polls until there is an answer; panics, naming `what`, if none arrives `within` that time.
pub(crate) async fn eventually<T>(
    what: &str,
    within: Duration,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> T {
    let begin = Instant::now();
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(begin.elapsed() < within, "not within {within:?}: {what}");
        tokio::time::sleep(TICK).await;
    }
}
