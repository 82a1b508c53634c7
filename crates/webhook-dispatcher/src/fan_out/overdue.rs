//! Fans out Scans whose events were lost, or wait for a broker that is away.
//!
//! Dispatchers share the work: each locks what it takes, and continues while there is more. Accounts take turns, so
//! that a Scan does not wait for the backlog of another account, whether it is in the broker or here. A Scan that the
//! database refuses is retried alone, less and less often, and blocks no other.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use domain::ScanName;
use runtime::Periodic;
use store::{deliveries::Made, fair::Round, keyed, scans};
use tokio_util::sync::CancellationToken;

use super::{fan_out, insert, send_on};
use crate::{Dispatcher, metrics};

const LOOK: Duration = Duration::from_millis(500);
/// How long an event may be in transit before the sweep fans out its Scan. So the queue's backlog of one account delays
/// the others hardly longer.
const OVERDUE: Duration = Duration::from_secs(1);
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
        let swept = sweep_once(dispatcher, &mut refused, &shutdown).await;
        metrics::SCANS_REFUSED.set(i64::try_from(refused.0.len()).unwrap_or(i64::MAX));
        rounds.note("look for lost events", swept);
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
        let (taken, fanned_out) = fan_out_some(dispatcher, refused, &mut round).await;
        let mut more = taken.len() >= BATCH as usize;
        match fanned_out {
            Ok(surplus) => {
                more |= !surplus.is_empty();
                let count = taken.len() - surplus.len();
                count_recovered(count);
                swept += count;
            }
            Err(error) if error.may_blame_values() => {
                for scan in &taken {
                    fan_out_alone(dispatcher, refused, scan.scan).await?;
                }
                swept += taken.len();
            }
            Err(error) => return Err(error),
        }
        is_backlog |= more;
        if taken.len() < BATCH as usize {
            // All accounts had their turn.
            round.rest();
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

/// Locks and fans out a batch in one transaction. Returns the batch even if the database refuses it, and those of it
/// that must come again.
async fn fan_out_some(
    dispatcher: &Arc<Dispatcher>,
    refused: &Refused,
    round: &mut Round,
) -> (Vec<Made>, Result<BTreeSet<ScanName>, store::Error>) {
    let except: Vec<ScanName> = refused.0.keys().copied().collect();
    let mut taken: Vec<Made> = Vec::new();
    let fanned_out = async {
        let mut conn = dispatcher.backbone.pool.get().await?;
        keyed::begin(&mut conn).await?;
        let fanned_out = async {
            let overdue = scans::take_overdue(&mut conn, OVERDUE, &except, round, BATCH).await?;
            taken = overdue.iter().map(Made::from).collect();
            if taken.is_empty() {
                return Ok(None);
            }
            dispatcher.signals.scans_come();
            insert(dispatcher, &mut conn, &taken).await.map(Some)
        };
        let fanned_out = fanned_out.await;
        let fanned_out = keyed::end(&mut conn, fanned_out).await?;
        drop(conn);
        Ok(fanned_out.map_or_else(BTreeSet::new, |fanned_out| send_on(dispatcher, fanned_out)))
    };
    let fanned_out = fanned_out.await;
    (taken, fanned_out)
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
