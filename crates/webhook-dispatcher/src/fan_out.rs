//! Turns events into deliveries, many at a time.
//!
//! Events that come while a transaction runs share the next one: nothing waits for company, and many at
//! once cost hardly more than one. What may go now goes after the commit, straight from memory.

mod overdue;

use std::sync::Arc;

use anyhow::anyhow;
use bus::{Consumer, Outcome};
use events::{ScanCreated, TraceContext};
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
/// One transaction is prepared while the other commits.
const WORKERS: usize = 2;

pub(crate) struct FanOut {
    asked: mpsc::UnboundedSender<Asked>,
}

/// A Scan, and who waits for its deliveries. As many as there are messages in hand.
struct Asked {
    made: Made,
    done: oneshot::Sender<Result<(), String>>,
}

impl FanOut {
    /// Works until the last clone is gone, in separate tasks.
    pub(crate) fn start(dispatcher: &Arc<Dispatcher>) -> Self {
        let (asked, receiver) = mpsc::unbounded_channel();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..WORKERS {
            let (dispatcher, receiver) = (Arc::clone(dispatcher), Arc::clone(&receiver));
            tokio::spawn(async move {
                while let Some(batch) = next_batch(&receiver).await {
                    work(&dispatcher, batch).await;
                }
            });
        }
        Self { asked }
    }
}

impl Consumer for FanOut {
    const QUEUE: &'static str = bus::topology::SCAN_CREATED;
    type Event = ScanCreated;

    #[tracing::instrument(name = "fan out", skip_all, fields(scan.name = %event.name))]
    async fn consume(&self, event: ScanCreated) -> Outcome {
        let (done, answer) = oneshot::channel();
        let made = Made {
            scan: event.name,
            traceparent: TraceContext::current().sampled().map(str::to_owned),
        };
        // The workers outlive every sender, unless they panicked.
        let _ = self.asked.send(Asked { made, done });
        match answer.await {
            Ok(Ok(())) => Outcome::Done,
            // Ours: a database that is away.
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

async fn work(dispatcher: &Arc<Dispatcher>, batch: Vec<Asked>) {
    let scans: Vec<Made> = batch.iter().map(|asked| asked.made.clone()).collect();
    let whole = fan_out(dispatcher, &scans).await;
    // One that the database refuses must not hold up the others.
    let alone =
        batch.len() > 1 && matches!(&whole, Err(store::Error::Query(error)) if !is_passing(error));
    for asked in batch {
        let result = if alone {
            fan_out(dispatcher, &[asked.made]).await.map_err(told)
        } else {
            whole.as_ref().copied().map_err(told)
        };
        // The waiting consumer may be gone; then the message comes again.
        let _ = asked.done.send(result);
    }
}

fn told(error: impl std::borrow::Borrow<store::Error>) -> String {
    let error = error.borrow();
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

/// One transaction of two statements; what may go now is sent after its commit.
async fn fan_out(dispatcher: &Arc<Dispatcher>, scans: &[Made]) -> Result<(), store::Error> {
    dispatcher.signals.scans_come();
    let mut conn = dispatcher.backbone.pool.get().await?;
    keyed::begin(&mut conn).await?;
    let fanned_out = insert(dispatcher, &mut conn, scans).await;
    let fanned_out = keyed::end(&mut conn, fanned_out).await?;
    drop(conn);
    send_on(dispatcher, fanned_out);
    Ok(())
}

type Permitted = deliveries::FannedOut<Place>;

async fn insert(
    dispatcher: &Dispatcher,
    conn: &mut store::AsyncPgConnection,
    scans: &[Made],
) -> Result<Permitted, store::Error> {
    let (sealer, replica) = (&dispatcher.sealer, dispatcher.backbone.replica);
    let admit = |connection, account| dispatcher.lanes.offer(connection, account);
    Ok(deliveries::fan_out(conn, sealer, scans, replica, admit).await?)
}

fn send_on(dispatcher: &Arc<Dispatcher>, fanned_out: Permitted) {
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
}
