//! Fans out Scans whose events were lost, or do not come because the broker is away.
//!
//! Dispatchers share the work: each leases what it takes, and continues while there is more. Accounts take turns, so
//! that a Scan does not wait for the backlog of another account. A Scan that the database refuses is retried alone,
//! less and less often, and blocks no other. A Scan that was in hand when dispatchers died three times in a row is set
//! aside for a while.

use std::{
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
use crate::{Dispatcher, metrics, refused::Refused};

const LOOK: Duration = Duration::from_millis(500);
/// How long an event may be in transit before the sweep fans out its Scan. A lost event costs this time and the
/// interval of the sweep.
const OVERDUE: Duration = Duration::from_millis(500);
const BATCH: u32 = 128;

pub(crate) async fn sweep(dispatcher: &Arc<Dispatcher>, shutdown: CancellationToken) {
    let mut refused = Refused::<ScanName>::default();
    let mut rounds = Periodic::new(&shutdown);
    while rounds.after(LOOK).await {
        if dispatcher.backbone.is_suspended() {
            continue;
        }
        let swept = sweep_once(dispatcher, &mut refused, &shutdown).await;
        metrics::SCANS_REFUSED.set(i64::try_from(refused.len()).unwrap_or(i64::MAX));
        rounds.log_once("look for lost events", swept);
    }
}

async fn sweep_once(
    dispatcher: &Arc<Dispatcher>,
    refused: &mut Refused<ScanName>,
    shutdown: &CancellationToken,
) -> Result<(), store::Error> {
    for scan in refused.due(Instant::now()) {
        if shutdown.is_cancelled() {
            break;
        }
        fan_out_alone(dispatcher, refused, scan).await?;
    }
    let (mut round, mut is_backlog) = (Round::default(), false);
    let mut swept = 0;
    while !shutdown.is_cancelled() {
        let (listed, taken) = take(dispatcher, refused, &mut round).await?;
        let mut more = listed >= BATCH as usize || taken.len() < listed;
        let done = fan_out_some(dispatcher, refused, &taken).await;
        release(dispatcher, &taken).await?;
        let Some(done) = done? else {
            // The next sweep goes on with others.
            break;
        };
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
    refused: &Refused<ScanName>,
    round: &mut Round,
) -> Result<(usize, Vec<Leased<ScanName>>), store::Error> {
    let except = refused.all();
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
/// done or postponed; `None` if the database refuses each of them.
async fn fan_out_some(
    dispatcher: &Arc<Dispatcher>,
    refused: &mut Refused<ScanName>,
    taken: &[Leased<ScanName>],
) -> Result<Option<usize>, store::Error> {
    if taken.is_empty() {
        return Ok(Some(0));
    }
    let made: Vec<Made> = taken
        .iter()
        .map(|leased| Made::from(&leased.item))
        .collect();
    match fan_out(dispatcher, &made).await {
        Ok(surplus) => {
            let done = taken.len() - surplus.len();
            count_recovered(done);
            Ok(Some(done))
        }
        Err(error) if error.may_blame_values() => {
            let mut any = false;
            for leased in taken {
                any |= fan_out_alone(dispatcher, refused, leased.item).await?;
            }
            Ok(any.then_some(taken.len()))
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

/// Fans out one Scan; postpones it, and returns false, if the database refuses it.
async fn fan_out_alone(
    dispatcher: &Arc<Dispatcher>,
    refused: &mut Refused<ScanName>,
    scan: ScanName,
) -> Result<bool, store::Error> {
    match fan_out(dispatcher, &[Made::from(&scan)]).await {
        Ok(_) => {
            refused.remove(scan);
            count_recovered(1);
            Ok(true)
        }
        Err(error) if error.may_blame_values() => {
            let wait = refused.put_off(scan, Instant::now());
            let error = format!("{:#}", anyhow::Error::from(error));
            tracing::error!(scan.name = %scan, error, retry_in = ?wait, "the database refuses its deliveries");
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn count_recovered(scans: usize) {
    metrics::RECOVERED
        .with_label_values(&["scan"])
        .inc_by(scans as u64);
}
