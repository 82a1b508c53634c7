//! Finds posts that were deleted at their source, if the platform's terms or the operator require it. Also finds edits of
//! the others, if the platform's answers have texts.
//!
//! A walk over all stored posts of the platform starts once in [`PASS`]. Each step asks the platform about some of
//! them, with low priority within its budget, and records those that are gone. One replica at a time runs the walk. Its
//! position is stored, so if a process dies, another continues there.
//!
//! A post is blanked only if a second check, an hour or more after the first, does not find it either, because a
//! platform may answer 404 for a while. A second check includes other posts, which show whether the platform finds any.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backbone::{
    Backbone,
    work::{self, Settings, Work},
};
use domain::Post;
use platforms::PollError;
use store::{
    AsyncConnection, AsyncPgConnection,
    erasure::{self, Place, Stretch, edits, missing},
    work::{Claim, Claimed, Leased, Setback},
};

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
    doubtful: Mutex<Doubtful>,
    /// Posts that the last step read ahead.
    ahead: Mutex<Option<Stretch>>,
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

impl Recheck {
    pub(crate) fn new(watched: Watched, backbone: Backbone) -> Self {
        Self {
            watched,
            backbone,
            doubtful: Mutex::default(),
            ahead: Mutex::default(),
        }
    }

    async fn step(&self, place: &Place) -> Result<(), store::Error> {
        let (name, replica) = (self.watched.name(), self.backbone.replica);
        let adapter = &self.watched.platform.adapter;
        let mut conn = self.backbone.pool.get().await?;
        let batch = adapter.recheck_batch();
        let due = missing::due(&mut conn, name, batch / 2).await?;
        if !place.is_walking && due.is_empty() {
            erasure::release(&mut conn, name, replica, BETWEEN_STEPS).await?;
            return Ok(());
        }
        let ahead = self.ahead().take().filter(|ahead| ahead.goes_on_at(place));
        let mut stretch = match ahead {
            Some(ahead) => ahead,
            None => erasure::read(&mut conn, name, place).await?,
        };
        let mut step = stretch.step(batch - due.len());
        *self.ahead() = Some(stretch);
        step.post_ids.retain(|id| !due.contains(id));
        let is_last = place.is_walking && step.next.is_none();
        let nothing_waits = due.is_empty() && self.doubtful().post_ids.is_empty();
        if place.is_walking && step.post_ids.is_empty() && (!is_last || nothing_waits) {
            let next = step.next.as_ref();
            erasure::advance(&mut conn, name, replica, next, Duration::ZERO, PASS).await?;
            return Ok(());
        }
        // Nothing is held while waiting for the platform.
        drop(conn);
        let post_ids = [due.as_slice(), &step.post_ids].concat();
        let asked = budget::undertake(true, None, adapter.recheck(&post_ids));
        let answer = tokio::time::timeout(DEADLINE, asked).await;
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        let mut current = Vec::new();
        let gone = answer.map_err(cut_off).flatten().map(|answer| {
            current = answer.current;
            answer.gone
        });
        let asked = post_ids.len();
        let found: Vec<String> = post_ids
            .into_iter()
            .filter(|id| gone.as_ref().is_ok_and(|gone| !gone.contains(id)))
            .collect();
        let gone = gone.and_then(|gone| self.doubtful().believe(asked, gone, is_last));
        let mut conn = self.backbone.pool.get().await?;
        match gone {
            Ok(gone) => {
                let decided = conn
                    .transaction(async |conn| decide(conn, name, &found, &gone, &current).await);
                let erased = match decided.await {
                    Err(error) if error.may_blame_values() => {
                        self.decide_apart(&mut conn, &found, &gone).await?
                    }
                    decided => decided?,
                };
                if place.is_walking {
                    let next = step.next.as_ref();
                    erasure::advance(&mut conn, name, replica, next, BETWEEN_STEPS, PASS).await?;
                } else {
                    erasure::release(&mut conn, name, replica, BETWEEN_STEPS).await?;
                }
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
                // An implausible response, for example that all posts are gone, may come again for the same posts. So
                // the walk continues after them, and the next walk checks them again.
                let is_implausible = matches!(error, PollError::Malformed(_));
                let place = match place.is_walking && is_implausible {
                    true => step.next.as_ref(),
                    false => Some(place),
                };
                if is_implausible {
                    missing::put_off(&mut conn, name, &due).await?;
                }
                let error = format!("{:#}", anyhow::Error::from(error));
                self.watched.report_failure("re-check", reason, &error);
                erasure::advance(&mut conn, name, replica, place, wait, PASS).await?;
            }
        }
        Ok(())
    }

    /// Does the same as [`decide`], post by post: a post that the database refuses does not delay the others. Edits are left
    /// to the next walk.
    async fn decide_apart(
        &self,
        conn: &mut AsyncPgConnection,
        found: &[String],
        gone: &[String],
    ) -> Result<usize, store::Error> {
        let name = self.watched.name();
        decide(conn, name, found, &[], &[]).await?;
        let mut erased = 0;
        let mut refused = Vec::new();
        for post_id in gone {
            let one = std::slice::from_ref(post_id);
            let decided = conn.transaction(async |conn| decide(conn, name, &[], one, &[]).await);
            match decided.await {
                Err(error) if error.may_blame_values() => {
                    let error = anyhow::Error::from(error);
                    tracing::error!(
                        platform = name,
                        post.id = %post_id,
                        "a post cannot be blanked: {error:#}"
                    );
                    refused.push(post_id.clone());
                }
                decided => erased += decided?,
            }
        }
        missing::put_off(conn, name, &refused).await?;
        work::count_set_aside(self.settings().kind, refused.len());
        Ok(erased)
    }

    fn ahead(&self) -> MutexGuard<'_, Option<Stretch>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn doubtful(&self) -> MutexGuard<'_, Doubtful> {
        self.doubtful.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stores the results of a check, and blanks the posts that two checks did not find. `current` are posts as they are now.
/// Returns the number of blanked posts.
async fn decide(
    conn: &mut AsyncPgConnection,
    platform: &str,
    found: &[String],
    gone: &[String],
    current: &[Post],
) -> Result<usize, store::Error> {
    edits::record(conn, current).await?;
    let gone = missing::record(conn, platform, found, gone).await?;
    Ok(erasure::erase(conn, &gone).await?)
}

impl Work for Recheck {
    type Item = Place;

    fn settings(&self) -> Settings {
        Settings::new("recheck", LOOK, 1)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<Place>, store::Error> {
        Ok(erasure::lease(conn, self.watched.name(), claim).await?)
    }

    async fn run(&self, leased: &Leased<Place>) -> Result<(), store::Error> {
        let stepped = self.step(&leased.item).await;
        if stepped.is_err() {
            // The step is not retried at once: requests cost budget, and the response may be what cannot be stored.
            let mut conn = self.backbone.pool.get().await?;
            let (name, replica) = (self.watched.name(), self.backbone.replica);
            let place = Some(&leased.item);
            erasure::set_aside(&mut conn, name, replica, place, AFTER_FAILURE, PASS).await?;
        }
        stepped
    }

    /// Continues the walk after the posts of the step, so that they do not delay the posts behind them. The next walk
    /// checks them again.
    async fn set_aside(
        &self,
        conn: &mut AsyncPgConnection,
        backbone: &Backbone,
        leased: &Leased<Place>,
        setback: &Setback,
    ) -> Result<(), store::Error> {
        let (name, replica) = (self.watched.name(), backbone.replica);
        let batch = self.watched.platform.adapter.recheck_batch();
        let due = missing::due(conn, name, batch / 2).await?;
        let place = &leased.item;
        let next = match place.is_walking {
            true => {
                let mut stretch = erasure::read(conn, name, place).await?;
                stretch.step(batch - due.len()).next
            }
            false => Some(place.clone()),
        };
        missing::put_off(conn, name, &due).await?;
        let (next, retry_in) = (next.as_ref(), setback.retry_in);
        Ok(erasure::set_aside(conn, name, replica, next, retry_in, PASS).await?)
    }

    fn uses_table(&self) -> bool {
        false
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
