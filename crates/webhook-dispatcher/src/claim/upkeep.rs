//! Maintenance of claims: leases of dead replicas, hints that were never written, deliveries that no one will
//! send any more.

use std::{sync::Arc, time::Duration};

use store::{
    AsyncPgConnection,
    deliveries::{self, Standings},
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

/// Between two looks at lanes and leases. What a dead replica had is free when its heartbeat is four seconds old: this
/// and the time of a claim are the rest of the five seconds until another replica takes over.
const LOOK: Duration = Duration::from_millis(250);
const SWEEP: Duration = Duration::from_secs(5);
const EXPIRE: Duration = Duration::from_secs(600);
/// Unfinished deliveries are counted up to this: a few milliseconds, however many there are.
const COUNTED: i64 = 10_000;
/// Rows in one statement at most.
const ENDED: i64 = 1_000;
/// Statements at a time, while other work waits.
const EXPIRE_ROUNDS: u32 = 20;
/// Longer than from a lease to its delivery's being in hand. What is leased for longer and not in hand
/// was leased by a transaction whose commit was not answered, or has nothing to be sent.
const FORGOTTEN: Duration = Duration::from_secs(15);

pub(super) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: &CancellationToken) {
    let mut failing = false;
    let now = Instant::now();
    let (mut sweep, mut expire) = (now, now + SWEEP);
    let mut looks = tokio::time::interval(LOOK);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = looks.tick() => {}
        }
        dispatcher.lanes.tick();
        let (lanes, on_probation) = dispatcher.lanes.counts();
        metrics::LANES
            .with_label_values(&["steady"])
            .set(count(lanes - on_probation));
        metrics::LANES
            .with_label_values(&["probation"])
            .set(count(on_probation));
        let now = Instant::now();
        let round = async {
            let mut conn = dispatcher.backbone.pool.get().await?;
            if free_orphans(dispatcher, &mut conn).await? {
                // A replica has died: it may have left things unsaid.
                sweep = now;
            }
            if now < sweep {
                return Ok(());
            }
            sweep = now + SWEEP;
            if deliveries::is_sweeper(&mut conn, dispatcher.backbone.replica).await? {
                sweep_once(&mut conn).await?;
                if now >= expire {
                    expire = now + EXPIRE;
                    give_up_expired(dispatcher, &mut conn).await?;
                }
            }
            Ok::<_, store::Error>(())
        };
        match round.await {
            Ok(()) => failing = false,
            Err(error) => {
                if !std::mem::replace(&mut failing, true) {
                    let error = anyhow::Error::from(error);
                    tracing::warn!("cannot look after leases and lanes: {error:#}");
                }
            }
        }
    }
}

/// Returns true if there were any of dead replicas.
async fn free_orphans(
    dispatcher: &Arc<Dispatcher>,
    conn: &mut AsyncPgConnection,
) -> Result<bool, store::Error> {
    let replica = dispatcher.backbone.replica;
    let in_hand = dispatcher.recorder.in_hand();
    let take_over = dispatcher.backbone.may_take_over();
    let freed = deliveries::free_orphans(conn, replica, &in_hand, FORGOTTEN, take_over).await?;
    if freed.is_empty() {
        return Ok(false);
    }
    tracing::info!(deliveries = freed.len(), "freed what nobody has in hand");
    metrics::LEASES_EXPIRED
        .with_label_values(&["delivery"])
        .inc_by(freed.len() as u64);
    dispatcher.signals.note(freed);
    Ok(true)
}

async fn sweep_once(conn: &mut AsyncPgConnection) -> Result<(), store::Error> {
    let waiting = deliveries::find_waiting(conn).await?;
    if waiting.unnoted > 0 {
        tracing::info!(
            connections = waiting.unnoted,
            "found deliveries that no hint told of"
        );
        metrics::RECOVERED
            .with_label_values(&["delivery"])
            .inc_by(waiting.unnoted as u64);
    }
    for connection in waiting.gone {
        let cancelled = deliveries::cancel_waiting(conn, connection, ENDED).await?;
        tracing::info!(connection.name = %connection, deliveries = cancelled, "cancelled: the Connection is deleted");
    }
    let standing = deliveries::standing(conn).await?;
    metrics::OPEN_BREAKERS.set(standing.open_breakers);
    metrics::CONNECTIONS_BEHIND.set(standing.behind);
    metrics::OLDEST_DUE.set(standing.oldest_due.as_secs_f64());
    tell(deliveries::standings(conn, COUNTED).await?);
    Ok(())
}

fn tell(standings: Standings) {
    for (state, count) in [
        ("pending", standings.pending),
        ("retrying", standings.retrying),
        ("in_flight", standings.in_flight),
    ] {
        metrics::UNFINISHED.with_label_values(&[state]).set(count);
    }
    metrics::DUE.set(standings.due);
    for (state, count) in [
        ("active", standings.active),
        ("open", standings.broken),
        ("disabled", standings.disabled),
    ] {
        metrics::ENDPOINTS.with_label_values(&[state]).set(count);
    }
}

async fn give_up_expired(
    dispatcher: &Dispatcher,
    conn: &mut AsyncPgConnection,
) -> Result<(), store::Error> {
    let kept = dispatcher.config.retention.deliveries;
    let max_age = dispatcher.config.dispatcher.max_age;
    let mut expired = 0;
    for _ in 0..EXPIRE_ROUNDS {
        let count = deliveries::expire(conn, kept, max_age, ENDED).await?;
        expired += count;
        if i64::try_from(count).is_ok_and(|count| count < ENDED) {
            break;
        }
    }
    if expired > 0 {
        tracing::warn!(deliveries = expired, "given up for their age, unsent");
    }
    Ok(())
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
