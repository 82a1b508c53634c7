//! The index of all Managers' plans, kept fresh.
//!
//! Read whole at start; then news says that something changed, and the log of changes what. A sweep
//! finds what no news told. However late both are, no post passes an old index: a poll's transaction
//! compares versions, and brings the index up to date itself when it is behind.

use std::{
    collections::HashSet,
    sync::{Arc, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bus::{Bus, NewsReader};
use domain::{ManagerName, PlanVersion, Timestamp};
use events::ManagerNews;
use matching::{Change, Index, LiveIndex, Plan};
use runtime::{Backoff, Check};
use store::{
    Error, Pool,
    plans::{self, Changes, PlanRecord},
    scans::NewScan,
};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    llm_filter::{LlmFilter, Thresholds, with_candidate_threshold},
    metrics,
    screens::{Held, Screens},
};

const SWEEP: Duration = Duration::from_secs(2);
const PAGE: i64 = 1_000;

pub struct Plans {
    pool: Pool,
    live: Arc<LiveIndex>,
    /// Never older than the index.
    screens: Screens,
    /// If the operator configured a model; the index's thresholds are then lower than `thresholds`.
    llm_filter: Option<LlmFilter>,
    thresholds: Thresholds,
    /// Managers whose instructions this release cannot execute, such as a newer one's: what was at work
    /// before stays so here.
    unreadable: std::sync::Mutex<HashSet<ManagerName>>,
    /// One refresh at a time: others wait and then find its work done.
    refreshing: Mutex<()>,
    /// The index's version: each subscriber sees the newest one, even if it was busy meanwhile.
    changed: watch::Sender<PlanVersion>,
    fresh_since: std::sync::Mutex<Instant>,
}

impl Plans {
    #[must_use]
    pub fn new(pool: Pool, llm_filter: Option<LlmFilter>) -> Self {
        Self {
            pool,
            live: Arc::new(LiveIndex::new(Index::default())),
            screens: Screens::default(),
            llm_filter,
            thresholds: Thresholds::default(),
            unreadable: std::sync::Mutex::default(),
            refreshing: Mutex::default(),
            changed: watch::Sender::new(PlanVersion::default()),
            fresh_since: std::sync::Mutex::new(Instant::now()),
        }
    }

    /// The index at present.
    #[must_use]
    pub fn index(&self) -> Arc<Index> {
        self.live.load()
    }

    /// When the index was last seen to be what the database has.
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

    /// Returns the matches of a poll that become Scans. Call without a connection: a model may be asked.
    pub(crate) async fn decide<'a>(&self, matches: Vec<NewScan<'a>>) -> Vec<NewScan<'a>> {
        match &self.llm_filter {
            Some(filter) => filter.decide(&self.pool, &self.thresholds, matches).await,
            None => matches,
        }
    }

    /// Tells when plans have changed, and with them perhaps the feeds that are watched.
    pub(crate) fn changes(&self) -> watch::Receiver<PlanVersion> {
        self.changed.subscribe()
    }

    /// Reads everything, trying until it works; `false` when `shutdown` came first.
    pub async fn load(&self, shutdown: &CancellationToken) -> bool {
        let mut backoff = Backoff::reconnect();
        loop {
            let error = match self.reload().await {
                Ok(()) => return true,
                Err(error) => anyhow::Error::from(error),
            };
            tracing::warn!("cannot load the plans yet: {error:#}");
            tokio::select! {
                () = shutdown.cancelled() => return false,
                () = backoff.wait() => {}
            }
        }
    }

    async fn reload(&self) -> Result<(), Error> {
        let mut conn = self.pool.get().await?;
        // Before the pages: what changes while they are read is then seen again.
        let version = plans::version(&mut conn).await?;
        let mut held = Held::default();
        for record in plans::all_mutes(&mut conn).await? {
            held.put_namespace(&record);
        }
        let mut all = Vec::new();
        let mut unreadable = HashSet::new();
        let before = self.live.load();
        let mut after = None;
        loop {
            let page = plans::load_page(&mut conn, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.manager);
            for record in page {
                held.put(&record);
                match self.change(&record) {
                    Some(Change::Put(name, plan)) => all.push((name, plan)),
                    Some(Change::Remove(_)) => {}
                    None => {
                        unreadable.insert(record.manager);
                        let kept = before.plan(&record.manager);
                        all.extend(kept.map(|plan| (record.manager, Arc::new(plan))));
                    }
                }
            }
        }
        self.note_unreadable(|known| *known = unreadable);
        self.screens.replace(held);
        let there: HashSet<ManagerName> = all.iter().map(|(name, _)| *name).collect();
        self.thresholds.retain(|name| there.contains(name));
        self.live.replace(Index::build(all, version));
        self.note_change(version);
        Ok(())
    }

    /// Brings the index up to date. One read when it is already.
    ///
    /// # Errors
    /// When the database does not answer.
    pub(crate) async fn refresh(&self) -> Result<(), Error> {
        let _refreshing = self.refreshing.lock().await;
        let before = self.live.load().version();
        let begin = Instant::now();
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
            }
            Changes::Since {
                version,
                plans,
                namespaces,
            } => {
                if version != before {
                    self.screens.change(|held| {
                        namespaces.iter().for_each(|one| held.put_namespace(one));
                        plans.iter().for_each(|one| held.put(one));
                    });
                    let changes: Vec<_> = plans.iter().map(|record| self.change(record)).collect();
                    self.note_unreadable(|known| {
                        for (record, change) in plans.iter().zip(&changes) {
                            if change.is_none() {
                                known.insert(record.manager);
                            } else {
                                known.remove(&record.manager);
                            }
                        }
                    });
                    self.live.apply(changes.into_iter().flatten(), version);
                    self.note_change(version);
                    if self.live.is_due() {
                        // In a separate task, because it may take seconds; it ensures that only one runs.
                        let live = Arc::clone(&self.live);
                        tokio::task::spawn_blocking(move || live.merge());
                    }
                }
            }
        }
        *self.lock_fresh_since() = begin;
        Ok(())
    }

    /// Changes of a record; `None` if the current plan must stay, because the new one cannot be executed.
    fn change(&self, record: &PlanRecord) -> Option<Change> {
        if record.unreadable {
            return None;
        }
        let name = record.manager;
        let Some(instructions) = &record.instructions else {
            self.thresholds.put(name, None);
            return Some(Change::Remove(name));
        };
        let filter = self.llm_filter.as_ref();
        let lowered = filter
            .and_then(|filter| with_candidate_threshold(instructions, filter.candidate_percent()));
        let (threshold, plan) = match &lowered {
            Some((threshold, lowered)) => (Some(*threshold), Plan::compile(lowered)),
            None => (None, Plan::compile(instructions)),
        };
        match plan {
            Ok(plan) => {
                self.thresholds.put(name, threshold);
                Some(Change::Put(name, Arc::new(plan)))
            }
            // The compiler refuses such instructions; one that is here all the same must not stop the rest.
            Err(error) => {
                tracing::error!(manager.name = %name, "instructions that cannot be executed: {error}");
                None
            }
        }
    }

    fn note_unreadable(&self, change: impl FnOnce(&mut HashSet<ManagerName>)) {
        let mut known = self
            .unreadable
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        change(&mut known);
        metrics::UNREADABLE_PLANS.set(i64::try_from(known.len()).unwrap_or(i64::MAX));
    }

    fn note_change(&self, version: PlanVersion) {
        let count = self.live.load().len();
        metrics::INDEX_PLANS.set(i64::try_from(count).unwrap_or(i64::MAX));
        tracing::debug!(
            version = version.number,
            plans = count,
            "the index is up to date"
        );
        self.changed.send_replace(version);
    }

    /// Follows the news of changes, and finds what no news told, until `shutdown`.
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
        let mut failing = false;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = tokio::time::sleep(SWEEP) => {}
            }
            match self.refresh().await {
                Ok(()) => failing = false,
                Err(error) => {
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(
                            "cannot look for changed plans: {:#}",
                            anyhow::Error::from(error)
                        );
                    }
                }
            }
        }
    }
}

impl NewsReader for Plans {
    type Event = ManagerNews;

    async fn hear(&self, news: ManagerNews) -> anyhow::Result<()> {
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

/// The time before which posts of a newly watched feed are taken as known.
pub(crate) fn backfill_start(backfill: Duration) -> Timestamp {
    Timestamp::now().minus(backfill)
}
