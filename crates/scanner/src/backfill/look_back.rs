//! Reads a feed again with a separate cursor, if the stored posts do not reach back far enough.

use std::{collections::HashMap, time::Duration};

use domain::{ManagerName, Post, Timestamp};
use outbound::large;
use platforms::{Cursor, PollError, PollLimits, Polled};
use store::{
    AsyncConnection,
    backfills::{
        Waiting,
        look_backs::{self, LookBack, Reader},
    },
    feeds::Trouble,
};

use super::{
    Backfill, MAX_FAILURES, MAX_REMATCHES, RETRY, backoff,
    record::{
        Step, Stored, decide_by_post, let_others_pass, record_past, store_blocks, store_by_manager,
        unless_changed,
    },
};
use crate::{
    budget,
    find::Matches,
    watched::{Watched, classify},
};

/// Maximum number of posts in the first step of a look-back. Later steps may read more, up to [`MOST_POSTS`].
const POSTS: usize = 500;
const MOST_POSTS: usize = 5_000;
/// Pause between the steps of one look-back.
const BETWEEN_STEPS: Duration = Duration::from_millis(500);
const DEADLINE: Duration = Duration::from_secs(300);

impl Backfill {
    pub(super) async fn look_back(&self, look_back: &LookBack) -> Result<(), store::Error> {
        let Some(watched) = self.watched.get(look_back.feed.platform()) else {
            return Ok(());
        };
        let cursor = look_back.cursor.as_ref().and_then(Cursor::from_json);
        let known = cursor.as_ref().map_or(0, Cursor::known);
        let limits = PollLimits {
            since: Some(look_back.since),
            max_posts: known.clamp(POSTS, MOST_POSTS),
            ..PollLimits::default()
        };
        let adapter = &watched.platform.adapter;
        let poll = adapter.poll(look_back.feed.what(), cursor.as_ref(), &limits);
        let answer = large::timeout(
            DEADLINE,
            budget::undertake(true, Some(&look_back.feed), poll),
        )
        .await;
        let cut_off = |_| PollError::Unavailable(platforms::FetchError::Timeout);
        match answer.map_err(cut_off).flatten() {
            Ok(polled) => self.store(look_back, &polled).await,
            Err(error) => self.fail(watched, look_back, error).await,
        }
    }

    async fn store(&self, look_back: &LookBack, polled: &Polled) -> Result<(), store::Error> {
        let waiting = Waiting {
            feed: look_back.feed.clone(),
            notify: look_back.notify,
            account: look_back.account,
        };
        let (id, replica) = (look_back.id, self.backbone.replica);
        // The index is taken before the Managers are read: a Manager that it does not know yet is then found as a
        // change.
        let index = self.plans.index();
        let readers = self.readers(id).await?;
        let wanted = |manager: &ManagerName, post: &Post| {
            let reader = readers.get(manager);
            reader.is_some_and(|one| (one.since..one.before).contains(&post.time))
        };
        let (plans, feed) = (&self.plans, &look_back.feed);
        let matches_of =
            |index, posts| Matches::of(plans, index, waiting.account, feed, posts, &wanted);
        let mut left = &polled.posts[..];
        let mut all = matches_of(index, left).await;
        decide_by_post(&self.plans, &all, &self.shutdown).await;
        let mut stored = Stored::default();
        let mut tries = 0;
        while tries < MAX_REMATCHES {
            tries += 1;
            let readers = self.readers(id).await?;
            let mut picks = all.picks();
            picks.retain(|one| readers.contains_key(&one.manager));
            let step = Step {
                pool: &self.backbone.pool,
                events: &self.backbone.events,
                plans: &self.plans,
                waiting: &waiting,
                managers: readers.keys().copied().collect(),
                catch_up: { readers.values() }
                    .filter_map(|one| Some((one.manager, one.catch_up_since?)))
                    .collect(),
                scans_per_day: self.scans_per_day(),
                end: None,
                limits: &self.limits,
            };
            // After a failure, each Manager is stored separately, because one of them may be the cause.
            let apart = look_back.failure_count > 0;
            let is_last = all.posts().len() == left.len();
            let (before, last) = if is_last {
                step.split(&picks)
            } else {
                (&picks[..], &[][..])
            };
            let (is_current, last) = if apart {
                let done = store_by_manager(&step, &all, &picks, &mut stored);
                (done.await?, &[][..])
            } else {
                let done = store_blocks(&step, &all, before, &mut stored).await?;
                all.record_stored(done);
                if !done.is_empty() {
                    tries = 0;
                }
                (done.len() == before.len(), last)
            };
            if !is_current {
                self.plans.refresh().await?;
                all.update(&self.plans).await;
                continue;
            }
            if !is_last {
                left = &left[all.posts().len()..];
                all = matches_of(plans.index(), left).await;
                decide_by_post(&self.plans, &all, &self.shutdown).await;
                tries = 0;
                continue;
            }
            let last = step.decide(&all, last).await;
            let_others_pass(&step, &last, &mut stored).await?;
            let _share = step.share().await;
            let mut conn = self.backbone.pool.get().await?;
            let unreached = polled.gap.as_ref().map(|gap| {
                let newest = polled.posts.first().map(|post| post.time);
                gap.to.or(newest).unwrap_or(look_back.since)
            });
            let refused_before = &stored.refused;
            let rest = unless_changed(&mut conn, all.index(), &step, async |conn, counter| {
                if !look_backs::lock(conn, look_back, replica).await? {
                    return Ok(Vec::new());
                }
                let mut last = record_past(conn, &step, &last, counter).await?;
                last.refused.extend(refused_before);
                let goes_on = last.refused.is_empty()
                    || look_backs::start_again(conn, id, &last.refused).await? > 0;
                if polled.more && goes_on {
                    let cursor = polled.cursor.to_json();
                    // A step that ended early may require a longer pause.
                    let wait = polled.next_hint.unwrap_or_default().max(BETWEEN_STEPS);
                    look_backs::go_on(conn, id, cursor, unreached, wait).await?;
                } else {
                    look_backs::finish(conn, id, unreached).await?;
                }
                Ok(last.made)
            });
            let Some(rest) = rest.await? else {
                drop(conn);
                self.plans.refresh().await?;
                all.update(&self.plans).await;
                continue;
            };
            step.publish(&rest);
            let made = stored.made.len() + rest.len();
            self.report("look_back", &look_back.feed, made);
            tracing::debug!(feed.name = %look_back.feed.masked(), posts = polled.posts.len(), scans = made, more = polled.more, "looked back");
            return Ok(());
        }
        Err(store::Error::PlansChanged)
    }

    async fn readers(&self, id: i64) -> Result<HashMap<ManagerName, Reader>, store::Error> {
        let mut conn = self.backbone.pool.get().await?;
        let readers = look_backs::readers(&mut conn, id).await?;
        Ok(readers.into_iter().map(|one| (one.manager, one)).collect())
    }

    async fn fail(
        &self,
        watched: &Watched,
        look_back: &LookBack,
        error: PollError,
    ) -> Result<(), store::Error> {
        let (trouble, reason) = classify(&error);
        let put_off = trouble == Trouble::BudgetSpent;
        let asked = error.retry_after().unwrap_or_default();
        let wait = if put_off {
            asked.max(RETRY)
        } else {
            backoff(look_back.failure_count).max(asked)
        };
        let error = format!("{:#}", anyhow::Error::from(error));
        watched.report_failure(&look_back.feed.masked(), reason, &error);
        let (id, replica) = (look_back.id, self.backbone.replica);
        let mut conn = self.backbone.pool.get().await?;
        if !put_off && look_back.failure_count + 1 >= MAX_FAILURES {
            tracing::warn!(feed.name = %look_back.feed.masked(), error, "cannot look back, and gives up");
            let finished = conn.transaction(async |conn| {
                if look_backs::lock(conn, look_back, replica).await? {
                    look_backs::finish(conn, id, Some(Timestamp::now())).await?;
                }
                Ok::<_, store::Error>(())
            });
            return finished.await;
        }
        look_backs::fail(&mut conn, id, replica, put_off, wait).await?;
        Ok(())
    }
}
