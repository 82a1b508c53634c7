//! Alerts about events fire by their causes.

use bus::EventPublisher;
use runtime::Health;
use test_support::{Alert, eventually};
use tokio_util::sync::CancellationToken;

use crate::support::{rabbitmq_at, submitted, topology};

#[tokio::test(flavor = "multi_thread")]
async fn alert_fires_while_the_broker_is_away() {
    // Nothing listens there.
    let broker = rabbitmq_at("amqp://guest:guest@127.0.0.1:1/%2f", &topology());
    let events = EventPublisher::default();
    let own = events.clone();
    let sending = tokio::spawn(async move { own.run(&broker, &CancellationToken::new()).await });
    let drop_some = async || {
        events.publish_all((0..20).map(submitted));
        eventually("they are dropped", async || events.waiting().is_empty()).await;
    };
    // Prometheus sees no increase in a counter that begins with its first event.
    drop_some().await;
    let alert = Alert::of_service("EarshotEventsDropped", "manager-compiler", &Health::new()).await;
    drop_some().await;
    alert.repeats().fires().await;
    sending.abort();
}
