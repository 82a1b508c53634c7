//! The consumer loop: runs a service's code for each message of its queue.
//!
//! A [`Consumer`] decides and returns an [`Outcome`]; the loop does the rest. It acknowledges after the message
//! is handled, so if a process dies, its messages are delivered again. `Retry` holds the message and waits, as
//! long as it takes, without a count against the message. `Reject` and panics are retried a few times; then the
//! message is set aside as a dead letter, with the reason.
//!
//! Up to `concurrency` messages are handled at a time, including held ones. So while the database is away the
//! consumer soon takes no more messages from the queue. On shutdown it takes no more messages, finishes those
//! that are running, and returns those that wait.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use domain::Timestamp;
use events::{EventSet, Message};
use futures::FutureExt;
use runtime::{Backoff, Check};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use crate::{
    metrics,
    transport::{Bus, Delivery, Received},
};

/// Handles the events of one queue. Handling an event twice must have the same effect as handling it once.
pub trait Consumer: Send + Sync + 'static {
    /// Name of the queue: the reader and the event, for example `webhook-dispatcher.scan-created`.
    const QUEUE: &'static str;
    type Event: EventSet + Clone;
    /// True if a message that was delivered before is acknowledged and left to what finds lost events. It may have
    /// been what ended its first reader.
    const LEAVES_REPEATED: bool = false;

    fn consume(&self, event: Self::Event) -> impl Future<Output = Outcome> + Send;
}

/// Result of handling an event.
#[derive(Debug)]
pub enum Outcome {
    /// Handled, or nothing to do.
    Done,
    /// A failure on our side, such as an unavailable database: hold the event until the failure has passed.
    Retry(anyhow::Error),
    /// The event itself is at fault, as far as the consumer knows.
    Reject(anyhow::Error),
}

/// Settings of a consumer.
#[derive(Debug, Clone)]
pub struct ConsumeOptions {
    /// Maximum number of messages handled at a time. Each costs its processing and its bytes.
    pub concurrency: u16,
    /// Failures with the same text before a message is set aside; with different texts, three times as many.
    pub attempts: u32,
    /// Longest time to hold a message before it is put back as a new one. Must be well below the broker's
    /// timeout for consumers, 30 minutes: messages that the broker takes back count as failed deliveries.
    pub max_hold: Duration,
    /// Longest wait between attempts on a held message.
    pub max_backoff: Duration,
    /// Health check that reports whether messages flow.
    pub check: Option<Check>,
    /// No messages are taken while this is true.
    pub suspended: Option<watch::Receiver<bool>>,
}

impl Default for ConsumeOptions {
    fn default() -> Self {
        Self {
            concurrency: 16,
            attempts: 3,
            max_hold: Duration::from_secs(10 * 60),
            max_backoff: Duration::from_secs(30),
            check: None,
            suspended: None,
        }
    }
}

/// Interval of reading the queue's depth.
const DEPTH_INTERVAL: Duration = Duration::from_secs(15);
const FIRST_BACKOFF: Duration = Duration::from_millis(200);

/// Runs `consumer` on its queue until `shutdown`, then finishes what it has begun. To stop waiting, drop the
/// future: its messages are delivered again, to another replica.
pub async fn consume<C: Consumer>(
    bus: Arc<dyn Bus>,
    consumer: Arc<C>,
    options: ConsumeOptions,
    shutdown: CancellationToken,
) {
    let mut subscription = bus.work(C::QUEUE, C::Event::KEYS, options.concurrency);
    let hands = Arc::new(Semaphore::new(options.concurrency.into()));
    let mut tasks = JoinSet::new();
    let mut watch = JoinSet::new();
    watch.spawn(watch_depth(Arc::clone(&bus), C::QUEUE));
    let mut suspended = options.suspended.clone();

    loop {
        let hand = tokio::select! {
            () = shutdown.cancelled() => break,
            hand = Arc::clone(&hands).acquire_owned() => hand,
        };
        while tasks.try_join_next().is_some() {}
        let delivery = tokio::select! {
            () = shutdown.cancelled() => break,
            () = changed(&mut suspended, true) => {
                // Its messages go to other replicas; those in hand may be handled twice.
                drop(subscription);
                let check = options.check.iter();
                check.for_each(|check| check.unavailable("suspended"));
                let ended = shutdown.run_until_cancelled(changed(&mut suspended, false));
                if ended.await.is_none() {
                    while tasks.join_next().await.is_some() {}
                    return;
                }
                subscription = bus.work(C::QUEUE, C::Event::KEYS, options.concurrency);
                continue;
            },
            received = subscription.next() => match received {
                Received::Connected => {
                    options.check.iter().for_each(Check::ok);
                    continue;
                }
                Received::Lost => {
                    let check = options.check.iter();
                    check.for_each(|check| check.unavailable("not subscribed"));
                    continue;
                }
                Received::Delivery(delivery) => delivery,
            },
        };
        let handling = Handling {
            bus: Arc::clone(&bus),
            consumer: Arc::clone(&consumer),
            options: options.clone(),
            shutdown: shutdown.clone(),
        };
        tasks.spawn(async move {
            let _hand = hand;
            handling.run(delivery).await;
        });
    }

    subscription.stop().await;
    while tasks.join_next().await.is_some() {}
}

/// Waits until `suspended` is `wanted`. What cannot be suspended never is.
async fn changed(suspended: &mut Option<watch::Receiver<bool>>, wanted: bool) {
    if let Some(suspended) = suspended
        && suspended.wait_for(|now| *now == wanted).await.is_ok()
    {
        return;
    }
    if wanted {
        std::future::pending().await
    }
}

async fn watch_depth(bus: Arc<dyn Bus>, queue: &'static str) {
    let mut interval = tokio::time::interval(DEPTH_INTERVAL);
    loop {
        interval.tick().await;
        if let Ok(depth) = bus.depth(queue).await {
            let label = [queue];
            metrics::QUEUE_READY
                .with_label_values(&label)
                .set(depth.ready.into());
            metrics::QUEUE_CONSUMERS
                .with_label_values(&label)
                .set(depth.consumers.into());
            metrics::QUEUE_DEAD_LETTERS
                .with_label_values(&label)
                .set(depth.dead_letters.into());
        }
    }
}

/// One message and its processing.
struct Handling<C> {
    bus: Arc<dyn Bus>,
    consumer: Arc<C>,
    options: ConsumeOptions,
    shutdown: CancellationToken,
}

/// Result of one attempt.
enum Attempt {
    Done,
    Held(anyhow::Error),
    Failed {
        reason: &'static str,
        error: anyhow::Error,
    },
}

impl<C: Consumer> Handling<C> {
    async fn run(self, delivery: Delivery) {
        metrics::CONSUMED
            .with_label_values(&[C::QUEUE, "receive", ""])
            .inc();
        if delivery.redelivered {
            metrics::REDELIVERED.with_label_values(&[C::QUEUE]).inc();
            if C::LEAVES_REPEATED {
                return report(delivery.settle.ack().await, "acknowledge");
            }
        }

        let message = match Message::decode(&delivery.payload) {
            Ok(message) => message,
            Err(error) => {
                return self.set_aside(&delivery, "unreadable", &error.into()).await;
            }
        };
        let key = message.event.key();
        let (id, create_time) = (message.id, message.create_time);
        let Some(event) = C::Event::from_any(message.event) else {
            let error = anyhow::anyhow!("`{key}` is not an event for this queue");
            return self.set_aside(&delivery, "unreadable", &error).await;
        };

        let exchange = self.bus.exchange();
        let span = tracing::info_span!(
            "process",
            otel.name = format!("process {exchange}:{key}:{}", C::QUEUE),
            otel.kind = "consumer",
            otel.status_code = tracing::field::Empty,
            messaging.system = self.bus.system(),
            messaging.operation.type = "process",
            messaging.destination.name = format!("{exchange}:{key}:{}", C::QUEUE),
            messaging.message.id = %id,
            messaging.rabbitmq.message.delivery_tag = delivery.tag,
            messaging.redelivered = delivery.redelivered,
        );
        delivery.trace.set_as_parent_of(&span);
        if self.handle(&delivery, event).instrument(span).await {
            metrics::EVENT_LAG
                .with_label_values(&[key])
                .observe(Timestamp::now().since(create_time).as_secs_f64());
        }
    }

    /// Retries until the message is settled. Returns true if it was handled.
    async fn handle(&self, delivery: &Delivery, event: C::Event) -> bool {
        let begin = Instant::now();
        let mut backoff = Backoff::new(FIRST_BACKOFF, self.options.max_backoff);
        let mut failures = Failures::default();
        let mut held = false;
        loop {
            match self.attempt(event.clone()).await {
                Attempt::Done => {
                    if held {
                        tracing::info!(queue = C::QUEUE, "handled a held message");
                    }
                    report(delivery.settle.ack().await, "acknowledge");
                    return true;
                }
                Attempt::Held(error) => {
                    if !std::mem::replace(&mut held, true) {
                        let error = format!("{error:#}");
                        tracing::warn!(queue = C::QUEUE, error, "holding a message");
                    }
                }
                Attempt::Failed { reason, error } => {
                    Span::current().record("otel.status_code", "ERROR");
                    let count = failures.add(format!("{error:#}"));
                    if count >= self.options.attempts
                        || failures.total >= self.options.attempts.saturating_mul(3)
                    {
                        self.set_aside(delivery, reason, &error).await;
                        return false;
                    }
                    let error = format!("{error:#}");
                    tracing::warn!(queue = C::QUEUE, error, "a message failed, trying again");
                }
            }
            if begin.elapsed() >= self.options.max_hold {
                let renewed = delivery.settle.renew().await;
                if renewed.is_err() {
                    // A held message would occupy the prefetch until the broker's timeout.
                    report(delivery.settle.requeue().await, "hand back");
                }
                report(renewed, "put back");
                return false;
            }
            tokio::select! {
                () = self.shutdown.cancelled() => {
                    report(delivery.settle.requeue().await, "hand back");
                    return false;
                }
                () = backoff.wait() => {}
            }
            if delivery.settle.is_lost() {
                // The broker delivers it again; two copies would block each other.
                return false;
            }
        }
    }

    async fn attempt(&self, event: C::Event) -> Attempt {
        let begin = Instant::now();
        let result = AssertUnwindSafe(self.consumer.consume(event))
            .catch_unwind()
            .await;
        let (attempt, error_type) = match result {
            Ok(Outcome::Done) => (Attempt::Done, ""),
            Ok(Outcome::Retry(error)) => (Attempt::Held(error), "retry"),
            Ok(Outcome::Reject(error)) => {
                let reason = "rejected";
                (Attempt::Failed { reason, error }, reason)
            }
            Err(panic) => {
                let reason = "panicked";
                let error = anyhow::anyhow!("panicked: {}", panic_text(panic.as_ref()));
                (Attempt::Failed { reason, error }, reason)
            }
        };
        metrics::PROCESS_DURATION
            .with_label_values(&[C::QUEUE, "process", error_type])
            .observe(begin.elapsed().as_secs_f64());
        attempt
    }

    async fn set_aside(&self, delivery: &Delivery, reason: &'static str, error: &anyhow::Error) {
        let error = format!("{error:#}");
        tracing::error!(
            queue = C::QUEUE,
            reason,
            error,
            "a message is a dead letter"
        );
        metrics::DEAD_LETTERED
            .with_label_values(&[C::QUEUE, reason])
            .inc();
        let reason = format!("{reason}: {error}");
        let mut backoff = Backoff::reconnect();
        while let Err(error) = delivery.settle.dead_letter(&reason).await {
            report(Err(error), "set aside");
            tokio::select! {
                () = self.shutdown.cancelled() => {
                    return report(delivery.settle.requeue().await, "hand back");
                }
                () = backoff.wait() => {}
            }
            if delivery.settle.is_lost() {
                return;
            }
        }
    }
}

/// Failures of one message: how many consecutive ones have the same text, and how many there were.
#[derive(Default)]
struct Failures {
    last: String,
    same: u32,
    total: u32,
}

impl Failures {
    fn add(&mut self, text: String) -> u32 {
        self.same = if self.last == text { self.same + 1 } else { 1 };
        self.total += 1;
        self.last = text;
        self.same
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}

fn report(result: Result<(), crate::Error>, action: &str) {
    if let Err(error) = result {
        let error = anyhow::Error::from(error);
        tracing::debug!(action, "cannot settle a message: {error:#}");
    }
}
