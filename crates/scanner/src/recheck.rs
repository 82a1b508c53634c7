//! Finds posts that were deleted at their source, where the platform's terms demand it or the operator does.
//!
//! A walk over all posts of the platform that are stored begins once in [`PASS`]. Each step asks the platform
//! about some of them, with low priority within its budget, and blanks those that are gone. One replica at a
//! time has the walk; its place is stored, so if a process dies leaves it where it was.

use std::time::Duration;

use backbone::Backbone;
use platforms::PollError;
use store::{AsyncConnection, erasure};
use tokio_util::sync::CancellationToken;

use crate::{
    budget, metrics,
    watched::{Watched, classify},
};

/// Interval from the start of one walk to the start of the next, unless a walk takes longer.
const PASS: Duration = Duration::from_secs(24 * 3_600);
const LOOK: Duration = Duration::from_secs(10);
const BETWEEN_STEPS: Duration = Duration::from_secs(1);
const AFTER_FAILURE: Duration = Duration::from_secs(300);
const DEADLINE: Duration = Duration::from_secs(120);

pub(crate) struct Recheck {
    watched: Watched,
    backbone: Backbone,
}

/// Outcome of a step.
enum Step {
    Idle,
    /// The posts that were checked had none of the platform.
    Passed,
    Asked,
}

impl Recheck {
    pub(crate) fn new(watched: Watched, backbone: Backbone) -> Self {
        Self { watched, backbone }
    }

    pub(crate) async fn run(self, shutdown: CancellationToken) {
        loop {
            let wait = match self.step().await {
                Ok(Step::Idle) => LOOK,
                Ok(Step::Passed) => Duration::ZERO,
                Ok(Step::Asked) => BETWEEN_STEPS,
                Err(error) => {
                    let error = anyhow::Error::from(error);
                    tracing::debug!(
                        platform = self.watched.name(),
                        "cannot re-check now: {error:#}"
                    );
                    // Asking costs, and what was answered may be what cannot be stored.
                    AFTER_FAILURE
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    async fn step(&self) -> Result<Step, store::Error> {
        let (name, replica) = (self.watched.name(), self.backbone.replica);
        let adapter = &self.watched.platform.adapter;
        let mut conn = self.backbone.pool.get().await?;
        let take_over = self.backbone.may_take_over();
        let Some(place) = erasure::lease(&mut conn, name, replica, take_over).await? else {
            return Ok(Step::Idle);
        };
        let step = erasure::next(&mut conn, name, &place, adapter.recheck_batch()).await?;
        if step.post_ids.is_empty() {
            let next = step.next.as_ref();
            erasure::advance(&mut conn, name, replica, next, Duration::ZERO, PASS).await?;
            return Ok(Step::Passed);
        }
        // Nothing is held while the platform is waited for.
        drop(conn);
        let asked = budget::undertake(true, None, adapter.recheck(&step.post_ids));
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        let gone = answer.map_err(cut_off).flatten();
        let mut conn = self.backbone.pool.get().await?;
        match gone {
            Ok(gone) => {
                let erased = conn.transaction(async |conn| {
                    let erased = erasure::erase(conn, &gone).await?;
                    let next = step.next.as_ref();
                    erasure::advance(conn, name, replica, next, BETWEEN_STEPS, PASS).await?;
                    Ok::<_, store::Error>(erased)
                });
                let erased = erased.await?;
                if erased > 0 {
                    metrics::ERASED
                        .with_label_values(&[name])
                        .inc_by(erased as u64);
                    tracing::info!(
                        platform = name,
                        erased,
                        "posts are gone at their source and are blanked"
                    );
                }
            }
            Err(error) => {
                let (_, reason) = classify(&error);
                let wait = error.retry_after().unwrap_or(AFTER_FAILURE);
                // An answer that is not believed, such as that all are gone, may stay: the next walk asks again.
                let place = match error {
                    PollError::Malformed(_) => step.next.as_ref(),
                    _ => Some(&place),
                };
                let error = format!("{:#}", anyhow::Error::from(error));
                self.watched.tell_failure("re-check", reason, &error);
                erasure::advance(&mut conn, name, replica, place, wait, PASS).await?;
            }
        }
        Ok(Step::Asked)
    }
}
