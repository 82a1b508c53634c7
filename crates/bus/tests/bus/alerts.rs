//! Alerts about events fire by their causes.

use std::{sync::Arc, time::Duration};

use bus::{Bus, InProcess, Outcome, Outgoing, Relay};
use domain::Timestamp;
use events::{Message, TraceContext};
use runtime::Health;
use store::outbox;
use test_support::{Alert, TestDatabase, eventually};
use tokio_util::sync::CancellationToken;

use crate::support::{
    QUEUE, Running, outgoing, poison, publish, rabbitmq_at, start, submitted, topology,
};

async fn watch(name: &'static str) -> Alert {
    Alert::of_service(name, "manager-compiler", &Health::new()).await
}

/// A consumer whose queue was measured with it.
async fn measured(bus: &Arc<dyn Bus>) -> Running {
    let consumer = start(Arc::clone(bus), |_, _| Outcome::Done);
    let line = format!("earshot_queue_consumers{{queue=\"{QUEUE}\"}} 1");
    eventually("the consumer is counted", async || {
        let families = prometheus::gather();
        let text = prometheus::TextEncoder::new().encode_to_string(&families);
        text.unwrap().lines().any(|one| one == line)
    })
    .await;
    consumer
}

#[tokio::test(flavor = "multi_thread")]
async fn alert_fires_while_the_broker_is_away() {
    let database = TestDatabase::create().await;
    let alert = watch("EarshotOutboxStuck").await;
    // Nothing listens there.
    let broker = rabbitmq_at("amqp://guest:guest@127.0.0.1:1/%2f", &topology());
    let relay = Relay::new(database.pool(), Arc::new(broker));
    let running = tokio::spawn(relay.run(CancellationToken::new()));
    let mut conn = database.connect().await;
    outbox::enqueue(&mut conn, &submitted(1)).await.unwrap();
    database
        .run("UPDATE outbox SET create_time = create_time - interval '1 hour'")
        .await;
    alert.fires().await;
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn alerts_fire_for_a_queue_that_no_one_reads() {
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    let consumer = measured(&bus).await;
    let unread = watch("EarshotQueueWithoutConsumers").await;
    let growing = watch("EarshotQueueGrowing").await;
    consumer.suspended.send_replace(true);
    eventually("no one reads", async || {
        let depth = bus.depth(QUEUE).await;
        depth.is_ok_and(|depth| depth.consumers == 0)
    })
    .await;
    for generation in 0..1_100 {
        publish(bus.as_ref(), outgoing(submitted(generation))).await;
    }
    unread.fires().await;
    growing.repeats().fires().await;
    drop(consumer);
}

#[tokio::test(flavor = "multi_thread")]
async fn alert_fires_for_a_message_that_cannot_be_read() {
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    let consumer = measured(&bus).await;
    let alert = watch("EarshotDeadLetters").await;
    publish(bus.as_ref(), poison()).await;
    alert.fires().await;
    consumer.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn alert_fires_for_events_that_come_late() {
    let bus: Arc<dyn Bus> = Arc::new(InProcess::new());
    let mut consumer = measured(&bus).await;
    let alert = watch("EarshotEventLagHigh").await;
    let mut message = Message::new(submitted(1));
    message.create_time = Timestamp::now().minus(Duration::from_mins(1));
    let late = Outgoing {
        create_time: message.create_time,
        message: message.encode(),
        trace: TraceContext::default(),
    };
    publish(bus.as_ref(), late).await;
    consumer.next().await;
    alert.repeats().fires().await;
    consumer.stop().await;
}
