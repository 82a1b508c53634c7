//! Stores Scans of the past, in blocks, and sets aside what cannot be stored.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use domain::{ManagerName, PlanVersion, Timestamp};
use store::{
    AsyncPgConnection,
    backfills::{self, Waiting},
    keyed, plans as plan_store,
    scans::{self, NewScan, Origin, ScanCounter},
};

use crate::poll::tell_of;

/// Scans in one transaction, except for the last few of a step.
const BLOCK: usize = 250;
/// Same, of Scans that are delivered: what another account waits for comes behind one block of them.
const DELIVERED_BLOCK: usize = 50;
/// Number of tries for a Manager's part, if another try may help.
const SET_ASIDE_AFTER: i32 = 8;

/// A backfill waits while this many Scans have no deliveries yet: what customers wait for now comes first.
const MAX_QUEUED: u32 = 20;
/// Before a block of a backfill that is delivered: at most 500 Scans a second.
const PAUSE: Duration = Duration::from_millis(100);
/// Limit of the wait: Scans of a backfill can be listed while no dispatcher runs.
const MAX_PAUSES: u32 = 20;

/// Values that the Scans of one step have in common.
pub(super) struct Step<'a> {
    pub(super) waiting: &'a Waiting,
    /// Managers with posts that the quota of their account refused, and from when on.
    pub(super) catch_up: HashMap<ManagerName, Timestamp>,
    /// Default quota of Scans a day.
    pub(super) scans_per_day: u32,
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
    pub(super) fn split<'m, 'p>(
        &self,
        matches: &'m [NewScan<'p>],
    ) -> (&'m [NewScan<'p>], &'m [NewScan<'p>]) {
        let block = self.block();
        matches.split_at(matches.len().saturating_sub(1) / block * block)
    }
}

/// Outcome of a step or a part of it.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) made: usize,
    /// The Managers that the quota of their account left no room. They begin again when there is room.
    pub(super) refused: BTreeSet<ManagerName>,
}

impl Stored {
    pub(super) fn add(&mut self, other: Self) {
        self.made += other.made;
        self.refused.extend(other.refused);
    }
}

/// Stores all blocks but the last; `None` when plans changed since the posts were matched.
pub(super) async fn store_blocks(
    conn: &mut AsyncPgConnection,
    version: PlanVersion,
    step: &Step<'_>,
    blocks: &[NewScan<'_>],
) -> Result<Option<Stored>, store::Error> {
    let mut stored = Stored::default();
    for block in blocks.chunks(step.block()) {
        let_others_pass(conn, step.waiting, block).await?;
        let recorded = unless_changed(conn, version, step, async |conn, counter| {
            record_past(conn, step, block, counter).await
        });
        match recorded.await? {
            Some(some) => stored.add(some),
            None => return Ok(None),
        }
    }
    Ok(Some(stored))
}

/// Waits before a block of a backfill that is delivered, and while many Scans wait for the dispatchers. All accounts
/// share one queue, and the processors.
pub(super) async fn let_others_pass(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    block: &[NewScan<'_>],
) -> Result<(), store::Error> {
    if !waiting.notify || block.is_empty() {
        return Ok(());
    }
    for _ in 0..MAX_PAUSES {
        tokio::time::sleep(PAUSE).await;
        if !scans::are_queued(conn, MAX_QUEUED).await? {
            break;
        }
    }
    Ok(())
}

/// Does `work` in a transaction. Returns `None`, and does nothing of it, when plans changed since `version`, or when
/// another transaction used up the quota of an account at the same time. The caller then begins again.
///
/// A generic-plan transaction: it has the same statements as a poll that records Scans.
pub(super) async fn unless_changed<T>(
    conn: &mut AsyncPgConnection,
    version: PlanVersion,
    step: &Step<'_>,
    work: impl AsyncFnOnce(&mut AsyncPgConnection, &mut ScanCounter) -> Result<T, store::Error>,
) -> Result<Option<T>, store::Error> {
    keyed::begin(conn).await?;
    let done = async {
        if plan_store::version(conn).await? != version {
            return Ok(None);
        }
        let mut counter = ScanCounter::new(step.scans_per_day);
        let done = work(conn, &mut counter).await?;
        counter.store(conn).await?;
        Ok(Some(done))
    };
    let done = done.await;
    match keyed::end(conn, done).await {
        Err(store::Error::QuotaRace) => Ok(None),
        done => done,
    }
}

/// Same as [`store_blocks`], each Manager's by themselves: whose cannot be stored is set aside.
pub(super) async fn store_apart(
    conn: &mut AsyncPgConnection,
    version: PlanVersion,
    step: &Step<'_>,
    matches: &[NewScan<'_>],
) -> Result<Option<Stored>, store::Error> {
    let mut by_manager: BTreeMap<ManagerName, Vec<NewScan<'_>>> = BTreeMap::new();
    for one in matches {
        by_manager.entry(one.manager).or_default().push(one.clone());
    }
    let mut stored = Stored::default();
    for (manager, own) in by_manager {
        match store_blocks(conn, version, step, &own).await {
            Ok(Some(some)) => stored.add(some),
            Ok(None) => return Ok(None),
            Err(error) if error.may_be_refusal() => {
                set_aside(conn, step.waiting, manager, error).await?
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(stored))
}

pub(super) async fn set_aside(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
    manager: ManagerName,
    error: store::Error,
) -> Result<(), store::Error> {
    let most = if error.is_refusal() {
        1
    } else {
        SET_ASIDE_AFTER
    };
    let error = format!("{:#}", anyhow::Error::from(error));
    let for_good = backfills::set_aside(conn, waiting, manager, &error, most).await?;
    let (feed, name) = (&waiting.feed, manager);
    if for_good {
        tracing::warn!(manager.name = %name, feed.name = %feed.masked(), error, "a backfill cannot be stored, and is set aside");
    } else {
        tracing::info!(manager.name = %name, feed.name = %feed.masked(), error, "a backfill cannot be stored now");
    }
    Ok(())
}

/// Stores Scans of the past: with their events where they are to be delivered.
pub(super) async fn record_past(
    conn: &mut AsyncPgConnection,
    step: &Step<'_>,
    matches: &[NewScan<'_>],
    counter: &mut ScanCounter,
) -> Result<Stored, store::Error> {
    let (feed, notify) = (&step.waiting.feed, step.waiting.notify);
    let origin = Origin::Past {
        silently: !notify,
        catch_up: &step.catch_up,
    };
    let now = Timestamp::now();
    let recorded = scans::record_from(conn, feed, 0, matches, now, origin, counter).await?;
    if notify {
        tell_of(conn, &recorded.made).await?;
    }
    Ok(Stored {
        made: recorded.made.len(),
        refused: recorded.refused.iter().map(|(name, _)| *name).collect(),
    })
}
