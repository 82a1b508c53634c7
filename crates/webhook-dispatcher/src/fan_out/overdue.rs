//! Fans out Scans whose events were lost, or do not come because the broker is away.
//!
//! Dispatchers share the work: each leases what it takes, and continues while there is more. Accounts take turns, so
//! that a Scan does not wait for the backlog of another account. A Scan that the database refuses is retried alone,
//! less and less often, and blocks no other. A Scan that was in hand when dispatchers died three times in a row is set
//! aside for a while.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use backbone::work;
use domain::ScanName;
use runtime::Periodic;
use store::{
    AsyncPgConnection,
    deliveries::Made,
    fair::{Round, Turns},
    keyed,
    scans::{self, Overdue},
    work::{Claim, Leased, Room, Setback, table},
};
use tokio_util::sync::CancellationToken;

use super::fan_out;
use crate::{Dispatcher, metrics};

const LOOK: Duration = Duration::from_millis(500);
/// How long an event may be in transit before the sweep fans out its Scan. A lost event costs this time and the
/// interval of the sweep.
const OVERDUE: Duration = Duration::from_millis(500);
const BATCH: u32 = 128;
const FIRST_RETRY: Duration = Duration::from_secs(2);
const MAX_RETRY: Duration = Duration::from_secs(60);
/// Number of refused Scans above which the cause cannot be a single Scan.
const MAX_REFUSED: usize = 1_000;

/// Scans that the database refused, with the time and delay of their next try.
#[derive(Default)]
struct Refused(HashMap<ScanName, (Instant, Duration)>);

impl Refused {
    fn due(&self, now: Instant) -> Vec<ScanName> {
        let due = self.0.iter().filter(|(_, (time, _))| *time <= now);
        due.map(|(scan, _)| *scan).collect()
    }

    /// Postpones a Scan, and returns the time until its next try.
    fn put_off(&mut self, scan: ScanName, now: Instant) -> Duration {
        if self.0.len() >= MAX_REFUSED && !self.0.contains_key(&scan) {
            self.0.clear();
        }
        let longer = |(_, wait): &(Instant, Duration)| (*wait * 2).min(MAX_RETRY);
        let wait = self.0.get(&scan).map_or(FIRST_RETRY, longer);
        self.0.insert(scan, (now + wait, wait));
        wait
    }
}

pub(crate) async fn sweep(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut refused = Refused::default();
    let mut rounds = Periodic::new(&shutdown);
    while rounds.after(LOOK).await {
        if dispatcher.backbone.is_suspended() {
            continue;
        }
        let swept = sweep_once(dispatcher, &mut refused, &shutdown).await;
        metrics::SCANS_REFUSED.set(i64::try_from(refused.0.len()).unwrap_or(i64::MAX));
        rounds.log_once("look for lost events", swept);
    }
}

async fn sweep_once(
    dispatcher: &Arc<Dispatcher>,
    refused: &mut Refused,
    shutdown: &CancellationToken,
) -> Result<(), store::Error> {
    for scan in refused.due(Instant::now()) {
        fan_out_alone(dispatcher, refused, scan).await?;
    }
    let (mut round, mut is_backlog) = (Round::default(), false);
    let mut swept = 0;
    while !shutdown.is_cancelled() {
        let (listed, taken) = take(dispatcher, refused, &mut round).await?;
        let mut more = listed >= BATCH as usize || taken.len() < listed;
        let done = fan_out_some(dispatcher, refused, &taken).await;
        release(dispatcher, &taken).await?;
        let done = done?;
        more |= done < taken.len();
        swept += done;
        // The others are in the hands of another dispatcher.
        is_backlog |= more && !taken.is_empty();
        if listed < BATCH as usize || taken.is_empty() {
            // All accounts had their turn.
            round.pause();
            if !std::mem::take(&mut is_backlog) {
                break;
            }
        }
    }
    if swept > 0 {
        tracing::info!(scans = swept, "events are late: fanned out without them");
    }
    Ok(())
}

/// Leases a batch. Returns how many Scans were due, and those that may be fanned out. At most one of these was in hand
/// when dispatchers died twice in a row; after three deaths, a Scan is set aside.
async fn take(
    dispatcher: &Dispatcher,
    refused: &Refused,
    round: &mut Round,
) -> Result<(usize, Vec<Leased<ScanName>>), store::Error> {
    let except: Vec<ScanName> = refused.0.keys().copied().collect();
    let backbone = &dispatcher.backbone;
    let overdue = Overdue {
        age: OVERDUE,
        except: &except,
        replica: backbone.replica,
        take_over: backbone.may_take_over(),
    };
    let mut conn = backbone.pool.get().await?;
    keyed::begin(&mut conn).await?;
    let leased = lease(&mut conn, &overdue, round).await;
    let (listed, leased) = keyed::end(&mut conn, leased).await?;
    let (mut taken, mut aside) = (Vec::new(), 0);
    for leased in leased {
        let Some(Setback { reason, retry_in }) = Setback::after_crashes(leased.crashes) else {
            taken.push(leased);
            continue;
        };
        aside += 1;
        let (kind, key) = (scans::FAN_OUT, &leased.key);
        table::set_aside(&mut conn, kind, key, overdue.replica, &reason, retry_in).await?;
        tracing::error!(scan.name = %leased.item, reason, ?retry_in, "work is set aside");
    }
    work::count_set_aside(scans::FAN_OUT, aside);
    Ok((listed, taken))
}

async fn lease(
    conn: &mut AsyncPgConnection,
    overdue: &Overdue<'_>,
    round: &mut Round,
) -> Result<(usize, Vec<Leased<ScanName>>), store::Error> {
    let due = scans::overdue(conn, overdue, round, BATCH).await?;
    let listed = due.len();
    // An account may hold fewer places than it leaves free, so a batch of one account needs twice as many.
    let places = 2 * BATCH as usize + 1;
    let mut claim = Claim {
        replica: overdue.replica,
        take_over: overdue.take_over,
        known: &[],
        room: &mut Room::new(places, places, places),
        turns: &mut Turns::default(),
    };
    let claimed = table::lease(conn, scans::FAN_OUT, due, &mut claim).await?;
    Ok((listed, claimed.items))
}

/// Fans out a batch in one transaction or, if the database refuses it, one by one. Returns the number of Scans that are
/// done.
async fn fan_out_some(
    dispatcher: &Arc<Dispatcher>,
    refused: &mut Refused,
    taken: &[Leased<ScanName>],
) -> Result<usize, store::Error> {
    if taken.is_empty() {
        return Ok(0);
    }
    let made: Vec<Made> = taken
        .iter()
        .map(|leased| Made::from(&leased.item))
        .collect();
    match fan_out(dispatcher, &made).await {
        Ok(surplus) => {
            let done = taken.len() - surplus.len();
            count_recovered(done);
            Ok(done)
        }
        Err(error) if error.may_blame_values() => {
            for leased in taken {
                fan_out_alone(dispatcher, refused, leased.item).await?;
            }
            Ok(taken.len())
        }
        Err(error) => Err(error),
    }
}

async fn release(dispatcher: &Dispatcher, taken: &[Leased<ScanName>]) -> Result<(), store::Error> {
    if taken.is_empty() {
        return Ok(());
    }
    let keys: Vec<&str> = taken.iter().map(|leased| leased.key.as_str()).collect();
    let mut conn = dispatcher.backbone.pool.get().await?;
    let replica = dispatcher.backbone.replica;
    table::release(&mut conn, scans::FAN_OUT, &keys, replica).await?;
    Ok(())
}

/// Fans out one Scan; postpones it if the database refuses it.
async fn fan_out_alone(
    dispatcher: &Arc<Dispatcher>,
    refused: &mut Refused,
    scan: ScanName,
) -> Result<(), store::Error> {
    match fan_out(dispatcher, &[Made::from(&scan)]).await {
        Ok(_) => {
            refused.0.remove(&scan);
            count_recovered(1);
        }
        Err(error) if error.may_blame_values() => {
            let wait = refused.put_off(scan, Instant::now());
            let error = format!("{:#}", anyhow::Error::from(error));
            tracing::error!(scan.name = %scan, error, retry_in = ?wait, "the database refuses its deliveries");
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

fn count_recovered(scans: usize) {
    metrics::RECOVERED
        .with_label_values(&["scan"])
        .inc_by(scans as u64);
}

#[cfg(test)]
mod tests {
    use domain::Id;

    use super::*;

    #[test]
    fn a_refused_scan_is_tried_less_and_less_often() {
        let scan = ScanName {
            namespace: Id::NIL,
            manager: Id::NIL,
            scan: Id::NIL,
        };
        let (mut refused, now) = (Refused::default(), Instant::now());
        let waits: Vec<u64> = (0..7)
            .map(|_| refused.put_off(scan, now).as_secs())
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(refused.due(now + Duration::from_secs(59)), []);
        assert_eq!(refused.due(now + Duration::from_secs(60)), [scan]);
    }
}
