//! Repeats work that must succeed before its caller can go on.

use tokio_util::sync::CancellationToken;

use crate::{backoff::Backoff, periodic::Periodic};

/// Repeats `work` until it succeeds, with the waits of [`Backoff::reconnect`]. `None` if `stop` came first. Logs like
/// [`Periodic::log_once`]: `task` completes the sentence "cannot …".
pub async fn retry<T, E, F>(
    task: &str,
    stop: &CancellationToken,
    mut work: impl FnMut() -> F,
) -> Option<T>
where
    E: Into<anyhow::Error>,
    F: Future<Output = Result<T, E>>,
{
    let mut rounds = Periodic::new(stop);
    let mut backoff = Backoff::reconnect();
    loop {
        let result = work().await;
        let done = rounds.log_once(task, result);
        if done.is_some() || !rounds.after(backoff.next()).await {
            return done;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, io};

    use tokio_util::sync::CancellationToken;

    use super::retry;

    #[tokio::test(start_paused = true)]
    async fn work_is_repeated_until_it_succeeds_or_has_to_stop() {
        let stop = CancellationToken::new();
        let gone = || Err(io::Error::other("gone"));
        let mut results = [gone(), gone(), Ok(7)].into_iter();
        let next = || ready(results.next().unwrap());
        assert_eq!(retry("test", &stop, next).await, Some(7));
        stop.cancel();
        assert_eq!(retry("test", &stop, || ready(gone())).await, None);
    }
}
