//! Claims for throttled Connections: with an open circuit breaker, or a rate limit. They are claimed under their
//! lock, which one replica holds at a time. So there is one probe and one rate over all replicas.

use std::{collections::HashMap, sync::Arc, time::Duration};

use domain::ConnectionName;
use store::{
    AsyncConnection, AsyncPgConnection,
    deliveries::{self, Claimed, Want},
    lanes::{self, Due, Lane, LockedLane, Settled},
};
use tokio::time::Instant;

use super::{LOOK, SOONEST_LOOK, name_of, put, ready};
use crate::{Dispatcher, lanes::Place, rate::Allowance, send};

/// Time in addition to a request's deadline, for the work before and after it.
const PROBE_MARGIN: Duration = Duration::from_secs(5);

/// Deliveries that a Connection may send now.
enum Leave {
    /// `None` if it is not due yet, or the Connection is disabled.
    Nothing,
    Probe(Place),
    Paced(Allowance, Vec<Place>),
    /// The Connection is no longer throttled.
    Free,
}

pub(super) async fn claim(
    dispatcher: &Arc<Dispatcher>,
    conn: &mut AsyncPgConnection,
    mut due: Vec<Due>,
) -> Result<(), store::Error> {
    due.retain(|due| dispatcher.lanes.has_place(due.connection, due.account));
    if due.is_empty() {
        return Ok(());
    }
    let names: Vec<ConnectionName> = due.iter().map(|due| due.connection).collect();
    let accounts: HashMap<ConnectionName, Due> =
        due.into_iter().map(|due| (due.connection, due)).collect();
    let (leaves, claimed, settled) = conn
        .transaction(async |conn| {
            let mut leaves: HashMap<ConnectionName, Leave> = HashMap::new();
            let mut locked: HashMap<ConnectionName, LockedLane> = HashMap::new();
            for lane in lanes::lock_due(conn, &names).await? {
                let name = lane.lane.connection;
                if let Some(due) = accounts.get(&name) {
                    leaves.insert(name, leave(dispatcher, due, &lane));
                    locked.insert(name, lane);
                }
            }
            let wants: Vec<Want> = leaves.iter().filter_map(want).collect();
            let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
            let claimed = deliveries::claim_locked(conn, sealer, replica, &wants).await?;
            let changed = spend(dispatcher, &leaves, &claimed, &locked);
            lanes::save(conn, &changed).await?;
            let settled: Vec<ConnectionName> = leaves.keys().copied().collect();
            let settled = lanes::settle(conn, &settled).await?;
            Ok::<_, store::Error>((leaves, claimed, settled))
        })
        .await?;
    start(dispatcher, leaves, claimed, &accounts);
    for Settled {
        connection, next, ..
    } in settled
    {
        let mut signals = dispatcher.signals.lock();
        let at = next.map(|next| Instant::now() + next);
        // A later time is that of a retry or of a breaker. New deliveries may be sent before it.
        match at.filter(|_| next <= Some(LOOK)) {
            Some(at) => signals.quiet.insert(connection, at),
            None => signals.quiet.remove(&connection),
        };
        drop(signals);
        if let Some(at) = at {
            dispatcher
                .signals
                .look_at(at.max(Instant::now() + SOONEST_LOOK));
        }
    }
    Ok(())
}

fn leave(dispatcher: &Arc<Dispatcher>, due: &Due, locked: &LockedLane) -> Leave {
    let LockedLane {
        lane, now, active, ..
    } = locked;
    if !active {
        return Leave::Nothing;
    }
    if let Some(open_until) = lane.open_until {
        let probed = lane
            .probe
            .is_some_and(|(_, end)| end > *now && locked.prober_lives);
        // Places for the probes of others in this query may have been the last.
        let has_place = dispatcher.lanes.has_place(due.connection, due.account);
        if open_until > *now || probed || !has_place {
            return Leave::Nothing;
        }
        let place = dispatcher.lanes.exempt_place(due.connection, due.account);
        return Leave::Probe(place);
    }
    let Some(per_minute) = locked.per_minute else {
        return Leave::Free;
    };
    dispatcher.lanes.unblock(due.connection);
    let allowance = Allowance::new(lane.rate_time, *now, per_minute);
    let places = dispatcher
        .lanes
        .places(due.connection, due.account, allowance.count);
    Leave::Paced(allowance, places)
}

fn want((connection, leave): (&ConnectionName, &Leave)) -> Option<Want> {
    let count = match leave {
        Leave::Nothing | Leave::Free => 0,
        Leave::Probe(_) => 1,
        Leave::Paced(_, places) => u32::try_from(places.len()).unwrap_or(u32::MAX),
    };
    (count > 0).then_some(Want {
        connection: *connection,
        count,
    })
}

/// Returns the lanes after these claims.
fn spend(
    dispatcher: &Dispatcher,
    leaves: &HashMap<ConnectionName, Leave>,
    claimed: &[Claimed],
    locked: &HashMap<ConnectionName, LockedLane>,
) -> Vec<Lane> {
    let mut counts: HashMap<ConnectionName, u32> = HashMap::new();
    for claim in claimed {
        *counts.entry(name_of(claim)).or_default() += 1;
    }
    let mut changed = Vec::new();
    for (connection, leave) in leaves {
        let (Some(locked), Some(count)) = (locked.get(connection), counts.get(connection)) else {
            continue;
        };
        let mut lane = locked.lane.clone();
        match leave {
            Leave::Nothing | Leave::Free => continue,
            Leave::Probe(_) => {
                let end = dispatcher.config.dispatcher.timeout + PROBE_MARGIN;
                lane.probe = Some((dispatcher.backbone.replica, locked.now.plus(end)));
            }
            Leave::Paced(allowance, _) => lane.rate_time = Some(allowance.spent(*count)),
        }
        changed.push(lane);
    }
    changed
}

fn start(
    dispatcher: &Arc<Dispatcher>,
    mut leaves: HashMap<ConnectionName, Leave>,
    claimed: Vec<Claimed>,
    accounts: &HashMap<ConnectionName, Due>,
) {
    let mut sent: HashMap<ConnectionName, u32> = HashMap::new();
    for claim in claimed {
        let connection = name_of(&claim);
        match leaves.get_mut(&connection) {
            None | Some(Leave::Nothing | Leave::Free) => {}
            Some(Leave::Probe(_)) => {
                let Some(Leave::Probe(place)) = leaves.remove(&connection) else {
                    continue;
                };
                if let Some(ready) = ready(dispatcher, claim, true) {
                    put(dispatcher, place, ready);
                }
            }
            Some(Leave::Paced(allowance, places)) => {
                let number = sent.entry(connection).or_default();
                let wait = allowance.wait(*number);
                *number += 1;
                let (Some(mut place), Some(ready)) =
                    (places.pop(), ready(dispatcher, claim, false))
                else {
                    continue;
                };
                // It may wait for a second.
                place.fit(&ready);
                let dispatcher = Arc::clone(dispatcher);
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    put(&dispatcher, place, ready);
                    send::pump(&dispatcher);
                });
            }
        }
    }
    for (connection, leave) in &leaves {
        if let (Leave::Free, Some(due)) = (leave, accounts.get(connection)) {
            dispatcher.lanes.fall_behind(*connection, due.account);
        }
    }
    send::pump(dispatcher);
}
