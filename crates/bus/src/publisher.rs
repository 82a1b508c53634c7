//! Publishes events after the commit that made them true.
//!
//! [`EventPublisher::publish`] never waits: a task sends the events. While the bus is away they are dropped, because a
//! reader has found the work in the database before an old event could tell of it. So is what waits in a process that
//! dies.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use domain::Timestamp;
use events::{AnyEvent, Message, TraceContext};
use runtime::Backoff;
use tokio::{sync::Notify, time::timeout};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::{
    metrics,
    transport::{Bus, Outgoing},
};

/// Maximum number of events that wait to be sent, at a few hundred bytes each.
const CAPACITY: usize = 10_000;
/// An older event is dropped.
const MAX_AGE: Duration = Duration::from_secs(1);

/// Accepts events to publish. Clones share the same queue.
#[derive(Clone, Default)]
pub struct EventPublisher(Arc<Queue>);

#[derive(Default)]
struct Queue {
    waiting: Mutex<VecDeque<Outgoing>>,
    arrival: Notify,
}

impl EventPublisher {
    /// Publishes `event` with the trace of the current span. Call it after the commit.
    pub fn publish(&self, event: impl Into<AnyEvent>) {
        self.publish_all([event]);
    }

    /// Publishes many events at once, all with the trace of the current span.
    pub fn publish_all<E: Into<AnyEvent>>(&self, events: impl IntoIterator<Item = E>) {
        let trace = TraceContext::current();
        {
            let mut waiting = self.lock();
            for event in events {
                let message = Message::new(event);
                waiting.push_back(Outgoing {
                    create_time: message.create_time,
                    message: message.encode(),
                    trace: trace.clone(),
                });
                if waiting.len() > CAPACITY {
                    waiting.pop_front().iter().for_each(count_dropped);
                }
            }
        }
        self.0.arrival.notify_one();
    }

    /// Returns the routing keys of the events that wait to be sent, oldest first.
    pub fn waiting(&self) -> Vec<String> {
        let waiting = self.lock();
        waiting.iter().map(|one| one.message.key.clone()).collect()
    }

    /// Sends events until `shutdown`, and then those that wait.
    pub async fn run(&self, bus: &dyn Bus, shutdown: &CancellationToken) {
        let mut backoff = Backoff::reconnect();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.0.arrival.notified() => {}
            }
            if self.send(bus).await {
                backoff.reset();
            } else {
                tokio::select! {
                    () = shutdown.cancelled() => break,
                    () = backoff.wait() => {}
                }
            }
        }
        // A broker that is silent must not keep the process.
        let _ = timeout(MAX_AGE, self.send(bus)).await;
    }

    /// Sends the waiting events. Returns false if the bus did not take them; then they are dropped.
    async fn send(&self, bus: &dyn Bus) -> bool {
        let batch: Vec<Outgoing> = self.lock().drain(..).collect();
        let mut is_there = true;
        for mut event in batch {
            if !is_there || Timestamp::now().since(event.create_time) > MAX_AGE {
                count_dropped(&event);
                continue;
            }
            let span = span(bus, &event);
            let sent = TraceContext::of(&span);
            if !sent.is_empty() {
                event.trace = sent;
            }
            // The connection logs when the broker goes away.
            if bus.publish(&event).await.is_err() {
                span.record("otel.status_code", "ERROR");
                count_dropped(&event);
                is_there = false;
            }
        }
        is_there
    }

    /// A panic while the lock is held leaves no inconsistent state.
    fn lock(&self) -> MutexGuard<'_, VecDeque<Outgoing>> {
        let waiting = self.0.waiting.lock();
        waiting.unwrap_or_else(PoisonError::into_inner)
    }
}

fn count_dropped(event: &Outgoing) {
    metrics::DROPPED
        .with_label_values(&[event.message.key.as_str()])
        .inc();
}

fn span(bus: &dyn Bus, event: &Outgoing) -> Span {
    let destination = format!("{}:{}", bus.exchange(), event.message.key);
    let span = tracing::info_span!(
        parent: None,
        "publish",
        otel.name = format!("publish {destination}"),
        otel.kind = "producer",
        otel.status_code = tracing::field::Empty,
        messaging.system = bus.system(),
        messaging.operation.type = "send",
        messaging.destination.name = destination,
        messaging.message.id = %event.message.id,
    );
    event.trace.set_as_parent_of(&span);
    span
}
