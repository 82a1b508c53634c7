//! Records attempts, many at a time.
//!
//! Results that arrive within 20 ms share one transaction of a few statements, together with the record of their
//! Connections, which opens and closes circuit breakers. While the database is away, results are kept and retried.
//! As long as the process lives, no request is forgotten, or repeated because its record is missing. A result that
//! the database refuses permanently is put aside and blocks no other.

pub(crate) mod unwritten;
mod write;

use std::{sync::Weak, time::Duration};

use backbone::Backbone;
use domain::Id;
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

use crate::{
    Dispatcher,
    in_hand::{Hand, InHand},
};
use unwritten::{Held, Sent, Unwritten};
use write::{Parked, Writer};

const BATCH: usize = 512;
const FLUSH: Duration = Duration::from_millis(20);

/// Accepts results without waiting. The lanes count unwritten results and so limit them.
pub(crate) struct Recorder {
    results: mpsc::UnboundedSender<Unwritten>,
    in_hand: Hand,
}

impl Recorder {
    pub(crate) fn take_in_hand(&self, delivery: Id) -> InHand {
        self.in_hand.take(delivery)
    }

    pub(crate) fn in_hand(&self) -> Vec<Id> {
        self.in_hand.deliveries()
    }

    pub(crate) fn record(&self, sent: Sent, held: Held) {
        // The receiver outlives every sender, unless it panicked; then the lease is freed later.
        let _ = self.results.send(Unwritten { sent, held });
    }
}

/// Receiving half of the recorder, before it is started.
pub(crate) struct Recording(mpsc::UnboundedReceiver<Unwritten>);

pub(crate) fn new() -> (Recorder, Recording) {
    let (results, receiver) = mpsc::unbounded_channel();
    let recorder = Recorder {
        results,
        in_hand: Hand::default(),
    };
    (recorder, Recording(receiver))
}

impl Recording {
    /// Ends when the [`Recorder`] is dropped and everything is written.
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
