//! Matches the stored posts of a feed, for all Managers that wait for it at once.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use domain::{FeedName, ManagerName, Post, Reach, Timestamp};
use events::TraceContext;
use store::{
    backfills::{self, Asked, KeptPosts, Rest, Waiting},
    recent_posts,
    refused_posts::{self, Refused},
};
use tracing::{Instrument as _, Span};

use super::{
    Backfill, MAX_REMATCHES,
    record::{
        End, Step, Stored, decide_by_post, let_others_pass, record_past, set_aside, store_blocks,
        unless_changed,
    },
};
use crate::{find::Matches, plans::is_current_for};

/// Maximum number of Managers that are matched at once.
const AT_ONCE: i64 = 100;
/// Time after which a step leaves the remaining Managers to the next one, so that accounts take turns.
const STEP: Duration = Duration::from_secs(1);
/// In a feed without stored posts, posts younger than this are left to its polls.
const FRESH: Duration = Duration::from_secs(3_600);

impl Backfill {
    pub(super) async fn match_kept(&self, waiting: &Waiting) -> Result<bool, store::Error> {
        match self.match_some(waiting, AT_ONCE).await {
            Err(error) if error.may_be_refusal() => self.match_one(waiting).await,
            matched => matched,
        }
    }

    /// Matches stored posts for the Manager that has waited longest, and sets it aside if the result cannot be stored.
    pub(super) async fn match_one(&self, waiting: &Waiting) -> Result<bool, store::Error> {
        let mut conn = self.backbone.pool.get().await?;
        let (asked, _) =
            backfills::waiting_for(&mut conn, waiting, 1, self.scans_per_day()).await?;
        drop(conn);
        let Some(first) = asked.first() else {
            return Ok(false);
        };
        match self.match_some(waiting, 1).await {
            Err(error) if error.may_be_refusal() => {
                let mut conn = self.backbone.pool.get().await?;
                set_aside(&mut conn, waiting, first.manager, error).await?;
                Ok(true)
            }
            matched => matched,
        }
    }

    async fn match_some(&self, waiting: &Waiting, most: i64) -> Result<bool, store::Error> {
        for _ in 0..MAX_REMATCHES {
            let index = self.plans.index();
            let (asked, rests, posts, refused) = {
                let mut conn = self.backbone.pool.get().await?;
                let quota = self.scans_per_day();
                let (asked, kept) = backfills::waiting_for(&mut conn, waiting, most, quota).await?;
                // A Manager that the index does not know yet has changed since.
                if !is_current_for(&mut conn, &index, &names(&asked)).await? {
                    drop(conn);
                    self.plans.refresh().await?;
                    continue;
                }
                let rests: HashMap<ManagerName, (Timestamp, Rest)> = asked
                    .iter()
                    .map(|one| (one.manager, self.rest(waiting, one, &kept)))
                    .collect();
                let since = rests.values().map(|(since, _)| *since).min();
                let mut posts = match since.filter(|_| kept.is_read) {
                    Some(since) => recent_posts::since(&mut conn, &waiting.feed, since).await?,
                    None => Vec::new(),
                };
                let catching_up: Vec<ManagerName> = catching_up(&asked).collect();
                let refused = refused_posts::of(&mut conn, &waiting.feed, &catching_up).await?;
                add(&mut posts, &refused.posts);
                (asked, rests, posts, refused)
            };
            if asked.is_empty() {
                return Ok(false);
            }
            let catching_up: HashSet<ManagerName> = catching_up(&asked).collect();
            let waiting_posts: HashSet<&str> =
                refused.posts.iter().map(|post| post.id.as_str()).collect();
            let wanted = |manager: &ManagerName, post: &Post| {
                let since = rests.get(manager).map(|(since, _)| *since);
                since.is_some_and(|since| post.time >= since)
                    || catching_up.contains(manager) && waiting_posts.contains(post.id.as_str())
            };
            let span = span(waiting, &asked);
            let stored = self.store_kept(waiting, &asked, &rests, &refused, &posts, wanted);
            let Some((made, managers)) = stored.instrument(span).await? else {
                return Ok(false);
            };
            self.report("kept", &waiting.feed, made);
            tracing::debug!(feed.name = %waiting.feed.masked(), managers, posts = posts.len(), scans = made, "matched kept posts");
            return Ok(managers > 0);
        }
        Err(store::Error::PlansChanged)
    }

    /// Matches the posts in parts and stores the matches, and updates them if plans change. Returns the number of Scans
    /// created and of Managers done; `None` at shutdown.
    async fn store_kept(
        &self,
        waiting: &Waiting,
        asked: &[Asked],
        rests: &HashMap<ManagerName, (Timestamp, Rest)>,
        refused: &Refused,
        posts: &[Post],
        wanted: impl Fn(&ManagerName, &Post) -> bool,
    ) -> Result<Option<(usize, usize)>, store::Error> {
        let plans = &self.plans;
        let matches_of = |posts| {
            let (index, account) = (plans.index(), waiting.account);
            Matches::of(plans, index, account, &waiting.feed, posts, &wanted)
        };
        let mut unmatched = posts;
        let mut all = matches_of(unmatched).await;
        decide_by_post(plans, &all, &self.shutdown).await;
        let oldest = refused.posts.first().map(|post| post.time);
        let step = Step {
            pool: &self.backbone.pool,
            events: &self.backbone.events,
            plans: &self.plans,
            waiting,
            managers: names(asked),
            catch_up: { asked.iter() }
                .filter_map(|one| {
                    let since = one.catch_up_since?;
                    Some((
                        one.manager,
                        oldest.map_or(since, |oldest| since.min(oldest)),
                    ))
                })
                .collect(),
            scans_per_day: self.scans_per_day(),
            end: Some(End {
                time: Instant::now() + STEP,
                shutdown: &self.shutdown,
            }),
            limits: &self.limits,
        };
        let mut before = Stored::default();
        // Managers that are left to the next step.
        let mut left: HashSet<ManagerName> = HashSet::new();
        let mut tries = 0;
        while tries < MAX_REMATCHES {
            tries += 1;
            let is_last = all.posts().len() == unmatched.len();
            let mut picks = all.picks();
            picks.retain(|pick| !left.contains(&pick.manager));
            // The sort is stable: the posts of a Manager stay in order.
            picks.sort_by_key(|pick| pick.manager);
            let (blocks, mut last) = if is_last {
                step.split(&picks)
            } else {
                (&picks[..], &[][..])
            };
            let done = store_blocks(&step, &all, blocks, &mut before).await?;
            all.record_stored(done);
            if !done.is_empty() {
                tries = 0;
            }
            let rest = &blocks[done.len()..];
            let is_over = !rest.is_empty() && step.is_over(done, rest);
            if is_over {
                if self.shutdown.is_cancelled() {
                    return Ok(None);
                }
                left.extend(rest.iter().chain(last).map(|pick| pick.manager));
                last = &[];
            }
            if !is_last && (rest.is_empty() || is_over) {
                unmatched = &unmatched[all.posts().len()..];
                all = matches_of(unmatched).await;
                decide_by_post(plans, &all, &self.shutdown).await;
                tries = 0;
                continue;
            }
            if rest.is_empty() || is_over {
                let last = step.decide(&all, last).await;
                let_others_pass(&step, &last, &mut before).await?;
                let _share = step.share().await;
                let mut conn = self.backbone.pool.get().await?;
                let stored =
                    unless_changed(&mut conn, all.index(), &step, async |conn, counter| {
                        let claimed = backfills::claim(conn, waiting, asked).await?;
                        let mut claimed: BTreeSet<ManagerName> = claimed.into_iter().collect();
                        claimed.retain(|manager| !left.contains(manager));
                        let mut last = last;
                        last.retain(|one| claimed.contains(&one.manager));
                        let stored = record_past(conn, &step, &last, counter).await?;
                        // A Manager with refused posts keeps waiting.
                        let is_done = |manager: &&ManagerName| {
                            !before.refused.contains(manager) && !stored.refused.contains(manager)
                        };
                        let done: Vec<ManagerName> =
                            claimed.iter().filter(is_done).copied().collect();
                        refused_posts::forget(conn, &waiting.feed, &done, &refused.posts).await?;
                        // A Manager with more refused posts than were read waits for the next step.
                        let rests: Vec<Rest> = { done.iter() }
                            .filter(|manager| {
                                !refused.more || !step.catch_up.contains_key(*manager)
                            })
                            .filter_map(|manager| rests.get(manager).map(|(_, rest)| rest.clone()))
                            .collect();
                        backfills::matched_kept(conn, waiting, &rests).await?;
                        Ok((stored.made, claimed.len()))
                    });
                if let Some((last, managers)) = stored.await? {
                    step.publish(&last);
                    return Ok(Some((before.made.len() + last.len(), managers)));
                }
            }
            self.plans.refresh().await?;
            all.update(&self.plans).await;
        }
        Err(store::Error::PlansChanged)
    }

    /// Returns the time from which stored posts are matched for a Manager, and the part that is left for a look-back.
    fn rest(&self, waiting: &Waiting, asked: &Asked, kept: &KeptPosts) -> (Timestamp, Rest) {
        let window = self.config.scanner.backfill;
        let since = asked
            .since
            .unwrap_or_else(|| asked.create_time.minus(window));
        let reach = self.reach_of(&waiting.feed);
        // The platform returns no older posts. Older posts are stored only because other accounts watched the feed, so
        // they are not matched for this Manager.
        let since = match (reach, asked.watch_time) {
            (Reach::Nothing, Some(watched)) => since.max(watched.minus(window)),
            _ => since,
        };
        let now = Timestamp::now();
        // The first poll of a feed serves every Manager that exists then.
        let covered = match (kept.is_read, kept.since) {
            (true, Some(kept)) => kept,
            (true, None) => asked.create_time.minus(FRESH),
            (false, _) => asked.create_time.minus(window),
        };
        let oldest = match reach {
            Reach::Nothing => covered,
            Reach::Time(time) => now.minus(time.min(Duration::from_secs(3_650 * 86_400))),
            Reach::Posts(_) => since,
        };
        let from = since.max(oldest);
        let look_back = (from < covered).then_some((from, covered));
        let rest = Rest {
            manager: asked.manager,
            // Without stored posts, nothing older is available.
            reach_time: match kept.since {
                None if kept.is_read => asked.create_time,
                _ => since.max(covered),
            },
            look_back,
        };
        (since, rest)
    }

    fn reach_of(&self, feed: &FeedName) -> Reach {
        let watched = self.watched.get(feed.platform());
        watched.map_or(Reach::Nothing, |watched| watched.platform.kind.reach)
    }
}

fn names(asked: &[Asked]) -> HashSet<ManagerName> {
    asked.iter().map(|one| one.manager).collect()
}

/// Returns the Managers with posts that the quota of their account refused.
fn catching_up(asked: &[Asked]) -> impl Iterator<Item = ManagerName> {
    let asked = asked.iter();
    asked
        .filter(|one| one.catch_up_since.is_some())
        .map(|one| one.manager)
}

/// Adds those of `more` that `posts` does not have. The result is oldest first.
fn add(posts: &mut Vec<Post>, more: &[Post]) {
    let ids: HashSet<String> = posts.iter().map(|post| post.id.clone()).collect();
    posts.extend(more.iter().filter(|post| !ids.contains(&post.id)).cloned());
    posts.sort_by_key(|post| post.time);
}

/// Continues the trace of the request. If there are several, creates a trace that is linked to each of them.
fn span(waiting: &Waiting, asked: &[Asked]) -> Span {
    let span = tracing::info_span!(parent: None, "backfill feed", feed.name = %waiting.feed.masked(), managers = asked.len());
    let traces = asked
        .iter()
        .map(|one| TraceContext::of_traceparent(one.traceparent.clone()));
    match asked.len() {
        1 => traces.for_each(|trace| trace.set_as_parent_of(&span)),
        _ => traces.for_each(|trace| trace.link_to(&span)),
    }
    span
}
