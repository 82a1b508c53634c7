//! Claims waiting deliveries from the database: due retries, deliveries that had no capacity at first, and those of
//! dead replicas.
//!
//! The lanes in the database show which Connections have deliveries to send. One query costs the same, regardless
//! of how many deliveries wait. Nothing is claimed without capacity: each Connection gets at most what its lane
//! holds, and accounts take turns. A Connection with an open circuit breaker or a rate limit is claimed under its
//! lock ([`restrained`]), by one replica at a time.

mod restrained;
mod upkeep;

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use domain::{ConnectionName, Id};
use runtime::Periodic;
use store::{
    AsyncConnection, AsyncPgConnection,
    deliveries::{self, Claimed, Want},
    fair::Round,
    lanes::{self, Due, Settled},
};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    Dispatcher,
    lanes::{Place, Ready},
    send,
};

/// Maximum number of deliveries leased in one statement.
const BATCH: u32 = 256;
/// Maximum number of Connections per account in one query.
const PER_ACCOUNT: i64 = 64;
/// Interval between two queries for due Connections. They also find what other replicas left behind.
const LOOK: Duration = Duration::from_secs(1);
const SOONEST_LOOK: Duration = Duration::from_millis(20);
/// Pause between two rounds, so that capacity that becomes free bit by bit is filled in batches.
const PAUSE: Duration = Duration::from_millis(2);
/// Pause after a failure.
const AWAY: Duration = Duration::from_secs(1);

/// Signals from the rest of the dispatcher to the claims.
#[derive(Default)]
pub(crate) struct Signals {
    state: Mutex<Pending>,
    wake: Notify,
}

#[derive(Default)]
struct Pending {
    /// Connections with waiting deliveries that their lanes in the database may not know of.
    unhinted: BTreeSet<ConnectionName>,
    /// Time before which a throttled Connection's lane need not be checked.
    quiet: HashMap<ConnectionName, Instant>,
    next_query: Option<Instant>,
    /// Time of the last Scans.
    scan: Option<Instant>,
}

impl Signals {
    /// Records that committed deliveries wait for these Connections.
    pub(crate) fn add_due(&self, dispatcher: &Dispatcher, waiting: impl IntoIterator<Item = Due>) {
        let now = Instant::now();
        let mut state = self.lock();
        state.quiet.retain(|_, until| *until > now);
        let mut woken = false;
        for due in waiting {
            if due.restrained {
                if state
                    .quiet
                    .get(&due.connection)
                    .is_some_and(|until| *until > now)
                {
                    continue;
                }
                state.next_query = Some(now);
            } else {
                dispatcher
                    .lanes
                    .mark_backlogged(due.connection, due.account);
            }
            state.unhinted.insert(due.connection);
            woken = true;
        }
        drop(state);
        if woken {
            self.wake.notify_one();
        }
    }

    /// Same as [`Self::add_due`], for Connections of which only the name is known.
    pub(crate) fn add_connections(&self, connections: impl IntoIterator<Item = ConnectionName>) {
        let mut state = self.lock();
        state.unhinted.extend(connections);
        state.next_query = Some(Instant::now());
        drop(state);
        self.wake.notify_one();
    }

    /// Records that Scans have arrived.
    pub(crate) fn scans_come(&self) {
        self.lock().scan = Some(Instant::now());
    }

    /// Time since this replica last received Scans.
    pub(crate) fn since_scan(&self) -> Option<Duration> {
        self.lock().scan.map(|scan| scan.elapsed())
    }

    /// Schedules a query soon.
    pub(crate) fn query_soon(&self) {
        self.query_at(Instant::now() + SOONEST_LOOK);
    }

    /// Schedules a query at this time.
    pub(crate) fn query_at(&self, at: Instant) {
        let mut state = self.lock();
        if state.next_query.is_none_or(|next| at < next) {
            state.next_query = Some(at);
            drop(state);
            self.wake.notify_one();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Pending> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) async fn run(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    tokio::join!(
        claims(dispatcher, &shutdown),
        upkeep::run(dispatcher, &shutdown)
    );
}

async fn claims(dispatcher: &Arc<Dispatcher>, shutdown: &CancellationToken) {
    let mut rounds = Periodic::new(shutdown);
    let mut looked = Looked {
        next: Instant::now(),
        urgent: Round::default(),
    };
    while !shutdown.is_cancelled() {
        let round = async {
            if dispatcher.backbone.is_suspended() {
                looked.next = Instant::now();
                return Ok(AWAY);
            }
            round(dispatcher, &mut looked).await.map(|()| PAUSE)
        };
        let round = round.await;
        let pause = rounds.log_once("look for due deliveries", round);
        let pause = pause.unwrap_or_else(|| {
            looked.next = Instant::now();
            AWAY
        });
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
        let signals = &dispatcher.signals;
        let next = signals
            .lock()
            .next_query
            .map_or(looked.next, |at| at.min(looked.next));
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = signals.wake.notified() => {}
            () = dispatcher.lanes.hungry() => {
                // Throttled lanes are claimed by a query for due Connections.
                if dispatcher.lanes.take_fed() {
                    looked.next = Instant::now();
                }
            }
            () = tokio::time::sleep_until(next) => {}
        }
    }
}

struct Looked {
    next: Instant,
    /// Accounts that had a turn with requested deliveries.
    urgent: Round,
}

async fn round(dispatcher: &Arc<Dispatcher>, looked: &mut Looked) -> Result<(), store::Error> {
    let mut conn = dispatcher.backbone.pool.get().await?;
    write_hints(dispatcher, &mut conn).await?;
    let now = Instant::now();
    let is_requested = dispatcher
        .signals
        .lock()
        .next_query
        .is_some_and(|at| at <= now);
    if is_requested || looked.next <= now {
        dispatcher.signals.lock().next_query = None;
        query_due(dispatcher, &mut conn, &mut looked.urgent).await?;
        let next = lanes::next_due(&mut conn).await?.unwrap_or(LOOK);
        looked.next = Instant::now() + next.clamp(SOONEST_LOOK, LOOK);
    }
    claim(dispatcher, &mut conn).await
}

/// Writes the hints that are not written yet, because no round follows after the shutdown.
pub(crate) async fn write_last_hints(dispatcher: &Dispatcher) -> Result<(), store::Error> {
    if dispatcher.signals.lock().unhinted.is_empty() {
        return Ok(());
    }
    let mut conn = dispatcher.backbone.pool.get().await?;
    write_hints(dispatcher, &mut conn).await
}

/// Updates the lanes in the database with what waits.
async fn write_hints(
    dispatcher: &Dispatcher,
    conn: &mut AsyncPgConnection,
) -> Result<(), store::Error> {
    let unhinted = std::mem::take(&mut dispatcher.signals.lock().unhinted);
    if unhinted.is_empty() {
        return Ok(());
    }
    let names: Vec<ConnectionName> = unhinted.iter().copied().collect();
    let noted = lanes::mark_due(conn, &names).await;
    if noted.is_err() {
        dispatcher.signals.lock().unhinted.extend(unhinted);
    }
    Ok(noted?)
}

/// Queries which Connections are due.
async fn query_due(
    dispatcher: &Arc<Dispatcher>,
    conn: &mut AsyncPgConnection,
    round: &mut Round,
) -> Result<(), store::Error> {
    urgent(dispatcher, conn, round).await?;
    let mut under_restraint = Vec::new();
    let known = dispatcher.lanes.behind();
    let mut free: HashMap<Id, i64> = HashMap::new();
    for due in lanes::due(conn, &known, PER_ACCOUNT).await? {
        if due.restrained {
            under_restraint.push(due);
        } else {
            dispatcher
                .lanes
                .mark_backlogged(due.connection, due.account);
            *free.entry(due.account).or_default() += 1;
        }
    }
    // That account may have more; the next query leaves out the known ones.
    if free.values().any(|count| *count >= PER_ACCOUNT / 2) {
        dispatcher.signals.query_at(Instant::now() + SOONEST_LOOK);
    }
    restrained::claim(dispatcher, conn, under_restraint).await
}

/// Claims urgent deliveries, which people requested. They go first, and past open circuit breakers. No lane limits
/// them, so only a few of each Connection and of each account are held; when one ends, [`send`] schedules the next
/// query.
async fn urgent(
    dispatcher: &Arc<Dispatcher>,
    conn: &mut AsyncPgConnection,
    round: &mut Round,
) -> Result<(), store::Error> {
    let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
    let (held, capacity) = (dispatcher.lanes.urgent(), dispatcher.lanes.max_urgent());
    let mut claimed =
        deliveries::claim_urgent(conn, sealer, replica, capacity, &held, round).await?;
    if claimed.is_empty() && round.pause() {
        claimed = deliveries::claim_urgent(conn, sealer, replica, capacity, &held, round).await?;
    }
    if claimed.is_empty() {
        return Ok(());
    }
    for claim in claimed {
        if let Some(ready) = ready(dispatcher, claim, false) {
            let connection = ready.task.delivery.connection_name();
            let place = dispatcher
                .lanes
                .exempt_place(connection, ready.task.account);
            put(dispatcher, place, ready);
        }
    }
    send::pump(dispatcher);
    // More requested deliveries may be due.
    dispatcher.signals.query_at(Instant::now() + SOONEST_LOOK);
    Ok(())
}

/// Fills the lanes of Connections that are behind.
async fn claim(
    dispatcher: &Arc<Dispatcher>,
    conn: &mut AsyncPgConnection,
) -> Result<(), store::Error> {
    let wanted = dispatcher.lanes.wants(BATCH);
    if wanted.is_empty() {
        return Ok(());
    }
    let wants: Vec<Want> = wanted
        .iter()
        .map(|(connection, places)| Want {
            connection: *connection,
            count: u32::try_from(places.len()).unwrap_or(u32::MAX),
        })
        .collect();
    let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
    let claimed = deliveries::claim(conn, sealer, replica, &wants).await?;
    let mut places: HashMap<ConnectionName, Vec<Place>> = wanted.into_iter().collect();
    for claim in claimed {
        let connection = name_of(&claim);
        let place = places.get_mut(&connection).and_then(Vec::pop);
        let (Some(place), Some(ready)) = (place, ready(dispatcher, claim, false)) else {
            continue;
        };
        put(dispatcher, place, ready);
    }
    send::pump(dispatcher);
    if wants.iter().map(|want| want.count).sum::<u32>() >= BATCH {
        // Some of the lanes that are behind had no turn.
        dispatcher.signals.wake.notify_one();
    }
    let drained: Vec<ConnectionName> = places
        .into_iter()
        .filter(|(_, places)| !places.is_empty())
        .map(|(connection, _)| connection)
        .collect();
    settle(dispatcher, conn, &drained).await
}

/// Advances the hints of Connections without further deliveries.
async fn settle(
    dispatcher: &Dispatcher,
    conn: &mut AsyncPgConnection,
    drained: &[ConnectionName],
) -> Result<(), store::Error> {
    if drained.is_empty() {
        return Ok(());
    }
    let settled = conn
        .transaction(async |conn| lanes::settle(conn, drained).await)
        .await?;
    // A missing Connection was deleted, and nothing else would ever report that nothing waits for it. Or another
    // replica has its lane locked, and the next query finds it again.
    let found: HashSet<ConnectionName> = settled.iter().map(|one| one.connection).collect();
    for missing in drained.iter().filter(|name| !found.contains(*name)) {
        dispatcher.lanes.clear_backlog(*missing);
    }
    for settled in settled {
        let Settled {
            connection,
            next,
            restrained,
        } = settled;
        match next {
            // More deliveries arrived, or some could not be sent. Others get their turn first.
            Some(Duration::ZERO) if !restrained => {
                dispatcher.signals.query_at(Instant::now() + SOONEST_LOOK);
            }
            Some(next) => {
                dispatcher.lanes.clear_backlog(connection);
                dispatcher
                    .signals
                    .query_at(Instant::now() + next.max(SOONEST_LOOK));
            }
            None => dispatcher.lanes.clear_backlog(connection),
        }
    }
    Ok(())
}

fn name_of(claimed: &Claimed) -> ConnectionName {
    match claimed {
        Ok(task) => task.delivery.connection_name(),
        Err(unsendable) => unsendable.delivery.connection_name(),
    }
}

/// Returns the tasks that can be sent; for the others, the failure is recorded.
fn ready(dispatcher: &Dispatcher, claimed: Claimed, probe: bool) -> Option<Ready> {
    match claimed {
        Ok(task) => Some(Ready {
            in_hand: dispatcher.recorder.take_in_hand(task.delivery.delivery),
            task,
            probe,
        }),
        Err(unsendable) => {
            send::fail(dispatcher, *unsendable);
            None
        }
    }
}

fn put(dispatcher: &Arc<Dispatcher>, place: Place, ready: Ready) {
    if let Err(ready) = dispatcher.lanes.put(place, ready) {
        send::spawn_hand_back(dispatcher, vec![*ready]);
    }
}
