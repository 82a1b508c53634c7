//! Keeps the database from growing for ever: what is older than `[retention]` goes, week by week.
//!
//! One replica at a time has the turn, once an hour. Each step is short, and where others are at work on a
//! table it gives way and comes again: no one waits for this for longer than a fifth of a second.

use std::{sync::Arc, time::Duration};

use domain::Timestamp;
use store::{
    AsyncPgConnection,
    retention::{self, Dropped, Pages, Partition, Table},
};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

const INTERVAL: Duration = Duration::from_secs(3_600);
/// After a start, when there is more to do than to tidy up.
const FIRST: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(300);
const BATCH: i64 = 1_000;
/// Between two batches, so that the work of others goes before.
const PAUSE: Duration = Duration::from_millis(20);
/// How often a table that others are at work on is tried in one turn, and how long is waited in between.
const TRIES: u32 = 20;
const BUSY: Duration = Duration::from_millis(500);
/// A post may be older than a Scan of it, by as much as a Manager may look back and a little more.
const POSTS_OUTLIVE_SCANS: Duration = Duration::from_secs(35 * 86_400);

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut wait = FIRST;
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let turn = tokio::select! {
            () = shutdown.cancelled() => return,
            turn = turn(dispatcher) => turn,
        };
        wait = match turn {
            Ok(true) => INTERVAL,
            Ok(false) => RETRY,
            Err(error) => {
                tracing::warn!("cannot drop what is old: {:#}", anyhow::Error::from(error));
                RETRY
            }
        };
    }
}

/// `false` when something is left that could not be done now.
async fn turn(dispatcher: &Dispatcher) -> Result<bool, store::Error> {
    let mut conn = dispatcher.backbone.pool.get().await?;
    if !retention::begin_turn(&mut conn).await? {
        return Ok(true);
    }
    let kept = &dispatcher.config.retention;
    let outcome = clean(&mut conn, kept.scans, kept.deliveries).await;
    let purged = purge_audit_events(&mut conn, kept.audit_events).await;
    // Should this fail, the turn ends with its connection.
    retention::end_turn(&mut conn).await?;
    purged?;
    outcome
}

/// Deletes audit events that are older than `kept`.
pub(crate) async fn purge_audit_events(
    conn: &mut AsyncPgConnection,
    kept: Duration,
) -> Result<(), store::Error> {
    let before = Timestamp::now().minus(kept).to_chrono();
    let mut pages = Pages::of(conn, "audit_events").await?;
    while retention::purge_audit_events(conn, &mut pages, before)
        .await?
        .is_some()
    {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Drops all that is older; `false` when something was in use.
pub(crate) async fn clean(
    conn: &mut AsyncPgConnection,
    scans: Duration,
    deliveries: Duration,
) -> Result<bool, store::Error> {
    let mut complete = true;
    for partition in retention::older_than(conn, Table::Deliveries, deliveries).await? {
        let mut expired = 0;
        loop {
            let count = retention::exhaust_expired(conn, partition.end, BATCH).await?;
            expired += count;
            if count == 0 {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        if expired > 0 {
            tracing::info!(deliveries = expired, "gave up deliveries past retention");
        }
        complete &= drop_one(conn, &partition).await?;
    }
    for partition in retention::older_than(conn, Table::DeliveryAttempts, deliveries).await? {
        complete &= drop_one(conn, &partition).await?;
    }
    let before = Timestamp::now().minus(deliveries);
    retention::purge_replays(conn, before).await?;

    let before = Timestamp::now()
        .minus(store::scans::ALIKE_WITHIN)
        .to_chrono();
    let mut pages = Pages::of(conn, "scan_likes").await?;
    while retention::purge_scan_likes(conn, &mut pages, before)
        .await?
        .is_some()
    {
        tokio::time::sleep(PAUSE).await;
    }

    let old = retention::older_than(conn, Table::Scans, scans).await?;
    if let Some(last) = old.last() {
        let mut pages = Pages::of(conn, "scan_keys").await?;
        while retention::purge_scan_keys(conn, &mut pages, last.end)
            .await?
            .is_some()
        {
            tokio::time::sleep(PAUSE).await;
        }
    }
    for partition in &old {
        complete &= drop_one(conn, partition).await?;
    }
    if let Some(from) = retention::kept_from(conn, Table::Scans).await? {
        while retention::exhaust_without_scan(conn, from, BATCH).await? > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }

    // Keys first: after that no new Scan can be of a post that is about to go.
    let old = retention::older_than(conn, Table::Posts, scans + POSTS_OUTLIVE_SCANS).await?;
    if let Some(last) = old.last() {
        let mut pages = Pages::of(conn, "post_keys").await?;
        while retention::purge_post_keys(conn, &mut pages, last.end)
            .await?
            .is_some()
        {
            tokio::time::sleep(PAUSE).await;
        }
    }
    for partition in &old {
        complete &= drop_one(conn, partition).await?;
    }
    Ok(complete)
}

/// `false` when it must stay for now.
async fn drop_one(
    conn: &mut AsyncPgConnection,
    partition: &Partition,
) -> Result<bool, store::Error> {
    for _ in 0..TRIES {
        match retention::drop_partition(conn, partition).await? {
            Dropped::Dropped => {
                metrics::PARTITIONS_DROPPED
                    .with_label_values(&[partition.table.as_str()])
                    .inc();
                tracing::info!(
                    table = partition.table.as_str(),
                    partition = partition.name,
                    "dropped what is past retention"
                );
                return Ok(true);
            }
            Dropped::Gone => return Ok(true),
            Dropped::InUse => {
                tracing::info!(
                    partition = partition.name,
                    "kept beyond retention: something in it is not finished or still needed"
                );
                return Ok(false);
            }
            Dropped::Busy => tokio::time::sleep(BUSY).await,
        }
    }
    tracing::info!(
        partition = partition.name,
        "others are at work on it, trying again later"
    );
    Ok(false)
}

#[cfg(test)]
mod tests;
