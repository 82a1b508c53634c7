//! Takes up what waits in the database: retries that are due, and what found no place at first.
//!
//! Wakes when the next delivery falls due or a place is given back, and once a second for what other
//! replicas left behind. Nothing is claimed that has no place: of full Connections nothing, and in all
//! no more than there is room.

use std::{sync::Arc, time::Duration};

use store::deliveries::{self, Task};
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, lanes::Permit, metrics, send};

const BATCH: u32 = 128;
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Longer than from a lease to its delivery's being in hand. What is leased for longer and not in hand
/// was leased by a transaction whose commit was not answered.
const FORGOTTEN: Duration = Duration::from_secs(15);

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut failing = false;
    while !shutdown.is_cancelled() {
        let wait = match round(dispatcher).await {
            Ok(wait) => {
                failing = false;
                wait
            }
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    tracing::warn!(
                        "cannot look for due deliveries: {:#}",
                        anyhow::Error::from(error)
                    );
                }
                MAX_WAIT
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => break,
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Claims and sends what is due; returns how long nothing more will be.
async fn round(dispatcher: &Arc<Dispatcher>) -> Result<Duration, store::Error> {
    let mut conn = dispatcher.backbone.pool.get().await?;
    let replica = dispatcher.backbone.replica;
    let in_hand = dispatcher.recorder.in_hand();
    let take_over = dispatcher.backbone.may_take_over();
    let freed =
        deliveries::free_orphans(&mut conn, replica, &in_hand, FORGOTTEN, take_over).await?;
    if freed > 0 {
        tracing::info!(deliveries = freed, "freed what nobody has in hand");
        metrics::LEASES_EXPIRED
            .with_label_values(&["delivery"])
            .inc_by(freed as u64);
    }
    let room = dispatcher.lanes.room().min(BATCH);
    if room == 0 {
        return Ok(soon(dispatcher).await);
    }
    let full = dispatcher.lanes.full();
    let claimed = deliveries::claim_due(
        &mut conn,
        &dispatcher.sealer,
        replica,
        &full,
        i64::from(room),
    )
    .await?;
    let count = claimed.len();
    let mut admitted: Vec<(Task, Permit)> = Vec::with_capacity(count);
    let mut refused = Vec::new();
    for claim in claimed {
        match claim {
            Ok(task) => match dispatcher.lanes.admit(task.delivery.connection_name()) {
                Some(permit) => admitted.push((task, permit)),
                None => refused.push(task.delivery),
            },
            Err(unsendable) => send::fail(dispatcher, unsendable),
        }
    }
    send::start(dispatcher, admitted);
    if !refused.is_empty() {
        deliveries::hand_back(&mut conn, replica, &refused).await?;
        return Ok(soon(dispatcher).await);
    }
    if count > 0 {
        return Ok(Duration::ZERO);
    }
    let wait = deliveries::next_due(&mut conn, &full)
        .await?
        .unwrap_or(MAX_WAIT);
    Ok(wait.clamp(Duration::from_millis(5), MAX_WAIT))
}

/// Waits for a place, and then not at all.
async fn soon(dispatcher: &Dispatcher) -> Duration {
    tokio::select! {
        () = dispatcher.lanes.freed() => {}
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
    }
    Duration::ZERO
}
