//! Stores Scans of past posts, in blocks, and sets aside what cannot be stored.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    time::{Duration, Instant},
};

use backbone::work;
use bus::EventPublisher;
use domain::{ManagerName, Post, ScanName, Timestamp};
use matching::Index;
use store::{
    AsyncPgConnection, Pool,
    backfills::{self, Waiting},
    keyed,
    scans::{self, NewScan, Origin, ScanCounter},
};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use crate::{
    find::{Matches, Pick},
    plans::{Plans, is_current_for},
    poll::{Limits, publish},
};

/// Number of Scans in one transaction, except for the last few of a step.
const BLOCK: usize = 250;
/// The same for Scans that are delivered: work of another account waits behind at most one such block.
const DELIVERED_BLOCK: usize = 20;
/// Time after which the matches that are left are decided block by block.
const DECIDING: Duration = Duration::from_secs(10);
/// Number of tries for a Manager's part, if a retry may help.
const SET_ASIDE_AFTER: i32 = 8;

/// A backfill waits while this many Scans have no deliveries yet, because new Scans come first.
const MAX_QUEUED: u32 = 20;
/// Pause before a block of a backfill that is delivered: at most 200 Scans a second.
const PAUSE: Duration = Duration::from_millis(100);
/// Maximum number of pauses before a block. A backfill goes on even if no dispatcher runs: its Scans can be listed.
const MAX_PAUSES: u32 = 8;

/// Values that the Scans of one step have in common.
pub(super) struct Step<'a> {
    pub(super) pool: &'a Pool,
    pub(super) events: &'a EventPublisher,
    pub(super) plans: &'a Plans,
    pub(super) waiting: &'a Waiting,
    /// Managers that the step matches. Changes of others do not concern it.
    pub(super) managers: HashSet<ManagerName>,
    /// Managers with posts that their account's quota refused, and the time of the first such post.
    pub(super) catch_up: HashMap<ManagerName, Timestamp>,
    /// Default quota of Scans a day.
    pub(super) scans_per_day: u32,
    pub(super) end: Option<End<'a>>,
    pub(super) limits: &'a Limits,
}

/// Conditions that end a step whose matches are ordered by Manager, although matches are left.
pub(super) struct End<'a> {
    pub(super) time: Instant,
    pub(super) shutdown: &'a CancellationToken,
}

impl Step<'_> {
    fn block(&self) -> usize {
        if self.waiting.notify {
            DELIVERED_BLOCK
        } else {
            BLOCK
        }
    }

    /// Returns the matches for [`store_blocks`], and those for the last transaction.
    pub(super) fn split<'m>(&self, picks: &'m [Pick]) -> (&'m [Pick], &'m [Pick]) {
        let block = self.block();
        picks.split_at(picks.len().saturating_sub(1) / block * block)
    }

    /// Waits for a database connection from the account's share.
    pub(super) async fn share(&self) -> Option<OwnedSemaphorePermit> {
        let connections = &self.limits.connections;
        connections.take(self.waiting.account, 1).await
    }

    /// Returns true if the step must end between `done` and `rest`. A step always completes a Manager, because the next
    /// step matches the remaining Managers from their first post on.
    pub(super) fn is_over(&self, done: &[Pick], rest: &[Pick]) -> bool {
        self.end.as_ref().is_some_and(|end| {
            let manager = |picks: &[Pick]| picks.first().map(|pick| pick.manager);
            let is_late = || Instant::now() >= end.time && !done.is_empty();
            end.shutdown.is_cancelled() || is_late() && manager(done) != manager(rest)
        })
    }

    /// Publishes the events of Scans that are delivered, after their commit.
    pub(super) fn publish(&self, made: &[ScanName]) {
        if self.waiting.notify {
            publish(self.events, made);
        }
    }

    /// Returns those of these matches that become Scans. Call without a connection: a model may be asked.
    pub(super) async fn decide<'p>(
        &self,
        all: &Matches<'p, impl Fn(&ManagerName, &Post) -> bool>,
        picks: &[Pick],
    ) -> Vec<NewScan<'p>> {
        all.decide_few(self.plans, picks).await
    }
}

/// Decides on matches by post before they are stored by Manager.
pub(super) async fn decide_by_post(
    plans: &Plans,
    all: &Matches<'_, impl Fn(&ManagerName, &Post) -> bool>,
    shutdown: &CancellationToken,
) {
    let end = Instant::now() + DECIDING;
    let is_over = || shutdown.is_cancelled() || Instant::now() >= end;
    all.decide_all(plans, BLOCK, is_over).await;
}

/// Result of a step or a part of it.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) made: Vec<ScanName>,
    /// Managers whose account's quota is used up, or whose Scans cannot be stored now. They start again later.
    pub(super) refused: BTreeSet<ManagerName>,
    /// True if the next block has waited already, and was not stored because plans changed. It follows the refresh
    /// immediately, because they may change again in a further pause.
    has_waited: bool,
}

impl Stored {
    fn add(&mut self, other: Self) {
        self.made.extend(other.made);
        self.refused.extend(other.refused);
    }
}

/// Stores blocks, and adds their result to `stored`. Returns the matches of these blocks, or only some of them if
/// plans changed since the posts were matched, or the step is over.
pub(super) async fn store_blocks<'m>(
    step: &Step<'_>,
    all: &Matches<'_, impl Fn(&ManagerName, &Post) -> bool>,
    blocks: &'m [Pick],
    stored: &mut Stored,
) -> Result<&'m [Pick], store::Error> {
    for (number, block) in blocks.chunks(step.block()).enumerate() {
        let (done, rest) = blocks.split_at(number * step.block());
        if step.is_over(done, rest) {
            return Ok(done);
        }
        // What the quota refused starts again later, and is not explained before.
        let block: Vec<Pick> = { block.iter() }
            .filter(|pick| !stored.refused.contains(&pick.manager))
            .copied()
            .collect();
        if block.is_empty() {
            continue;
        }
        let block = step.decide(all, &block).await;
        let_others_pass(step, &block, stored).await?;
        let _share = step.share().await;
        let mut conn = step.pool.get().await?;
        let recorded = unless_changed(&mut conn, all.index(), step, async |conn, counter| {
            record_past(conn, step, &block, counter).await
        });
        let recorded = recorded.await;
        stored.has_waited &= matches!(recorded, Ok(None));
        match recorded? {
            Some(some) => {
                step.publish(&some.made);
                stored.add(some);
            }
            None => return Ok(done),
        }
    }
    Ok(blocks)
}

/// Waits before a block of a backfill that is delivered, and while many Scans wait for the dispatchers. All
/// accounts share one queue and the CPUs.
pub(super) async fn let_others_pass(
    step: &Step<'_>,
    block: &[NewScan<'_>],
    stored: &mut Stored,
) -> Result<(), store::Error> {
    if !step.waiting.notify || block.is_empty() || stored.has_waited {
        return Ok(());
    }
    stored.has_waited = true;
    for _ in 0..MAX_PAUSES {
        tokio::time::sleep(PAUSE).await;
        let mut conn = step.pool.get().await?;
        if !scans::are_queued(&mut conn, MAX_QUEUED).await? {
            break;
        }
    }
    Ok(())
}

/// Runs `work` in a transaction. Returns `None`, and rolls everything back, if plans of the step's Managers are not
/// those of `index` any more, or if another transaction used up an account's quota at the same time. The caller then
/// starts again.
///
/// A generic-plan transaction: it has the same statements as a poll that records Scans.
pub(super) async fn unless_changed<T>(
    conn: &mut AsyncPgConnection,
    index: &Index,
    step: &Step<'_>,
    work: impl AsyncFnOnce(&mut AsyncPgConnection, &mut ScanCounter) -> Result<T, store::Error>,
) -> Result<Option<T>, store::Error> {
    keyed::begin(conn).await?;
    let done = async {
        if !is_current_for(conn, index, &step.managers).await? {
            return Ok(None);
        }
        let mut counter = ScanCounter::new(step.scans_per_day);
        let done = work(conn, &mut counter).await?;
        counter.store(conn).await?;
        Ok(Some(done))
    };
    let done = done.await;
    match keyed::end(conn, done).await {
        Err(store::Error::QuotaRace(_)) => Ok(None),
        done => done,
    }
}

/// Same as [`store_blocks`], but separately for each Manager, and sets aside those that cannot be stored. A Manager
/// that is only postponed counts as refused, because the next step reads other posts. Returns false if plans changed.
pub(super) async fn store_by_manager(
    step: &Step<'_>,
    all: &Matches<'_, impl Fn(&ManagerName, &Post) -> bool>,
    picks: &[Pick],
    stored: &mut Stored,
) -> Result<bool, store::Error> {
    let mut by_manager: BTreeMap<ManagerName, Vec<Pick>> = BTreeMap::new();
    for pick in picks {
        by_manager.entry(pick.manager).or_default().push(*pick);
    }
    for (manager, own) in by_manager {
        match store_blocks(step, all, &own, stored).await {
            Ok(done) if done.len() == own.len() => {}
            Ok(_) => return Ok(false),
            Err(error) if error.may_be_refusal() => {
                let mut conn = step.pool.get().await?;
                if !set_aside(&mut conn, step.waiting, manager, error).await? {
                    stored.refused.insert(manager);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Postpones a Manager's backfill that cannot be stored, or sets it aside permanently. Returns true in the latter case.
pub(super) async fn set_aside(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    manager: ManagerName,
    error: store::Error,
) -> Result<bool, store::Error> {
    let most = if error.is_refusal() {
        1
    } else {
        SET_ASIDE_AFTER
    };
    let error = format!("{:#}", anyhow::Error::from(error));
    let for_good = backfills::set_aside(conn, waiting, manager, &error, most).await?;
    let (feed, name) = (&waiting.feed, manager);
    if for_good {
        work::count_set_aside("backfill", 1);
        tracing::warn!(manager.name = %name, feed.name = %feed.masked(), error, "a backfill cannot be stored, and is set aside");
    } else {
        tracing::info!(manager.name = %name, feed.name = %feed.masked(), error, "a backfill cannot be stored now");
    }
    Ok(for_good)
}

/// Stores Scans of past posts.
pub(super) async fn record_past(
    conn: &mut AsyncPgConnection,
    step: &Step<'_>,
    matches: &[NewScan<'_>],
    counter: &mut ScanCounter,
) -> Result<Stored, store::Error> {
    let feed = &step.waiting.feed;
    let origin = Origin::Past {
        silently: !step.waiting.notify,
        catch_up: &step.catch_up,
    };
    let now = Timestamp::now();
    let recorded = scans::record_from(conn, feed, 0, matches, now, origin, counter).await?;
    Ok(Stored {
        refused: recorded.refused.iter().map(|(name, _)| *name).collect(),
        made: recorded.made,
        has_waited: false,
    })
}
