//! Stores Scans of the past, in blocks, and sets aside what cannot be stored.

use std::{collections::BTreeMap, time::Duration};

use domain::{ManagerName, PlanVersion, Timestamp};
use store::{
    AsyncPgConnection,
    backfills::{self, Waiting},
    keyed, plans as plan_store,
    scans::{self, NewScan},
};

use crate::poll::tell_of;

/// Scans in one transaction, except for the last few of a step.
const BLOCK: usize = 250;
/// Number of tries for a Manager's part, if another try may help.
const SET_ASIDE_AFTER: i32 = 8;

/// A backfill waits while this many Scans have no deliveries yet: what customers wait for now comes first.
const MAX_QUEUED: u32 = 100;
const PAUSE: Duration = Duration::from_millis(100);
/// Limit of the wait: Scans of a backfill can be listed while no dispatcher runs.
const MAX_PAUSES: u32 = 20;

/// Work before the last transaction, in blocks, and work within it.
pub(super) fn last_of<'m, 'a>(
    matches: &'m [NewScan<'a>],
) -> (&'m [NewScan<'a>], &'m [NewScan<'a>]) {
    matches.split_at(matches.len().saturating_sub(1) / BLOCK * BLOCK)
}

/// Stores all blocks but the last; `None` when plans changed since the posts were matched.
pub(super) async fn store_blocks(
    conn: &mut AsyncPgConnection,
    version: PlanVersion,
    waiting: &Waiting,
    blocks: &[NewScan<'_>],
) -> Result<Option<usize>, store::Error> {
    let mut made = 0;
    for block in blocks.chunks(BLOCK) {
        let_others_pass(conn, waiting).await?;
        let stored = unless_changed(conn, version, async |conn| {
            record_past(conn, waiting, block).await
        });
        match stored.await? {
            Some(some) => made += some,
            None => return Ok(None),
        }
    }
    Ok(Some(made))
}

/// Waits while many Scans wait for the dispatchers, before a block of a backfill that is delivered. All accounts share
/// one queue.
pub(super) async fn let_others_pass(
    conn: &mut AsyncPgConnection,
    waiting: &Waiting,
) -> Result<(), store::Error> {
    for _ in 0..MAX_PAUSES {
        if !waiting.notify || !scans::are_queued(conn, MAX_QUEUED).await? {
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Does `work` in a transaction; `None`, and nothing of it, when plans changed since `version`.
///
/// A generic-plan transaction: it has the same statements as a poll that records Scans.
pub(super) async fn unless_changed<T>(
    conn: &mut AsyncPgConnection,
    version: PlanVersion,
    work: impl AsyncFnOnce(&mut AsyncPgConnection) -> Result<T, store::Error>,
) -> Result<Option<T>, store::Error> {
    keyed::begin(conn).await?;
    let done = async {
        if plan_store::version(conn).await? != version {
            return Ok(None);
        }
        work(conn).await.map(Some)
    };
    let done = done.await;
    keyed::end(conn, done).await
}

/// Same as [`store_blocks`], each Manager's by themselves: whose cannot be stored is set aside.
pub(super) async fn store_apart(
    conn: &mut AsyncPgConnection,
    version: PlanVersion,
    waiting: &Waiting,
    matches: &[NewScan<'_>],
) -> Result<Option<usize>, store::Error> {
    let mut by_manager: BTreeMap<ManagerName, Vec<NewScan<'_>>> = BTreeMap::new();
    for one in matches {
        by_manager.entry(one.manager).or_default().push(one.clone());
    }
    let mut made = 0;
    for (manager, own) in by_manager {
        match store_blocks(conn, version, waiting, &own).await {
            Ok(Some(some)) => made += some,
            Ok(None) => return Ok(None),
            Err(error) if error.may_be_refusal() => {
                set_aside(conn, waiting, manager, error).await?
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Some(made))
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
    waiting: &Waiting,
    matches: &[NewScan<'_>],
) -> Result<usize, store::Error> {
    let now = Timestamp::now();
    let made = scans::record_past(conn, &waiting.feed, matches, now, !waiting.notify).await?;
    if waiting.notify {
        tell_of(conn, &made).await?;
    }
    Ok(made.len())
}
