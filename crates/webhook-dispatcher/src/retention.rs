//! Retention: removes data older than `[retention]`, week by week.
//!
//! One replica at a time has the turn, once an hour. Each step is short. If others use a table, it gives way and
//! tries again, so no one waits longer than a fifth of a second for it.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use domain::Timestamp;
use runtime::Periodic;
use store::{
    AsyncPgConnection,
    retention::{self, Dropped, Partition, Purge, Table, Unpartitioned},
};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

const INTERVAL: Duration = Duration::from_secs(3_600);
/// Delay after a start, when other work is more urgent.
const FIRST: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_secs(300);
const BATCH: i64 = 1_000;
/// Number of rows in a batch without partitions. No one waits for them.
const PURGE_BATCH: i64 = 10_000;
/// Pause between two batches, so that other work goes first.
const PAUSE: Duration = Duration::from_millis(20);
/// Number of tries in one turn for a table that others use, and the wait in between.
const TRIES: u32 = 20;
const BUSY: Duration = Duration::from_millis(500);
/// A post may be older than its Scan: by the longest backfill and a little more.
const POSTS_OUTLIVE_SCANS: Duration = Duration::from_secs(35 * 86_400);

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut rounds = Periodic::new(&shutdown);
    let mut wait = FIRST;
    while rounds.after(wait).await {
        // May take hours, so a stop does not wait for it.
        let Some(turn) = shutdown.run_until_cancelled(turn(dispatcher)).await else {
            return;
        };
        let whole = rounds.log_once("drop what is old", turn) == Some(true);
        wait = if whole { INTERVAL } else { RETRY };
    }
}

/// Removes what is past retention, if it is this replica's turn. Returns false if something could not be removed now.
async fn turn(dispatcher: &Dispatcher) -> Result<bool, store::Error> {
    let mut conn = dispatcher.backbone.pool.get().await?;
    if !retention::begin_turn(&mut conn).await? {
        return Ok(true);
    }
    let kept = &dispatcher.config.retention;
    let outcome = clean(&mut conn, kept.scans, kept.deliveries).await;
    let purged = purge_audit_events(&mut conn, kept.audit_events).await;
    // If this fails, the turn ends with its connection.
    retention::end_turn(&mut conn).await?;
    purged?;
    outcome
}

/// Deletes audit events that are older than `kept`.
pub(crate) async fn purge_audit_events(
    conn: &mut AsyncPgConnection,
    kept: Duration,
) -> Result<(), store::Error> {
    let before = retention::earlier_now(conn, Timestamp::now())
        .await?
        .minus(kept);
    purge(conn, Unpartitioned::AuditEvents, before).await
}

/// Deletes the rows of `table` from before `before`.
async fn purge(
    conn: &mut AsyncPgConnection,
    table: Unpartitioned,
    before: Timestamp,
) -> Result<(), store::Error> {
    let mut purge = Purge::new(table, before.to_chrono());
    while purge.delete(conn, PURGE_BATCH).await? > 0 {
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Drops everything that is older than these times; returns false if something was in use.
pub(crate) async fn clean(
    conn: &mut AsyncPgConnection,
    scans: Duration,
    deliveries: Duration,
) -> Result<bool, store::Error> {
    let now = retention::earlier_now(conn, Timestamp::now()).await?;
    let mut kept = Kept::default();
    for partition in retention::older_than(conn, Table::Deliveries, deliveries, now).await? {
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
        kept.drop_one(conn, &partition).await?;
    }
    for partition in retention::older_than(conn, Table::DeliveryAttempts, deliveries, now).await? {
        kept.drop_one(conn, &partition).await?;
    }
    retention::purge_replays(conn, now.minus(deliveries)).await?;

    let before = now.minus(store::scans::ALIKE_WITHIN);
    purge(conn, Unpartitioned::ScanLikes, before).await?;

    let old = retention::older_than(conn, Table::Scans, scans, now).await?;
    if let Some(last) = old.last() {
        purge(conn, Unpartitioned::ScanKeys, last.end.into()).await?;
    }
    for partition in &old {
        kept.drop_one(conn, partition).await?;
    }
    if let Some(from) = retention::kept_from(conn, Table::Scans).await? {
        while retention::exhaust_without_scan(conn, from, BATCH).await? > 0 {
            tokio::time::sleep(PAUSE).await;
        }
    }

    // Keys go first: after that no new Scan can refer to a post that is about to be removed.
    let old = retention::older_than(conn, Table::Posts, scans + POSTS_OUTLIVE_SCANS, now).await?;
    if let Some(last) = old.last() {
        purge(conn, Unpartitioned::PostKeys, last.end.into()).await?;
    }
    for partition in &old {
        kept.drop_one(conn, partition).await?;
    }

    // Last, because it may take longest: it reads from the beginning each time, also what was deleted while a backup runs.
    let before = now.minus(deliveries);
    while retention::purge_digests(conn, before, PURGE_BATCH).await? > 0 {
        tokio::time::sleep(PAUSE).await;
    }
    kept.report();
    Ok(kept.0.is_empty())
}

/// Tables with partitions past retention that must stay for now, and their number.
#[derive(Default)]
struct Kept(BTreeMap<&'static str, i64>);

impl Kept {
    async fn drop_one(
        &mut self,
        conn: &mut AsyncPgConnection,
        partition: &Partition,
    ) -> Result<(), store::Error> {
        let (table, partition_name) = (partition.table.as_str(), &partition.name);
        for _ in 0..TRIES {
            match retention::drop_partition(conn, partition).await? {
                Dropped::Dropped => {
                    metrics::PARTITIONS_DROPPED
                        .with_label_values(&[table])
                        .inc();
                    tracing::info!(
                        table,
                        partition = partition_name,
                        "dropped what is past retention"
                    );
                    return Ok(());
                }
                Dropped::Gone => return Ok(()),
                Dropped::InUse => {
                    *self.0.entry(table).or_default() += 1;
                    tracing::info!(
                        partition = partition_name,
                        "kept beyond retention: something in it is not finished or still needed"
                    );
                    return Ok(());
                }
                Dropped::Busy => tokio::time::sleep(BUSY).await,
            }
        }
        *self.0.entry(table).or_default() += 1;
        tracing::info!(
            partition = partition_name,
            "others are at work on it, trying again later"
        );
        Ok(())
    }

    fn report(&self) {
        for table in [
            Table::Posts,
            Table::Scans,
            Table::Deliveries,
            Table::DeliveryAttempts,
        ] {
            let table = table.as_str();
            let count = self.0.get(table).copied().unwrap_or_default();
            metrics::PARTITIONS_KEPT
                .with_label_values(&[table])
                .set(count);
        }
    }
}

#[cfg(test)]
mod at_size;
#[cfg(test)]
mod tests;
