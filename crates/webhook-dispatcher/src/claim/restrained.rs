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
enum Permission {
    /// The Connection is not due yet, or disabled.
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
    let (permissions, claimed, settled) = conn
        .transaction(async |conn| {
            let mut permissions: HashMap<ConnectionName, Permission> = HashMap::new();
            let mut locked: HashMap<ConnectionName, LockedLane> = HashMap::new();
            for lane in lanes::lock_due(conn, &names).await? {
                let name = lane.lane.connection;
                if let Some(due) = accounts.get(&name) {
                    permissions.insert(name, permission(dispatcher, due, &lane));
                    locked.insert(name, lane);
                }
            }
            let wants: Vec<Want> = permissions.iter().filter_map(want).collect();
            let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
            let claimed = deliveries::claim_locked(conn, sealer, replica, &wants).await?;
            let changed = spend(dispatcher, &permissions, &claimed, &locked);
            lanes::save(conn, &changed).await?;
            let settled: Vec<ConnectionName> = permissions.keys().copied().collect();
            let settled = lanes::settle(conn, &settled).await?;
            Ok::<_, store::Error>((permissions, claimed, settled))
        })
        .await?;
    start(dispatcher, permissions, claimed, &accounts);
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
                .query_at(at.max(Instant::now() + SOONEST_LOOK));
        }
    }
    Ok(())
}

fn permission(dispatcher: &Arc<Dispatcher>, due: &Due, locked: &LockedLane) -> Permission {
    let LockedLane {
        lane, now, active, ..
    } = locked;
    if !active {
        return Permission::Nothing;
    }
    if let Some(open_until) = lane.open_until {
        let probed = lane
            .probe
            .is_some_and(|(_, end)| end > *now && locked.prober_lives);
        // Probes of other Connections in this query may have taken the last places.
        let has_place = dispatcher.lanes.has_place(due.connection, due.account);
        if open_until > *now || probed || !has_place {
            return Permission::Nothing;
        }
        let place = dispatcher.lanes.exempt_place(due.connection, due.account);
        return Permission::Probe(place);
    }
    let Some(per_minute) = locked.per_minute else {
        return Permission::Free;
    };
    dispatcher.lanes.unblock(due.connection);
    let allowance = Allowance::new(lane.rate_time, *now, per_minute);
    let places = dispatcher
        .lanes
        .places(due.connection, due.account, allowance.count);
    Permission::Paced(allowance, places)
}

fn want((connection, permission): (&ConnectionName, &Permission)) -> Option<Want> {
    let count = match permission {
        Permission::Nothing | Permission::Free => 0,
        Permission::Probe(_) => 1,
        Permission::Paced(_, places) => u32::try_from(places.len()).unwrap_or(u32::MAX),
    };
    (count > 0).then_some(Want {
        connection: *connection,
        count,
    })
}

/// Returns the lanes after these claims.
fn spend(
    dispatcher: &Dispatcher,
    permissions: &HashMap<ConnectionName, Permission>,
    claimed: &[Claimed],
    locked: &HashMap<ConnectionName, LockedLane>,
) -> Vec<Lane> {
    let mut counts: HashMap<ConnectionName, u32> = HashMap::new();
    for claim in claimed {
        *counts.entry(name_of(claim)).or_default() += 1;
    }
    let mut changed = Vec::new();
    for (connection, permission) in permissions {
        let (Some(locked), Some(count)) = (locked.get(connection), counts.get(connection)) else {
            continue;
        };
        let mut lane = locked.lane.clone();
        match permission {
            Permission::Nothing | Permission::Free => continue,
            Permission::Probe(_) => {
                let settings = &dispatcher.config.dispatcher;
                let mail = settings.smtp.as_ref().map(|smtp| smtp.timeout);
                let timeout = settings.timeout.max(mail.unwrap_or_default());
                let end = locked.now.plus(timeout + PROBE_MARGIN);
                lane.probe = Some((dispatcher.backbone.replica, end));
            }
            Permission::Paced(allowance, _) => lane.rate_time = Some(allowance.spent(*count)),
        }
        changed.push(lane);
    }
    changed
}

fn start(
    dispatcher: &Arc<Dispatcher>,
    mut permissions: HashMap<ConnectionName, Permission>,
    claimed: Vec<Claimed>,
    accounts: &HashMap<ConnectionName, Due>,
) {
    let mut sent: HashMap<ConnectionName, u32> = HashMap::new();
    for claim in claimed {
        let connection = name_of(&claim);
        match permissions.get_mut(&connection) {
            None | Some(Permission::Nothing | Permission::Free) => {}
            Some(Permission::Probe(_)) => {
                let Some(Permission::Probe(place)) = permissions.remove(&connection) else {
                    continue;
                };
                if let Some(ready) = ready(dispatcher, claim, true) {
                    put(dispatcher, place, ready);
                }
            }
            Some(Permission::Paced(allowance, places)) => {
                let number = sent.entry(connection).or_default();
                let wait = allowance.wait(*number);
                *number += 1;
                let (Some(mut place), Some(ready)) =
                    (places.pop(), ready(dispatcher, claim, false))
                else {
                    continue;
                };
                // The delivery may wait for up to a second, so it reserves only its own size.
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
    for (connection, permission) in &permissions {
        if let (Permission::Free, Some(due)) = (permission, accounts.get(connection)) {
            dispatcher.lanes.mark_backlogged(*connection, due.account);
        }
    }
    send::pump(dispatcher);
}
