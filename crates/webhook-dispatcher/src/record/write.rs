//! Writes one batch of results, with retries until it succeeds.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Weak,
    time::Duration,
};

use backbone::Backbone;
use domain::{ConnectionName, Id, Timestamp};
use runtime::Backoff;
use store::{
    AsyncPgConnection, connections,
    deliveries::{self, AttemptResult, Recorded, Verdict},
    keyed,
    lanes::{self, LockedLane},
};
use tokio::{sync::mpsc, time::Instant};

use super::unwritten::{Sent, Unwritten};
use crate::{
    Dispatcher,
    breaker::{self, Change},
    metrics, send,
};

/// Tries of a batch that the database refuses for a possibly temporary reason, before the batch is split.
const TRIES: u32 = 3;
/// Pause between tries of a result that was put aside: the first and the longest.
const PARKED: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));
/// Time after which a result is given up, and its request repeated.
const LONGEST_PARKED: Duration = Duration::from_secs(3_600);
/// Time for the last tries after the last sender is dropped.
const LAST_TRIES: Duration = Duration::from_secs(5);
/// A Connection without a success for this long, and with enough failing deliveries, is disabled, except for e-mail.
const FAILING: Duration = Duration::from_secs(5 * 86_400);
const FAILING_DELIVERIES: i64 = 20;

pub(super) struct Writer {
    backbone: Backbone,
    dispatcher: Weak<Dispatcher>,
}

/// A result that the database refuses while it accepts others.
pub(super) struct Parked {
    unwritten: Unwritten,
    since: Instant,
    due: Instant,
    backoff: Backoff,
}

impl Parked {
    fn new(unwritten: Unwritten) -> Self {
        let now = Instant::now();
        let mut backoff = Backoff::new(PARKED.0, PARKED.1);
        Self {
            unwritten,
            since: now,
            due: now + backoff.next(),
            backoff,
        }
    }

    pub(super) fn due(&self) -> Instant {
        self.due
    }
}

/// Changes to lanes from one batch of results.
#[derive(Default)]
struct LaneChanges {
    /// Open breakers, of any replica.
    open: Vec<(ConnectionName, Timestamp, Timestamp)>,
    closed: Vec<ConnectionName>,
    disabled: Vec<ConnectionName>,
    /// Connections with a delivery that was requested again while its request was open.
    reopened: Vec<ConnectionName>,
    /// Earliest time of a retry.
    retry: Option<Duration>,
}

impl Writer {
    pub(super) fn new(backbone: Backbone, dispatcher: Weak<Dispatcher>) -> Self {
        Self {
            backbone,
            dispatcher,
        }
    }

    /// Opens requests that were held back while too many results were unwritten: there may be no open request left
    /// whose end would do it.
    pub(super) fn resume(&self) {
        if let Some(dispatcher) = self.dispatcher.upgrade() {
            send::pump(&dispatcher);
        }
    }

    /// Retries until the batch is written. While the database is away, the whole batch is kept. A batch that it
    /// refuses is split, and results that it refuses even alone are put aside.
    pub(super) async fn write(
        &mut self,
        batch: Vec<Unwritten>,
        results: &mpsc::UnboundedReceiver<Unwritten>,
        parked: &mut Vec<Parked>,
    ) {
        let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
        let mut closing: Option<Instant> = None;
        let mut failed = false;
        let mut refusals = 0;
        loop {
            let sent: Vec<&Sent> = batch.iter().map(|one| &one.sent).collect();
            let error = match self.try_write(&sent, true).await {
                Ok(()) => {
                    if failed {
                        tracing::info!("attempts are recorded again");
                    }
                    return;
                }
                Err(error) => error,
            };
            let passing = is_passing(&error);
            refusals += u32::from(!passing);
            if error.is_refusal() || refusals >= TRIES {
                break;
            }
            if !std::mem::replace(&mut failed, true) {
                let error = anyhow::Error::from(error);
                tracing::warn!("cannot record attempts, holding them: {error:#}");
            }
            if results.is_closed()
                && *closing.get_or_insert_with(|| Instant::now() + LAST_TRIES) <= Instant::now()
            {
                tracing::error!(
                    attempts = batch.len(),
                    "attempts could not be recorded: their requests will be repeated"
                );
                return;
            }
            tokio::time::sleep(backoff.next()).await;
        }
        for one in batch {
            if !self.write_alone(&one.sent).await {
                parked.push(Parked::new(one));
            }
        }
    }

    /// Retries results that were put aside and are due.
    pub(super) async fn retry(&mut self, parked: &mut Vec<Parked>) {
        for mut one in std::mem::take(parked) {
            if one.due > Instant::now() {
                parked.push(one);
                continue;
            }
            if self.write_alone(&one.unwritten.sent).await {
                let delivery = one.unwritten.sent.result.delivery;
                tracing::info!(delivery.name = %delivery, "an attempt that was refused is recorded");
            } else if one.since.elapsed() < LONGEST_PARKED {
                one.due = Instant::now() + one.backoff.next();
                parked.push(one);
            } else {
                let delivery = one.unwritten.sent.result.delivery;
                tracing::error!(delivery.name = %delivery, "the database refuses what becomes of a delivery, its request will be repeated");
            }
        }
    }

    /// Last tries at the end of the process.
    pub(super) async fn last(&mut self, parked: Vec<Parked>) {
        for one in parked {
            if !self.write_alone(&one.unwritten.sent).await {
                let delivery = one.unwritten.sent.result.delivery;
                tracing::error!(delivery.name = %delivery, "an attempt could not be recorded: its request will be repeated");
            }
        }
    }

    /// Returns true if the result was written. If necessary it is written without its entry in the log, because a
    /// missing record must not repeat its request.
    async fn write_alone(&mut self, sent: &Sent) -> bool {
        let Err(error) = self.try_write(&[sent], true).await else {
            return true;
        };
        let delivery = sent.result.delivery;
        let refused = error.is_refusal();
        let error = anyhow::Error::from(error);
        tracing::error!(delivery.name = %delivery, "the database refuses the record of an attempt: {error:#}");
        if !refused {
            return false;
        }
        match self.try_write(&[sent], false).await {
            Ok(()) => true,
            Err(error) => {
                let error = anyhow::Error::from(error);
                tracing::error!(delivery.name = %delivery, "the database refuses what becomes of a delivery: {error:#}");
                false
            }
        }
    }

    /// Writes results in one transaction, with their attempts in the log if `logged`.
    async fn try_write(&self, sent: &[&Sent], logged: bool) -> Result<(), store::Error> {
        let replica = self.backbone.replica;
        let mut conn = self.backbone.pool.get().await?;
        let results: Vec<&AttemptResult> = sent.iter().map(|sent| &sent.result).collect();
        keyed::begin(&mut conn).await?;
        let changes = async {
            let recorded = if logged {
                deliveries::record_results(&mut conn, replica, &results).await?
            } else {
                deliveries::move_on(&mut conn, replica, &results).await?
            };
            enter(&mut conn, sent, recorded).await
        };
        let changes = changes.await;
        let changes = keyed::end(&mut conn, changes).await?;
        // At a shutdown, no round of claims would write these hints. After an error, the retry reports all again.
        let noted = lanes::mark_due(&mut conn, &changes.reopened).await;
        drop(conn);
        self.apply(changes);
        Ok(noted?)
    }

    fn apply(&self, changes: LaneChanges) {
        let Some(dispatcher) = self.dispatcher.upgrade() else {
            return;
        };
        let now = Instant::now();
        for (connection, until, at) in changes.open {
            send::spawn_hand_back(&dispatcher, dispatcher.lanes.block(connection));
            dispatcher.signals.query_at(now + until.since(at));
        }
        for connection in changes.disabled {
            send::spawn_hand_back(&dispatcher, dispatcher.lanes.block(connection));
        }
        if !changes.closed.is_empty() {
            for connection in &changes.closed {
                dispatcher.lanes.unblock(*connection);
            }
            dispatcher.signals.query_at(now);
        }
        if !changes.reopened.is_empty() {
            dispatcher.signals.query_at(now);
        }
        if let Some(wait) = changes.retry {
            dispatcher.signals.query_at(now + wait);
        }
    }
}

/// Returns true if the database is away, or two transactions conflicted.
fn is_passing(error: &store::Error) -> bool {
    match error {
        store::Error::Query(error) => store::is_passing(error),
        store::Error::Pool(_) | store::Error::QuotaRace(_) | store::Error::PlansChanged => true,
        store::Error::Sealed(_) | store::Error::Json(_) | store::Error::QuotaExceeded(_) => false,
    }
}

/// Records the outcomes of Connections. Mostly there is nothing to record. A delivery that did not move is skipped:
/// another replica has it, or a commit without an answer has already recorded it. In the latter case it is unknown
/// what was reported, so everything is reported again.
async fn enter(
    conn: &mut AsyncPgConnection,
    sent: &[&Sent],
    recorded: Recorded,
) -> Result<LaneChanges, store::Error> {
    let Recorded { moved, reopened } = recorded;
    let mut changes = LaneChanges {
        reopened,
        ..LaneChanges::default()
    };
    let unmoved = |sent: &&Sent| !moved.contains(&sent.result.delivery.delivery);
    let unmoved = sent.iter().copied().filter(unmoved);
    changes
        .reopened
        .extend(unmoved.map(|sent| sent.result.delivery.connection_name()));
    let mut touched: BTreeMap<ConnectionName, bool> = BTreeMap::new();
    for sent in sent {
        let touched = touched
            .entry(sent.result.delivery.connection_name())
            .or_default();
        *touched |= !matches!(sent.result.verdict, Verdict::Succeeded);
        if let Verdict::RetryIn(wait) = sent.result.verdict {
            changes.retry = Some(changes.retry.map_or(wait, |retry| retry.min(wait)));
        }
    }
    let touched: Vec<(ConnectionName, bool)> = touched.into_iter().collect();
    let mut changed = Vec::new();
    for mut locked in lanes::lock_changing(conn, &touched).await? {
        let connection = locked.lane.connection;
        let of_lane = sent
            .iter()
            .filter(|sent| sent.result.delivery.connection_name() == connection);
        let was_open = locked.lane.open_until.is_some();
        enter_lane(&mut locked, of_lane.copied(), &moved, &mut changes);
        if locked.active && must_be_disabled(conn, &locked).await? {
            disable(conn, &locked, &mut changes).await?;
        }
        if locked.lane.open_until.is_some() != was_open {
            let change = if was_open { "closed" } else { "opened" };
            metrics::BREAKER_CHANGES.with_label_values(&[change]).inc();
        }
        changed.push(locked.lane);
    }
    lanes::save(conn, &changed).await?;
    Ok(changes)
}

fn enter_lane<'a>(
    locked: &mut LockedLane,
    sent: impl Iterator<Item = &'a Sent>,
    moved: &HashSet<Id>,
    changes: &mut LaneChanges,
) {
    let (lane, now) = (&mut locked.lane, locked.now);
    let mut due = lane.next_due_time;
    for sent in sent {
        let counts = moved.contains(&sent.result.delivery.delivery);
        // The outcome of an address says nothing about the address that replaced it.
        if let Some((outcome, update_time)) = &sent.outcome
            && counts
            && *update_time == locked.connection_update_time
        {
            match breaker::enter(lane, *outcome, now) {
                Change::None => {}
                Change::Opened => {
                    tracing::info!(connection.name = %lane.connection, "its circuit breaker is open");
                }
                Change::Closed => {
                    tracing::info!(connection.name = %lane.connection, "its circuit breaker is closed");
                    changes.closed.push(lane.connection);
                    due = Some(now);
                }
            }
        }
        if let Verdict::RetryIn(wait) = sent.result.verdict {
            let retry = now.plus(wait);
            due = Some(due.map_or(retry, |due| due.min(retry)));
        }
    }
    if let Some(until) = lane.open_until {
        let until = lane.probe.map_or(until, |(_, end)| until.max(end));
        due = Some(until);
        changes.open.push((lane.connection, until, now));
    }
    lane.next_due_time = due.filter(|_| locked.active);
}

async fn must_be_disabled(
    conn: &mut AsyncPgConnection,
    locked: &LockedLane,
) -> Result<bool, store::Error> {
    let Some(since) = locked.lane.failing_since else {
        return Ok(false);
    };
    // Failures of mails are mostly those of the operator's server, which all customers share.
    if locked.is_email || locked.now.since(since) < FAILING {
        return Ok(false);
    }
    let connection = locked.lane.connection;
    let failing = lanes::failing_deliveries(conn, connection, since, FAILING_DELIVERIES).await?;
    Ok(failing >= FAILING_DELIVERIES)
}

async fn disable(
    conn: &mut AsyncPgConnection,
    locked: &LockedLane,
    changes: &mut LaneChanges,
) -> Result<(), store::Error> {
    let (connection, now) = (locked.lane.connection, locked.now);
    let since = locked.lane.failing_since.unwrap_or(now);
    let reason = format!("no delivery has succeeded since {since}");
    if connections::disable(conn, connection, &reason, now).await? {
        tracing::warn!(connection.name = %connection, "disabled: {reason}");
        changes.disabled.push(connection);
    }
    Ok(())
}
