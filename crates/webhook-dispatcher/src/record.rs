//! Writes attempts down, many at a time.
//!
//! Results that come within 20 ms share one transaction of a few statements, with the record of their
//! Connections, which opens and closes breakers. While the database is away they are held
//! and tried again: a request that was made is not forgotten, nor repeated for want of a record, as long as
//! the process lives. One that the database refuses permanently is put aside and holds up no other.

mod write;

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use backbone::Backbone;
use domain::{Id, Timestamp};
use store::deliveries::AttemptResult;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::{Dispatcher, breaker::Outcome, lanes};
use write::{Parked, Writer};

const BATCH: usize = 512;
const FLUSH: Duration = Duration::from_millis(20);

/// Takes results; never waits. What is unwritten is bounded by the lanes, which count it.
pub(crate) struct Recorder {
    results: mpsc::UnboundedSender<Unwritten>,
    in_hand: Arc<Hand>,
}

type Hand = Mutex<HashSet<Id>>;

/// Mark that this process has a delivery: from its lease until its result is written, or until an attempt
/// ends without one. What is in hand is never freed, so nothing may stay there for ever.
pub(crate) struct InHand {
    delivery: Id,
    all: Arc<Hand>,
}

/// The end of an attempt.
pub(crate) struct Sent {
    pub(crate) result: AttemptResult,
    /// Outcome for the endpoint of the Connection as it was last changed at this time; `None` if no request
    /// could be made.
    pub(crate) outcome: Option<(Outcome, Timestamp)>,
}

struct Unwritten {
    sent: Sent,
    #[expect(
        dead_code,
        reason = "given back when it is dropped, after the result is written"
    )]
    held: Held,
}

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

    pub(crate) fn record(&self, sent: Sent, held: Held) {
        // The receiver outlives every sender, unless it panicked; then the lease is freed in time.
        let _ = self.results.send(Unwritten { sent, held });
    }
}

impl InHand {
    #[cfg(test)]
    pub(crate) fn of_nobody(delivery: Id) -> Self {
        Self {
            delivery,
            all: Arc::default(),
        }
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

/// Receiving half of the recorder before its start.
pub(crate) struct Recording(mpsc::UnboundedReceiver<Unwritten>);

pub(crate) fn new() -> (Recorder, Recording) {
    let (results, receiver) = mpsc::unbounded_channel();
    let recorder = Recorder {
        results,
        in_hand: Arc::default(),
    };
    (recorder, Recording(receiver))
}

impl Recording {
    /// Ends when the [`Recorder`] is gone and everything is written.
    pub(crate) fn start(self, backbone: Backbone, dispatcher: Weak<Dispatcher>) -> JoinHandle<()> {
        tokio::spawn(run(Writer::new(backbone, dispatcher), self.0))
    }
}

async fn run(mut writer: Writer, mut results: mpsc::UnboundedReceiver<Unwritten>) {
    let mut parked: Vec<Parked> = Vec::new();
    loop {
        let retry = parked.iter().map(Parked::due).min();
        let first = tokio::select! {
            first = results.recv() => first,
            () = sleep_until(retry) => {
                writer.retry(&mut parked).await;
                writer.resume();
                continue;
            }
        };
        let Some(first) = first else {
            break;
        };
        let mut batch = vec![first];
        let flush = Instant::now() + FLUSH;
        while batch.len() < BATCH {
            match tokio::time::timeout_at(flush, results.recv()).await {
                Ok(Some(result)) => batch.push(result),
                Ok(None) | Err(_) => break,
            }
        }
        writer.write(batch, &results, &mut parked).await;
        writer.resume();
    }
    writer.last(parked).await;
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use domain::Id;

    #[tokio::test]
    async fn nothing_stays_in_hand_after_a_panic() {
        let (recorder, _recording) = super::new();
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
