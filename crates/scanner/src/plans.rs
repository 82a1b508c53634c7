//! The index of all Managers' plans, kept up to date.
//!
//! The index is loaded completely at start. Then broadcasts announce changes, and the log of changes has the details. A
//! sweep finds changes without a broadcast. Even if both are late, no post is matched against an old index: a
//! poll's transaction checks whether plans of its feed changed ([`is_current`]), and then updates the index itself.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use backbone::shares::Shares;
use bus::{Bus, NewsReader};
use domain::{FeedName, Id, ManagerName, PlanVersion, Post, Timestamp};
use events::ManagerNews;
use matching::{Change, Index, IndexBuilder, LiveIndex, Plan};
use runtime::{Check, Periodic};
use store::{
    AsyncPgConnection, Error, Pool, QueryResult,
    plans::{self, Changes, PlanRecord},
    scans::NewScan,
};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    deciders::{Deadlines, Deciders},
    metrics,
    screens::{Held, Screens},
};

const SWEEP: Duration = Duration::from_secs(2);
/// Maximum number of Managers that are read at a time.
const PAGE: i64 = 1_000;
/// Bytes of instructions and mutes that end a page. Until they are packed, they may take 100 times as many. It is
/// small in tests, so that few Managers make several pages.
const PAGE_BYTES: i64 = if cfg!(test) { 1_000 } else { 1_000_000 };
/// Number of Namespaces whose mutes are read at a time. The mutes of one can take 40 KB, and more in memory.
const MUTES_PAGE: i64 = 100;
/// Number of recent changes that are remembered, so that a poll in progress only matches these again.
const REMEMBERED: usize = 10_000;

pub struct Plans {
    pool: Pool,
    live: Arc<LiveIndex>,
    /// Mutes and languages, never older than the index.
    screens: Screens,
    deciders: Deciders,
    /// Managers whose instructions this release cannot execute, for example those of a newer one. Their previous
    /// plan stays in use here.
    unreadable: std::sync::Mutex<HashSet<ManagerName>>,
    /// Last updates of the index, oldest first; each begins at the version where the one before ends.
    recent: std::sync::Mutex<VecDeque<Refreshed>>,
    /// Only one refresh runs at a time. Others wait for it and then find nothing left to do.
    refreshing: Mutex<()>,
    /// Version of the index. Each subscriber sees the newest one, even if it was busy meanwhile.
    changed: watch::Sender<PlanVersion>,
    fresh_since: std::sync::Mutex<Instant>,
    /// Permits for searches: an account has one at a time.
    pub(crate) matching: Shares,
}

/// Changes of one refresh.
struct Refreshed {
    from: PlanVersion,
    to: PlanVersion,
    changes: PlanChanges,
}

/// Managers whose plan or screen changed, and Namespaces whose mutes did.
#[derive(Clone, Default)]
pub(crate) struct PlanChanges {
    pub(crate) managers: HashSet<ManagerName>,
    pub(crate) namespaces: HashSet<Id>,
}

impl PlanChanges {
    fn len(&self) -> usize {
        self.managers.len() + self.namespaces.len()
    }
}

impl Plans {
    pub fn new(pool: Pool, deciders: Deciders) -> Self {
        Self {
            pool,
            live: Arc::new(LiveIndex::new(Index::default())),
            screens: Screens::default(),
            deciders,
            unreadable: std::sync::Mutex::default(),
            recent: std::sync::Mutex::default(),
            refreshing: Mutex::default(),
            changed: watch::Sender::new(PlanVersion::default()),
            fresh_since: std::sync::Mutex::new(Instant::now()),
            matching: Shares::each(1),
        }
    }

    /// The current index.
    pub fn index(&self) -> Arc<Index> {
        self.live.load()
    }

    /// Time when the index was last known to equal the database.
    pub(crate) fn fresh_since(&self) -> Instant {
        *self.lock_fresh_since()
    }

    fn lock_fresh_since(&self) -> MutexGuard<'_, Instant> {
        let since = self.fresh_since.lock();
        since.unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn screens(&self) -> &Screens {
        &self.screens
    }

    /// Returns what changed between two versions of the index; `None` if that is not remembered.
    pub(crate) fn changes_between(
        &self,
        from: PlanVersion,
        to: PlanVersion,
    ) -> Option<PlanChanges> {
        let mut all = PlanChanges::default();
        let mut reached = from;
        let recent = self.lock_recent();
        for refreshed in recent.iter().skip_while(|one| one.from != from) {
            if reached == to {
                break;
            }
            reached = refreshed.to;
            all.managers.extend(&refreshed.changes.managers);
            all.namespaces.extend(&refreshed.changes.namespaces);
        }
        (reached == to).then_some(all)
    }

    fn lock_recent(&self) -> MutexGuard<'_, VecDeque<Refreshed>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, refreshed: Refreshed) {
        let mut recent = self.lock_recent();
        recent.push_back(refreshed);
        let mut count: usize = recent.iter().map(|one| one.changes.len()).sum();
        while count > REMEMBERED
            && let Some(oldest) = recent.pop_front()
        {
            count -= oldest.changes.len();
        }
    }

    /// Returns the matches that become Scans. Call without a connection: a model may be asked, except about matches of
    /// the Namespaces `used_up`. The work counts for `account`. No reading and no question begins after its deadline;
    /// without deadlines, neither the reader nor the model is used.
    pub(crate) async fn decide<'a>(
        &self,
        account: Id,
        matches: Vec<NewScan<'a>>,
        used_up: &HashSet<Id>,
        deadlines: Option<&Deadlines>,
    ) -> Vec<NewScan<'a>> {
        let (pool, index) = (&self.pool, self.index());
        let deciders = &self.deciders;
        deciders
            .decide(pool, &index, account, matches, used_up, deadlines)
            .await
    }

    /// Returns true if the index alone decides.
    pub(crate) fn decides_alone(&self) -> bool {
        self.deciders.is_empty()
    }

    /// See [`Deciders::falls_short`].
    pub(crate) fn falls_short(&self, manager: &ManagerName, score: f64, post: &Post) -> bool {
        self.deciders.falls_short(manager, score, post)
    }

    /// Signals changed plans, which may change the watched feeds.
    pub(crate) fn changes(&self) -> watch::Receiver<PlanVersion> {
        self.changed.subscribe()
    }

    /// Reads everything, with retries; returns false if `shutdown` came first.
    pub async fn load(&self, shutdown: &CancellationToken) -> bool {
        let loaded = runtime::retry("load the plans", shutdown, || self.reload()).await;
        loaded.is_some()
    }

    async fn reload(&self) -> Result<(), Error> {
        let mut conn = self.pool.get().await?;
        // The version is read before the pages, so that a change in between is read again later.
        let version = plans::version(&mut conn).await?;
        let mut held = Held::default();
        let mut after = None;
        loop {
            let page = plans::load_mutes(&mut conn, after, MUTES_PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.namespace);
            page.iter().for_each(|one| held.put_namespace(one));
        }
        let mut builder = IndexBuilder::default();
        let mut unreadable = HashSet::new();
        let before = self.live.load();
        let mut after = None;
        loop {
            let page = plans::load_page(&mut conn, after, PAGE, PAGE_BYTES).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.manager);
            let mut unpacked = Vec::with_capacity(page.len());
            for record in page {
                held.put(&record);
                match self.change(&record, version) {
                    Some(Change::Put(name, plan)) => unpacked.push((name, plan)),
                    Some(Change::Remove(_)) => {}
                    None => {
                        unreadable.insert(record.manager);
                        let kept = before.plan(&record.manager);
                        unpacked.extend(kept.map(|plan| (record.manager, Arc::new(plan))));
                    }
                }
            }
            builder.add(unpacked);
        }
        self.update_unreadable(|known| *known = unreadable);
        self.screens.replace(held);
        let index = builder.finish(version);
        let there: HashSet<ManagerName> = index.names().collect();
        self.lock_recent().clear();
        self.live.replace(index);
        self.deciders.retain(|name| there.contains(name));
        self.publish_change(version);
        Ok(())
    }

    /// Updates the index. Costs one read if it is up to date.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let _refreshing = self.refreshing.lock().await;
        let begin = Instant::now();
        while self.apply_changes().await? {}
        *self.lock_fresh_since() = begin;
        Ok(())
    }

    /// Applies the next changes to the index. Returns true if there may be more.
    async fn apply_changes(&self) -> Result<bool, Error> {
        let before = self.live.load().version();
        let found = {
            let mut conn = self.pool.get().await?;
            plans::changes_since(&mut conn, before).await?
        };
        match found {
            Changes::TooFarBehind => {
                tracing::info!(
                    version = before.number,
                    "the log of changes does not continue the index: reading all plans"
                );
                self.reload().await?;
                Ok(false)
            }
            Changes::Since {
                version,
                plans,
                namespaces,
                more,
            } => {
                if version != before {
                    self.screens.change(|held| {
                        namespaces.iter().for_each(|one| held.put_namespace(one));
                        plans.iter().for_each(|one| held.put(one));
                    });
                    let changes: Vec<_> = { plans.iter() }
                        .map(|record| self.change(record, version))
                        .collect();
                    self.update_unreadable(|known| {
                        for (record, change) in plans.iter().zip(&changes) {
                            if change.is_none() {
                                known.insert(record.manager);
                            } else {
                                known.remove(&record.manager);
                            }
                        }
                    });
                    // The changes are stored before the index gets the version, so that readers of the new version find
                    // them.
                    self.remember(Refreshed {
                        from: before,
                        to: version,
                        changes: PlanChanges {
                            managers: plans.iter().map(|one| one.manager).collect(),
                            namespaces: { namespaces.iter() }
                                .filter(|one| one.has_changed)
                                .map(|one| one.namespace)
                                .collect(),
                        },
                    });
                    self.live.apply(changes.into_iter().flatten(), version);
                    self.publish_change(version);
                    if self.live.is_due() {
                        // Runs in a separate task, because it may take seconds. The lock ensures that only one runs.
                        let live = Arc::clone(&self.live);
                        tokio::task::spawn_blocking(move || live.merge());
                    }
                }
                Ok(more)
            }
        }
    }

    /// Change of a plan for the index of a version; `None` if the current plan must stay, because the new one cannot be
    /// executed.
    fn change(&self, record: &PlanRecord, version: PlanVersion) -> Option<Change> {
        if record.unreadable {
            return None;
        }
        let name = record.manager;
        let Some(instructions) = &record.instructions else {
            self.deciders.remove(&name);
            return Some(Change::Remove(name));
        };
        let lowered = self.deciders.lowered(instructions);
        match Plan::compile(lowered.as_ref().unwrap_or(instructions)) {
            Ok(plan) => {
                self.deciders.put(name, instructions, version);
                Some(Change::Put(name, Arc::new(plan)))
            }
            // The compiler refuses such instructions. If one is stored anyway, it must not stop the rest.
            Err(error) => {
                tracing::error!(manager.name = %name, "instructions that cannot be executed: {error}");
                None
            }
        }
    }

    fn update_unreadable(&self, change: impl FnOnce(&mut HashSet<ManagerName>)) {
        let mut known = self
            .unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        metrics::UNREADABLE_PLANS.set(i64::try_from(known.len()).unwrap_or(i64::MAX));
    }

    fn publish_change(&self, version: PlanVersion) {
        let count = self.live.load().len();
        metrics::INDEX_PLANS.set(i64::try_from(count).unwrap_or(i64::MAX));
        tracing::debug!(
            version = version.number,
            plans = count,
            "the index is up to date"
        );
        self.changed.send_replace(version);
    }

    /// Follows broadcasts of changes until `shutdown`, and finds changes without a broadcast.
    pub async fn keep_fresh(
        self: Arc<Self>,
        bus: Arc<dyn Bus>,
        check: Option<Check>,
        shutdown: CancellationToken,
    ) {
        tokio::join!(
            bus::read_news(bus, Arc::clone(&self), check, shutdown.clone()),
            self.sweep(shutdown),
        );
    }

    async fn sweep(&self, shutdown: CancellationToken) {
        let mut rounds = Periodic::new(&shutdown);
        while rounds.after(SWEEP).await {
            rounds.log_once("look for changed plans", self.refresh().await);
        }
    }
}

impl NewsReader for Plans {
    type Event = ManagerNews;

    async fn on_broadcast(&self, news: ManagerNews) -> anyhow::Result<()> {
        if news.plan_version() > self.live.load().version().number {
            self.refresh().await?;
            tracing::info!(manager.name = %news.name(), "the index knows the change");
        }
        Ok(())
    }

    async fn resync(&self) -> anyhow::Result<()> {
        Ok(self.refresh().await?)
    }
}

/// Returns true if posts of `feed` that were matched by `index` need not be matched again: what changed since does not
/// concern the feed.
pub(crate) async fn is_current(
    conn: &mut AsyncPgConnection,
    index: &Index,
    feed: &FeedName,
) -> QueryResult<bool> {
    let watched = |name: &ManagerName| index.plan(name).is_some_and(|plan| plan.watches(feed));
    plans::are_current(conn, index.version(), feed, watched).await
}

/// Same as [`is_current`], for posts that only `managers` are matched with. Changes of others on their feeds, which may
/// be of other accounts, do not concern these.
pub(crate) async fn is_current_for(
    conn: &mut AsyncPgConnection,
    index: &Index,
    managers: &HashSet<ManagerName>,
) -> QueryResult<bool> {
    plans::are_unchanged(conn, index.version(), managers).await
}

/// Time before which posts of a newly watched feed count as known. `first_watch_time` is given until the feed's first
/// successful poll, because earlier polls may have failed.
pub(crate) fn backfill_start(first_watch_time: Option<Timestamp>, backfill: Duration) -> Timestamp {
    // A feed may also have been unwatched for months before its first successful poll.
    const MAX_WAIT: Duration = Duration::from_hours(7 * 24);
    let now = Timestamp::now();
    let start = first_watch_time.map_or(now, |time| time.max(now.minus(MAX_WAIT)).min(now));
    start.minus(reach_back(backfill))
}

/// How far the posts of a newly watched feed reach back. A post may be newer than its time says: platforms give whole
/// seconds and some feeds whole minutes, by their own clocks.
pub(crate) fn reach_back(backfill: Duration) -> Duration {
    const COARSE: Duration = Duration::from_secs(60);
    backfill.max(COARSE)
}

#[cfg(test)]
mod tests {
    use matching::PostText;
    use test_support::{Fixture, TestDatabase, instructions};

    use super::*;

    #[tokio::test]
    async fn plans_of_several_pages_are_all_in_the_index() {
        const MANAGERS: usize = 40;
        let database = TestDatabase::create().await;
        let mut conn = database.connect().await;
        let fixture = Fixture::create(&mut conn).await;
        let mut names = Vec::new();
        for n in 0..MANAGERS {
            let of_word = instructions(&format!("word{n}"));
            let name = fixture.applied_manager(&mut conn, &of_word, &[]).await;
            names.push(name);
        }
        let page = plans::load_page(&mut conn, None, PAGE, PAGE_BYTES).await;
        assert!((2..MANAGERS / 2).contains(&page.unwrap().len()));

        let plans = Plans::new(database.pool(), Deciders::default());
        assert!(plans.load(&CancellationToken::new()).await);
        let index = plans.index();
        assert_eq!(index.len(), MANAGERS);
        let feed = "hackernews:newest".parse().unwrap();
        for (n, name) in names.iter().enumerate() {
            let post = PostText::new(Some(&format!("A word{n}")), None);
            let found = index.matches(&post, &feed);
            assert_eq!(
                found.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
                [*name]
            );
        }
    }
}
