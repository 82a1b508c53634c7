//! Finds posts that were deleted at their source, if the platform's terms or the operator require it.
//!
//! A walk over all stored posts of the platform starts once in [`PASS`]. Each step asks the platform about some of
//! them, with low priority within its budget, and blanks those that are gone. One replica at a time runs the walk.
//! Its position is stored, so if a process dies, another continues there.

use std::time::Duration;

use backbone::Backbone;
use platforms::PollError;
use runtime::Periodic;
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

/// With so many missing posts in a row, a problem of the platform is more likely than deletions.
const MANY: usize = 10;

pub(crate) struct Recheck {
    watched: Watched,
    backbone: Backbone,
    doubtful: Doubtful,
}

/// Posts that were all gone since the last one that was found. A server in front of the platform may answer like
/// this for all posts.
#[derive(Default)]
struct Doubtful {
    in_a_row: usize,
    post_ids: Vec<String>,
}

impl Doubtful {
    /// Returns the posts that count as gone after a step that checked `asked` posts and found all but `gone`. Posts
    /// of a step that found nothing wait for a step that finds one, or for the walk's end.
    fn believe(
        &mut self,
        asked: usize,
        gone: Vec<String>,
        is_last: bool,
    ) -> Result<Vec<String>, PollError> {
        self.in_a_row += gone.len();
        if gone.len() < asked {
            self.in_a_row = 0;
        }
        if self.in_a_row >= MANY {
            self.post_ids.clear();
            let problem = format!("none of {} found", self.in_a_row);
            return Err(PollError::Malformed(problem));
        }
        self.post_ids.extend(gone);
        if self.in_a_row > 0 && !is_last {
            return Ok(Vec::new());
        }
        Ok(std::mem::take(&mut self.post_ids))
    }
}

/// Result of a step.
enum Step {
    Idle,
    /// The rows read contained no post of the platform.
    Passed,
    Asked,
}

impl Recheck {
    pub(crate) fn new(watched: Watched, backbone: Backbone) -> Self {
        Self {
            watched,
            backbone,
            doubtful: Doubtful::default(),
        }
    }

    pub(crate) async fn run(mut self, shutdown: CancellationToken) {
        let mut rounds = Periodic::new(&shutdown);
        let mut wait = Duration::ZERO;
        while rounds.after(wait).await {
            wait = match self.step().await {
                Ok(Step::Idle) => LOOK,
                Ok(Step::Passed) => Duration::ZERO,
                Ok(Step::Asked) => BETWEEN_STEPS,
                Err(error) => {
                    let platform = self.watched.name();
                    tracing::debug!(platform, "cannot re-check now: {error:#}");
                    // Requests cost budget, and the response may be what cannot be stored.
                    AFTER_FAILURE
                }
            };
        }
    }

    async fn step(&mut self) -> Result<Step, store::Error> {
        let (name, replica) = (self.watched.name(), self.backbone.replica);
        let adapter = &self.watched.platform.adapter;
        let mut conn = self.backbone.pool.get().await?;
        let take_over = self.backbone.may_take_over();
        let Some(place) = erasure::lease(&mut conn, name, replica, take_over).await? else {
            return Ok(Step::Idle);
        };
        let step = erasure::next(&mut conn, name, &place, adapter.recheck_batch()).await?;
        let is_last = step.next.is_none();
        if step.post_ids.is_empty() && (!is_last || self.doubtful.post_ids.is_empty()) {
            let next = step.next.as_ref();
            erasure::advance(&mut conn, name, replica, next, Duration::ZERO, PASS).await?;
            return Ok(Step::Passed);
        }
        // Nothing is held while waiting for the platform.
        drop(conn);
        let asked = budget::undertake(true, None, adapter.recheck(&step.post_ids));
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        let gone = answer.map_err(cut_off).flatten();
        let asked = step.post_ids.len();
        let gone = gone.and_then(|gone| self.doubtful.believe(asked, gone, is_last));
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
                // An implausible response, for example that all posts are gone, may be repeated: the next walk asks
                // again.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(count: usize) -> Vec<String> {
        (0..count).map(|id| id.to_string()).collect()
    }

    #[test]
    fn posts_that_are_all_gone_wait_for_one_that_is_found() {
        let mut doubtful = Doubtful::default();
        let mut believed = |asked, gone, is_last| {
            let believed = doubtful.believe(asked, ids(gone), is_last);
            believed.ok().map(|ids| ids.len())
        };
        assert_eq!(believed(5, 2, false), Some(2));
        assert_eq!(believed(5, 5, false), Some(0));
        assert_eq!(believed(5, 0, false), Some(5));
        assert_eq!(believed(4, 4, false), Some(0));
        assert_eq!(believed(0, 0, true), Some(4), "few, at the end");
    }

    #[test]
    fn many_posts_in_a_row_are_not_believed_to_be_gone() {
        let mut doubtful = Doubtful::default();
        let mut believed = |asked, gone, is_last| {
            let believed = doubtful.believe(asked, ids(gone), is_last);
            believed.ok().map(|ids| ids.len())
        };
        assert_eq!(believed(5, 5, false), Some(0));
        assert_eq!(believed(5, 5, false), None);
        assert_eq!(believed(2, 2, true), None, "nor the last few");
        assert_eq!(believed(50, 1, false), Some(1), "it answers again");
    }
}
