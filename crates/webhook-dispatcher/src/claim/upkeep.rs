//! Maintenance of claims: leases of dead replicas, missing hints, and deliveries that will never be sent.

use std::{sync::Arc, time::Duration};

use backbone::work;
use domain::{ConnectionName, Timestamp};
use runtime::{Periodic, Sparing};
use store::{
    AsyncPgConnection,
    deliveries::{self, Endpoints, UnfinishedCounts},
    lanes, replays, trial_deliveries,
    work::MAX_CRASHES,
};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{Dispatcher, metrics};

/// Interval between two checks of lanes and leases. Leases of a dead replica are free when its heartbeat is four
/// seconds old. This interval and the time of a claim must fit into the rest of the five seconds until another
/// replica takes over.
const LOOK: Duration = Duration::from_millis(250);
const SWEEP: Duration = Duration::from_secs(5);
const EXPIRE: Duration = Duration::from_secs(600);
/// Unfinished deliveries are counted up to this number, which takes a few milliseconds.
const COUNTED: i64 = 10_000;
/// Number of Connections with waiting deliveries that one sweep looks at, which takes some ten milliseconds.
const SWEPT: i32 = 2_000;
/// Maximum number of rows in one statement.
const ENDED: i64 = 1_000;
/// Maximum number of statements in a row, while other work waits.
const ROUNDS: u32 = 20;
/// The database's clock has gone back if it is so far behind the steady clock.
const CLOCK_TOLERANCE: Duration = Duration::from_secs(30);
/// Longer than the time from a lease to its delivery being in hand. A lease that is older and not in hand comes
/// from a transaction whose commit was not answered, or has nothing to send.
const FORGOTTEN: Duration = Duration::from_secs(15);

pub(super) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: &CancellationToken) {
    let now = Instant::now();
    let (mut sweep, mut expire) = (now, now + SWEEP);
    let mut sweeper = Sweeper::default();
    let mut rounds = Periodic::new(shutdown);
    while rounds.every(LOOK).await {
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
                // A replica has died: it may have left hints unwritten.
                sweep = now;
            }
            if now < sweep {
                return Ok(());
            }
            sweep = now + SWEEP;
            if deliveries::is_sweeper(&mut conn, dispatcher.backbone.replica).await? {
                sweeper.sweep(&mut conn).await?;
                if now >= expire {
                    give_up_expired(dispatcher, &mut conn).await?;
                    // After an error the next sweep tries again.
                    expire = now + EXPIRE;
                }
            } else {
                sweeper = Sweeper::default();
            }
            Ok::<_, store::Error>(())
        };
        rounds.log_once("look after leases and lanes", round.await);
    }
}

/// Frees deliveries without a living holder. Returns true if there were any.
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
    tracing::info!(
        deliveries = freed.len(),
        "freed deliveries without a holder"
    );
    metrics::LEASES_EXPIRED
        .with_label_values(&["delivery"])
        .inc_by(freed.len() as u64);
    let set_aside = freed.iter().filter(|one| one.crashes >= MAX_CRASHES);
    match set_aside.count() {
        0 => {}
        deliveries => {
            tracing::error!(
                deliveries,
                "set aside: dispatchers stopped three times in a row while they sent them"
            );
            work::count_set_aside("delivery", deliveries);
        }
    }
    let connections = freed.into_iter().map(|one| one.connection);
    dispatcher.signals.add_connections(connections);
    Ok(true)
}

/// State that a sweep keeps for the next one.
struct Sweeper {
    clock: DatabaseClock,
    /// The last Connection that was checked; `None` to begin with the first.
    last: Option<ConnectionName>,
    /// Limits how often all Connections are counted.
    counts: Sparing,
}

impl Default for Sweeper {
    fn default() -> Self {
        Self {
            clock: DatabaseClock::default(),
            last: None,
            counts: Sparing::new(100),
        }
    }
}

impl Sweeper {
    async fn sweep(&mut self, conn: &mut AsyncPgConnection) -> Result<(), store::Error> {
        trial_deliveries::purge(conn).await?;
        let counts = deliveries::count_unfinished(conn, COUNTED).await?;
        report(counts);
        let waiting = deliveries::find_waiting(conn, self.last, SWEPT).await?;
        self.last = waiting.last;
        if waiting.unnoted > 0 {
            tracing::info!(
                connections = waiting.unnoted,
                "found deliveries without a hint"
            );
            metrics::RECOVERED
                .with_label_values(&["delivery"])
                .inc_by(waiting.unnoted as u64);
        }
        for connection in waiting.gone {
            let cancelled = deliveries::cancel_waiting(conn, connection, ENDED).await?;
            tracing::info!(connection.name = %connection, deliveries = cancelled, "cancelled: the Connection is deleted");
        }
        if let Some(counted) = self.counts.run(count_connections(conn)).await {
            counted?;
        }
        // This comes last, because it may read a large backlog. The next sweep corrects hints that are too late now.
        self.clock.follow(conn, counts.now).await
    }
}

async fn count_connections(conn: &mut AsyncPgConnection) -> Result<(), store::Error> {
    let Endpoints {
        active,
        broken,
        disabled,
    } = deliveries::endpoints(conn).await?;
    for (state, count) in [("active", active), ("open", broken), ("disabled", disabled)] {
        metrics::ENDPOINTS.with_label_values(&[state]).set(count);
    }
    let totals = deliveries::lane_totals(conn).await?;
    metrics::OPEN_BREAKERS.set(totals.open_breakers);
    metrics::CONNECTIONS_BEHIND.set(totals.behind);
    metrics::OLDEST_DUE.set(totals.oldest_due.as_secs_f64());
    Ok(())
}

/// The last known time of the database's clock, with this process's steady clock.
#[derive(Default)]
struct DatabaseClock(Option<(Timestamp, Instant)>);

impl DatabaseClock {
    /// Corrects times after the database's clock went back, so that nothing waits longer. A new sweeper cannot know
    /// whether that happened, so it corrects them once.
    async fn follow(
        &mut self,
        conn: &mut AsyncPgConnection,
        now: Timestamp,
    ) -> Result<(), store::Error> {
        let connections = lanes::follow_clock(conn).await?;
        let went_back = self
            .0
            .is_none_or(|(time, at)| now.plus(CLOCK_TOLERANCE) < time.plus(at.elapsed()));
        let (mut replays, mut followed) = (0, 0);
        let mut complete = !went_back;
        if went_back {
            replays = replays::follow_clock(conn).await?;
            for _ in 0..ROUNDS {
                let count = deliveries::follow_clock(conn, ENDED).await?;
                followed += count;
                complete = i64::try_from(count).is_ok_and(|count| count < ENDED);
                if complete {
                    break;
                }
            }
        }
        if complete {
            self.0 = Some((now, Instant::now()));
        }
        if connections + replays + followed > 0 {
            tracing::warn!(
                connections,
                replays,
                deliveries = followed,
                "the clock of the database went back: waiting no longer than before"
            );
        }
        Ok(())
    }
}

fn report(counts: UnfinishedCounts) {
    for (state, count) in [
        ("pending", counts.pending),
        ("retrying", counts.retrying),
        ("in_flight", counts.in_flight),
    ] {
        metrics::UNFINISHED.with_label_values(&[state]).set(count);
    }
    metrics::DUE.set(counts.due);
}

async fn give_up_expired(
    dispatcher: &Dispatcher,
    conn: &mut AsyncPgConnection,
) -> Result<(), store::Error> {
    let kept = dispatcher.config.retention.deliveries;
    let max_age = dispatcher.config.dispatcher.max_age;
    let mut expired = 0;
    for _ in 0..ROUNDS {
        let now = Timestamp::now();
        let count = deliveries::expire(conn, kept, max_age, ENDED, now).await?;
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
