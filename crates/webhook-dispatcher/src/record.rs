//! Writes attempts down, many at a time.
//!
//! Results that come within 20 ms share one transaction of two statements. While the database is away
//! they are held and tried again: a request that was made is not forgotten, nor repeated for want of a
//! record, as long as the process lives.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use backbone::Backbone;
use domain::Id;
use runtime::Backoff;
use store::{
    AsyncConnection,
    deliveries::{self, AttemptResult},
};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::lanes;

const BATCH: usize = 256;
const FLUSH: Duration = Duration::from_millis(20);
/// Of the recorder's patience after the last sender is gone.
const LAST_TRIES: Duration = Duration::from_secs(5);

/// Takes results; never waits. What is unwritten is bounded by the lanes, which count it.
pub(crate) struct Recorder {
    results: mpsc::UnboundedSender<Unwritten>,
    in_hand: Arc<Hand>,
}

type Hand = Mutex<HashSet<Id>>;

/// That this process has a delivery: from its lease until its result is written, or until an attempt
/// ends without one. What is in hand is never freed, so nothing may stay there for ever.
pub(crate) struct InHand {
    delivery: Id,
    all: Arc<Hand>,
}

struct Unwritten {
    result: AttemptResult,
    held: Held,
}

/// Given back when the result is written.
type Held = (InHand, lanes::Unwritten);

impl Recorder {
    pub(crate) fn take_in_hand(&self, delivery: Id) -> InHand {
        lock(&self.in_hand).insert(delivery);
        InHand {
            delivery,
            all: Arc::clone(&self.in_hand),
        }
    }

    pub(crate) fn in_hand(&self) -> Vec<Id> {
        lock(&self.in_hand).iter().copied().collect()
    }

    pub(crate) fn record(&self, result: AttemptResult, held: Held) {
        // The receiver outlives every sender, unless it panicked; then the lease is freed in time.
        let _ = self.results.send(Unwritten { result, held });
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        lock(&self.all).remove(&self.delivery);
    }
}

fn lock(hand: &Hand) -> MutexGuard<'_, HashSet<Id>> {
    hand.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the recorder. The task ends when the [`Recorder`] is gone and everything is written.
pub(crate) fn start(backbone: Backbone) -> (Recorder, JoinHandle<()>) {
    let (results, receiver) = mpsc::unbounded_channel();
    let task = tokio::spawn(run(backbone, receiver));
    let recorder = Recorder {
        results,
        in_hand: Arc::default(),
    };
    (recorder, task)
}

async fn run(backbone: Backbone, mut results: mpsc::UnboundedReceiver<Unwritten>) {
    let mut batch = Vec::with_capacity(BATCH);
    let mut held = Vec::with_capacity(BATCH);
    while let Some(first) = results.recv().await {
        let mut take = |unwritten: Unwritten| {
            batch.push(unwritten.result);
            held.push(unwritten.held);
            batch.len()
        };
        let mut count = take(first);
        let flush = Instant::now() + FLUSH;
        while count < BATCH {
            match tokio::time::timeout_at(flush, results.recv()).await {
                Ok(Some(result)) => count = take(result),
                Ok(None) | Err(_) => break,
            }
        }
        write(&backbone, &batch, &results).await;
        batch.clear();
        held.clear();
    }
}

/// What is still to be written of a batch.
struct Part<'a> {
    results: &'a [AttemptResult],
    /// Without, only the deliveries are moved on.
    logged: bool,
}

/// Tries until the batch is written. A result that the database refuses must not hold up the others: a
/// batch that is refused is written one by one. Of what is refused then, the delivery is moved on
/// without its entry in the log: its request must not be repeated for want of a record.
async fn write(
    backbone: &Backbone,
    batch: &[AttemptResult],
    results: &mpsc::UnboundedReceiver<Unwritten>,
) {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
    let mut closing: Option<Instant> = None;
    let mut failed = false;
    let mut rest = vec![Part {
        results: batch,
        logged: true,
    }];
    while let Some(part) = rest.pop() {
        let Err(error) = write_once(backbone, &part).await else {
            if std::mem::replace(&mut failed, false) {
                tracing::info!("attempts are recorded again");
            }
            continue;
        };
        if error.is_refusal() {
            if let [refused] = part.results {
                let (delivery, error) = (refused.delivery, anyhow::Error::from(error));
                if part.logged {
                    tracing::error!(delivery.name = %delivery, "the database refuses the record of an attempt: {error:#}");
                    rest.push(Part {
                        logged: false,
                        ..part
                    });
                } else {
                    tracing::error!(delivery.name = %delivery, "the database refuses what becomes of a delivery, its request will be repeated: {error:#}");
                }
            } else {
                rest.extend(part.results.chunks(1).map(|results| Part {
                    results,
                    logged: part.logged,
                }));
            }
            continue;
        }
        if !std::mem::replace(&mut failed, true) {
            tracing::warn!(
                "cannot record attempts, holding them: {:#}",
                anyhow::Error::from(error)
            );
        }
        rest.push(part);
        if results.is_closed()
            && *closing.get_or_insert_with(|| Instant::now() + LAST_TRIES) <= Instant::now()
        {
            tracing::error!(
                attempts = rest.iter().map(|part| part.results.len()).sum::<usize>(),
                "attempts could not be recorded: their requests will be repeated"
            );
            return;
        }
        tokio::time::sleep(backoff.next()).await;
    }
}

async fn write_once(backbone: &Backbone, part: &Part<'_>) -> Result<(), store::Error> {
    let (replica, results) = (backbone.replica, part.results);
    let mut conn = backbone.pool.get().await?;
    if !part.logged {
        return Ok(deliveries::move_on(&mut conn, replica, results).await?);
    }
    conn.transaction(async |conn| deliveries::record_results(conn, replica, results).await)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use domain::Id;
    use tokio::sync::mpsc;

    use super::Recorder;

    #[tokio::test]
    async fn nothing_stays_in_hand_after_a_panic() {
        let (results, _receiver) = mpsc::unbounded_channel();
        let recorder = Recorder {
            results,
            in_hand: std::sync::Arc::default(),
        };
        let delivery = Id::generate();
        let in_hand = recorder.take_in_hand(delivery);
        assert_eq!(recorder.in_hand(), [delivery]);
        let attempt = tokio::spawn(async move {
            let _in_hand = in_hand;
            panic!("an attempt panics");
        });
        assert!(attempt.await.is_err());
        assert!(recorder.in_hand().is_empty());
    }
}
