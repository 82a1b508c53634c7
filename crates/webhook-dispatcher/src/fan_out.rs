//! Turns events into deliveries, many at a time.
//!
//! Events that arrive while a transaction runs share the next one. So no event waits for others, and many at once
//! cost hardly more than one. Deliveries that may be sent now are sent from memory, directly after the commit.
//!
//! Only the filters of notices cost much for each Scan. So a transaction evaluates those of few Scans of an account;
//! the others come again after those that arrived meanwhile.
//!
//! An event that comes again, because its first reader died or lost the broker, is left to [`overdue`], which counts
//! the deaths of each Scan.

mod overdue;

use std::{collections::BTreeSet, panic::AssertUnwindSafe, sync::Arc};

use anyhow::anyhow;
use bus::{Consumer, Outcome};
use domain::{ScanName, error_chain};
use events::{ScanCreated, TraceContext};
use futures::FutureExt as _;
use store::{
    deliveries::{self, Made},
    is_passing, keyed,
};
use tokio::sync::{Mutex, mpsc, oneshot};

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

pub(crate) struct FanOut {
    asked: mpsc::UnboundedSender<Asked>,
}

/// A Scan, and the message that waits for its deliveries. There are as many as messages in hand.
struct Asked {
    made: Made,
    done: oneshot::Sender<Result<(), String>>,
}

impl FanOut {
    /// Starts the workers, which run in separate tasks until the last clone is dropped.
    pub(crate) fn start(dispatcher: &Arc<Dispatcher>) -> Self {
        let (asked, receiver) = mpsc::unbounded_channel();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..WORKERS {
            let (dispatcher, receiver) = (Arc::clone(dispatcher), Arc::clone(&receiver));
            // The workers must not keep themselves running.
            let again = asked.downgrade();
            tokio::spawn(keep_working(receiver, again, move |batch| {
                let dispatcher = Arc::clone(&dispatcher);
                async move { work(&dispatcher, batch).await }
            }));
        }
        Self { asked }
    }
}

/// Works on batches until all senders are gone. `work` returns those of its batch that must come again.
async fn keep_working<W>(
    receiver: Arc<Mutex<mpsc::UnboundedReceiver<Asked>>>,
    again: mpsc::WeakUnboundedSender<Asked>,
    work: impl Fn(Vec<Asked>) -> W,
) where
    W: Future<Output = Vec<Asked>>,
{
    while let Some(batch) = next_batch(&receiver).await {
        // A batch that panics is answered as interrupted, and ends no worker.
        let worked = AssertUnwindSafe(work(batch)).catch_unwind().await;
        let surplus = worked.unwrap_or_else(|_| {
            tracing::error!("the fan-out of a batch panicked");
            Vec::new()
        });
        if let Some(again) = again.upgrade() {
            for asked in surplus {
                let _ = again.send(asked);
            }
        }
    }
}

impl Consumer for FanOut {
    const QUEUE: &'static str = bus::topology::SCAN_CREATED;
    type Event = ScanCreated;
    const LEAVES_REPEATED: bool = true;

    #[tracing::instrument(name = "fan out", skip_all, fields(scan.name = %event.name))]
    async fn consume(&self, event: ScanCreated) -> Outcome {
        let (done, answer) = oneshot::channel();
        let made = Made {
            scan: event.name,
            traceparent: TraceContext::current().sampled().map(str::to_owned),
        };
        // The workers outlive every sender.
        let _ = self.asked.send(Asked { made, done });
        match answer.await {
            Ok(Ok(())) => Outcome::Done,
            // Our failure: the database is away.
            Ok(Err(error)) => Outcome::Retry(anyhow!(error)),
            Err(_) => Outcome::Retry(anyhow!("the fan-out was interrupted")),
        }
    }
}

async fn next_batch(receiver: &Mutex<mpsc::UnboundedReceiver<Asked>>) -> Option<Vec<Asked>> {
    let mut receiver = receiver.lock().await;
    let mut batch = vec![receiver.recv().await?];
    while batch.len() < BATCH {
        match receiver.try_recv() {
            Ok(asked) => batch.push(asked),
            Err(_) => break,
        }
    }
    Some(batch)
}

/// Returns those of the batch that must come again.
async fn work(dispatcher: &Arc<Dispatcher>, batch: Vec<Asked>) -> Vec<Asked> {
    let mut again = Vec::new();
    let scans: Vec<Made> = batch.iter().map(|asked| asked.made.clone()).collect();
    let whole = fan_out(dispatcher, &scans).await;
    // One Scan that the database refuses must not block the others.
    let alone =
        batch.len() > 1 && matches!(&whole, Err(store::Error::Query(error)) if !is_passing(error));
    for asked in batch {
        let result = if alone {
            let single = fan_out(dispatcher, &[asked.made]).await;
            single.map(drop).map_err(|error| error_chain(&error))
        } else {
            match &whole {
                Ok(surplus) if surplus.contains(&asked.made.scan) => {
                    again.push(asked);
                    continue;
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error_chain(error)),
            }
        };
        // The waiting consumer may be gone; then the message is delivered again.
        let _ = asked.done.send(result);
    }
    again
}

/// One transaction. Deliveries that may be sent now are sent after its commit. Returns the Scans that must come again.
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

/// Returns the Scans that must come again.
fn send_on(dispatcher: &Arc<Dispatcher>, fanned_out: Permitted) -> BTreeSet<ScanName> {
    for (task, place) in fanned_out.tasks {
        let ready = Ready {
            in_hand: dispatcher.recorder.take_in_hand(task.delivery.delivery),
            task,
            probe: false,
        };
        if let Err(ready) = dispatcher.lanes.put(place, ready) {
            send::give_back(dispatcher, vec![*ready]);
        }
    }
    send::pump(dispatcher);
    dispatcher.signals.waits(dispatcher, fanned_out.waiting);
    fanned_out.surplus
}

#[cfg(test)]
mod tests {
    use domain::Id;

    use super::*;

    fn asked() -> (Asked, oneshot::Receiver<Result<(), String>>) {
        let (done, answer) = oneshot::channel();
        let made = Made {
            scan: ScanName {
                namespace: Id::generate(),
                manager: Id::generate(),
                scan: Id::generate(),
            },
            traceparent: None,
        };
        (Asked { made, done }, answer)
    }

    #[tokio::test]
    async fn worker_goes_on_after_a_batch_that_panics() {
        let (sender, receiver) = mpsc::unbounded_channel();
        let (deadly, answer) = asked();
        let is_deadly = deadly.made.scan;
        let work = move |batch: Vec<Asked>| async move {
            assert_ne!(batch[0].made.scan, is_deadly);
            for asked in batch {
                let _ = asked.done.send(Ok(()));
            }
            Vec::new()
        };
        let receiver = Arc::new(Mutex::new(receiver));
        let worker = tokio::spawn(keep_working(receiver, sender.downgrade(), work));
        sender.send(deadly).unwrap();
        assert!(answer.await.is_err());
        let (other, answer) = asked();
        sender.send(other).unwrap();
        assert_eq!(answer.await, Ok(Ok(())));
        drop(sender);
        worker.await.unwrap();
    }
}
