//! Declares the exchange and queues. Declaring an existing one with the same arguments does nothing.

use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};

use super::link::answer;
use crate::{Topology, transport::Error};

/// Messages that the broker keeps for readers that are behind; the oldest are dropped. Such a reader also looks into the
/// database.
const QUEUE_LENGTH: i32 = 10_000;

pub(super) async fn exchange(channel: &Channel, topology: &Topology) -> Result<(), Error> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    answer(channel.exchange_declare(
        topology.exchange.as_str().into(),
        ExchangeKind::Topic,
        options,
        FieldTable::default(),
    ))
    .await
}

/// Declares a queue that replicas share, and returns its name. RabbitMQ deletes it when the last replica is gone.
///
/// The queue is durable, although its messages are not: RabbitMQ is going to refuse shared queues that are not durable.
pub(super) async fn work(
    channel: &Channel,
    topology: &Topology,
    queue: &str,
    keys: &[String],
) -> Result<ShortString, Error> {
    let mut arguments = bounded();
    // The default of the virtual host may be a type that cannot be deleted by itself.
    let classic = AMQPValue::LongString("classic".into());
    arguments.insert("x-queue-type".into(), classic);
    let options = QueueDeclareOptions {
        durable: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    bound(channel, topology, queue, options, arguments, keys).await
}

/// Declares a queue for this connection only. Returns its name.
pub(super) async fn news(
    channel: &Channel,
    topology: &Topology,
    keys: &[String],
) -> Result<ShortString, Error> {
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    bound(channel, topology, "", options, bounded(), keys).await
}

async fn bound(
    channel: &Channel,
    topology: &Topology,
    name: &str,
    options: QueueDeclareOptions,
    arguments: FieldTable,
    keys: &[String],
) -> Result<ShortString, Error> {
    exchange(channel, topology).await?;
    let queue = answer(channel.queue_declare(name.into(), options, arguments)).await?;
    for key in keys {
        answer(channel.queue_bind(
            queue.name().as_str().into(),
            topology.exchange.as_str().into(),
            key.as_str().into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        ))
        .await?;
    }
    Ok(queue.name().clone())
}

fn bounded() -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(QUEUE_LENGTH));
    arguments
}
