//! Creates the deliveries of Scans, many at a time.
//!
//! An event names a Scan that was committed just now. It reaches one dispatcher, which finds the Scan by its key: no
//! dispatcher has to search for new Scans, and none competes with another. Events that arrive while a transaction runs
//! share the next one. So no event waits for others, and many at once cost hardly more than one. Deliveries that may be
//! sent now are sent from memory, directly after the commit.
//!
//! Each event is tried once. A Scan without deliveries half a second after its creation is left to [`overdue`], which
//! finds it in the database: its event was lost, or its dispatcher died, or the database refused it.
//!
//! Only the filters of notices cost much for each Scan. So a transaction evaluates those of a few Scans of each
//! account. The others are queued again, behind the Scans that arrived meanwhile.

mod overdue;

use std::{collections::BTreeSet, panic::AssertUnwindSafe, sync::Arc};

use bus::Consumer;
use domain::{ScanName, error_chain};
use events::{ScanCreated, TraceContext};
use futures::FutureExt as _;
use store::{
    deliveries::{self, Made},
    keyed,
};
use tokio::{
    sync::{Mutex, mpsc},
    task::JoinSet,
};

use crate::{
    Dispatcher,
    lanes::{Place, Ready},
    send,
};

pub(crate) use overdue::sweep;

/// Scans of one transaction.
const BATCH: usize = 128;
/// One transaction is prepared while the other one commits.
const WORKERS: usize = 2;
/// Maximum number of events that wait for a worker. The Scans of others are left to [`overdue`], where accounts take
/// turns.
const WAITING: usize = 4 * BATCH;

pub(crate) struct FanOut {
    dispatcher: Arc<Dispatcher>,
    made: mpsc::Sender<Made>,
}

impl FanOut {
    /// Starts the workers. They end once the returned value is dropped and the queue is empty.
    pub(crate) fn start(dispatcher: &Arc<Dispatcher>) -> (Self, JoinSet<()>) {
        let (made, receiver) = mpsc::channel(WAITING);
        let receiver = Arc::new(Mutex::new(receiver));
        let mut workers = JoinSet::new();
        for _ in 0..WORKERS {
            let (dispatcher, receiver) = (Arc::clone(dispatcher), Arc::clone(&receiver));
            // The workers must not keep themselves running.
            let again = made.downgrade();
            workers.spawn(keep_working(receiver, again, move |batch| {
                let dispatcher = Arc::clone(&dispatcher);
                async move { work(&dispatcher, batch).await }
            }));
        }
        let dispatcher = Arc::clone(dispatcher);
        (Self { dispatcher, made }, workers)
    }
}

/// Works on batches until all senders are gone. `work` returns those of its batch that must be queued again.
async fn keep_working<W>(
    receiver: Arc<Mutex<mpsc::Receiver<Made>>>,
    again: mpsc::WeakSender<Made>,
    work: impl Fn(Vec<Made>) -> W,
) where
    W: Future<Output = Vec<Made>>,
{
    while let Some(batch) = next_batch(&receiver).await {
        // A batch that panics ends no worker.
        let worked = AssertUnwindSafe(work(batch)).catch_unwind().await;
        let surplus = worked.unwrap_or_else(|_| {
            tracing::error!("the fan-out of a batch panicked");
            Vec::new()
        });
        if let Some(again) = again.upgrade() {
            for made in surplus {
                let _ = again.try_send(made);
            }
        }
    }
}

impl Consumer for FanOut {
    const QUEUE: &'static str = bus::topology::SCAN_CREATED;
    type Event = ScanCreated;

    #[tracing::instrument(name = "fan out", skip_all, fields(scan.name = %event.name))]
    fn consume(&self, event: ScanCreated) {
        if self.dispatcher.backbone.is_suspended() {
            return;
        }
        let _ = self.made.try_send(Made {
            scan: event.name,
            traceparent: TraceContext::current().sampled().map(str::to_owned),
        });
    }
}

async fn next_batch(receiver: &Mutex<mpsc::Receiver<Made>>) -> Option<Vec<Made>> {
    let mut batch = Vec::new();
    receiver.lock().await.recv_many(&mut batch, BATCH).await;
    (!batch.is_empty()).then_some(batch)
}

/// Returns those of the batch that must be queued again.
async fn work(dispatcher: &Arc<Dispatcher>, batch: Vec<Made>) -> Vec<Made> {
    match fan_out(dispatcher, &batch).await {
        Ok(surplus) => {
            let again = batch.into_iter();
            again.filter(|made| surplus.contains(&made.scan)).collect()
        }
        Err(error) => {
            let error = error_chain(&error);
            tracing::debug!(scans = batch.len(), error, "fan-out failed");
            Vec::new()
        }
    }
}

/// Fans out Scans in one transaction. Deliveries that may be sent now are sent after its commit. Returns the Scans that
/// must be queued again.
async fn fan_out(
    dispatcher: &Arc<Dispatcher>,
    scans: &[Made],
) -> Result<BTreeSet<ScanName>, store::Error> {
    dispatcher.signals.scans_come();
    let mut conn = dispatcher.backbone.pool.get().await?;
    keyed::begin(&mut conn).await?;
    let fanned_out = insert(dispatcher, &mut conn, scans).await;
    let fanned_out = keyed::end(&mut conn, fanned_out).await?;
    drop(conn);
    Ok(send_on(dispatcher, fanned_out))
}

type Permitted = deliveries::FannedOut<Place>;

async fn insert(
    dispatcher: &Dispatcher,
    conn: &mut store::AsyncPgConnection,
    scans: &[Made],
) -> Result<Permitted, store::Error> {
    let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
    let admit = |connection, account, bytes| dispatcher.lanes.offer(connection, account, bytes);
    Ok(deliveries::fan_out(conn, sealer, scans, replica, admit).await?)
}

/// Sends the permitted deliveries. Returns the Scans that must be queued again.
fn send_on(dispatcher: &Arc<Dispatcher>, fanned_out: Permitted) -> BTreeSet<ScanName> {
    for (task, place) in fanned_out.tasks {
        let ready = Ready {
            in_hand: dispatcher.recorder.take_in_hand(task.delivery.delivery),
            task,
            probe: false,
        };
        if let Err(ready) = dispatcher.lanes.put(place, ready) {
            send::spawn_hand_back(dispatcher, vec![*ready]);
        }
    }
    send::pump(dispatcher);
    dispatcher.signals.add_due(dispatcher, fanned_out.waiting);
    fanned_out.surplus
}

#[cfg(test)]
mod tests {
    use domain::Id;

    use super::*;

    fn made() -> Made {
        let scan = ScanName {
            namespace: Id::generate(),
            manager: Id::generate(),
            scan: Id::generate(),
        };
        Made::from(&scan)
    }

    #[tokio::test]
    async fn worker_goes_on_after_a_batch_that_panics() {
        let (sender, receiver) = mpsc::channel(WAITING);
        let (begun, mut batches) = mpsc::unbounded_channel();
        let (deadly, other) = (made(), made());
        let is_deadly = deadly.scan;
        let work = move |batch: Vec<Made>| {
            let begun = begun.clone();
            async move {
                begun.send(batch[0].scan).unwrap();
                assert_ne!(batch[0].scan, is_deadly);
                Vec::new()
            }
        };
        let receiver = Arc::new(Mutex::new(receiver));
        let worker = tokio::spawn(keep_working(receiver, sender.downgrade(), work));
        for made in [deadly, other] {
            let scan = made.scan;
            sender.send(made).await.unwrap();
            assert_eq!(batches.recv().await, Some(scan));
        }
        drop(sender);
        worker.await.unwrap();
    }
}
