//! Passes the events of a queue to a service, which then looks for the work that they tell of.

use std::sync::Arc;

use domain::Timestamp;
use events::{EventSet, Message};
use runtime::Check;
use tokio_util::sync::CancellationToken;

use crate::{
    metrics,
    transport::{Bus, Delivery, Received},
};

/// A reader of the events of one queue. Each event reaches one replica. The work itself is in the database.
pub trait Consumer: Send + Sync + 'static {
    /// Name of the queue.
    const QUEUE: &'static str;
    type Event: EventSet;

    /// Takes note of an event. It must not wait: the events behind it would pile up in memory.
    fn consume(&self, event: Self::Event);
}

/// Passes events to `consumer` until `shutdown`, and reports in `check` whether they arrive. If not, the service is only
/// degraded, because it also looks for work itself.
pub async fn consume<C: Consumer>(
    bus: Arc<dyn Bus>,
    consumer: Arc<C>,
    check: Option<Check>,
    shutdown: CancellationToken,
) {
    let mut subscription = bus.work(C::QUEUE, C::Event::KEYS);
    let reading = async {
        loop {
            match subscription.next().await {
                Received::Connected => check.iter().for_each(Check::ok),
                Received::Lost => check
                    .iter()
                    .for_each(|check| check.degraded("not subscribed")),
                Received::Delivery(delivery) => handle(&*bus, &*consumer, &delivery),
            }
        }
    };
    tokio::select! {
        () = shutdown.cancelled() => {}
        () = reading => {}
    }
}

fn handle<C: Consumer>(bus: &dyn Bus, consumer: &C, delivery: &Delivery) {
    let decoded = Message::decode(&delivery.payload);
    let error_type = if decoded.is_ok() { "" } else { "unreadable" };
    metrics::CONSUMED
        .with_label_values(&[C::QUEUE, "receive", error_type])
        .inc();
    let message = match decoded {
        Ok(message) => message,
        Err(error) => {
            tracing::warn!(queue = C::QUEUE, "unreadable event: {error}");
            return;
        }
    };
    let (id, key) = (message.id, message.event.key());
    metrics::EVENT_LAG
        .with_label_values(&[key])
        .observe(Timestamp::now().since(message.create_time).as_secs_f64());
    let Some(event) = C::Event::from_any(message.event) else {
        tracing::warn!(queue = C::QUEUE, "`{key}` is not an event for this queue");
        return;
    };
    let destination = format!("{}:{key}:{}", bus.exchange(), C::QUEUE);
    let span = tracing::info_span!(
        "process",
        otel.name = format!("process {destination}"),
        otel.kind = "consumer",
        messaging.system = bus.system(),
        messaging.operation.type = "process",
        messaging.destination.name = destination,
        messaging.message.id = %id,
    );
    delivery.trace.set_as_parent_of(&span);
    span.in_scope(|| consumer.consume(event));
}
