//! Declares exchanges and queues. Declaring an existing one with the same arguments does nothing.

use lapin::{
    Channel, ExchangeKind,
    options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable, ShortString},
};

use super::link::answer;
use crate::{
    Topology,
    topology::{DELIVERY_LIMIT, WorkQueue, dead_letter_queue},
    transport::Error,
};

/// Broadcast messages that the broker keeps for a reader that is behind; the oldest are dropped. Such a reader
/// also compares its state with the database.
const NEWS_LENGTH: i32 = 10_000;
/// Listing dead letters counts as a delivery, and since 4.0 a queue without a limit has a limit of 20.
const DEAD_LETTER_DELIVERY_LIMIT: i32 = 1_000_000;

pub(super) async fn exchange(channel: &Channel, topology: &Topology) -> Result<(), Error> {
    durable_exchange(channel, &topology.exchange, ExchangeKind::Topic).await
}

/// Declares a work queue and its dead-letter queue, both replicated.
pub(super) async fn work(
    channel: &Channel,
    topology: &Topology,
    queue: &WorkQueue,
) -> Result<(), Error> {
    exchange(channel, topology).await?;
    let dead_letters = &topology.dead_letter_exchange;
    durable_exchange(channel, dead_letters, ExchangeKind::Direct).await?;

    let dead = dead_letter_queue(&queue.name);
    let mut arguments = quorum(DEAD_LETTER_DELIVERY_LIMIT);
    durable_queue(channel, &dead, arguments).await?;
    bind(channel, &dead, dead_letters, &queue.name).await?;

    arguments = quorum(DELIVERY_LIMIT);
    arguments.insert("x-dead-letter-exchange".into(), text(dead_letters));
    arguments.insert("x-dead-letter-routing-key".into(), text(&queue.name));
    // Dead letters are moved with confirms. The broker supports this only if a full queue refuses publishers
    // instead of dropping old messages.
    arguments.insert("x-dead-letter-strategy".into(), text("at-least-once"));
    arguments.insert("x-overflow".into(), text("reject-publish"));
    durable_queue(channel, &queue.name, arguments).await?;
    for key in &queue.keys {
        bind(channel, &queue.name, &topology.exchange, key).await?;
    }
    Ok(())
}

/// Declares a queue for this connection only. Returns its name.
pub(super) async fn news(
    channel: &Channel,
    topology: &Topology,
    keys: &[String],
) -> Result<ShortString, Error> {
    exchange(channel, topology).await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(NEWS_LENGTH));
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    let queue = answer(channel.queue_declare("".into(), options, arguments)).await?;
    for key in keys {
        bind(channel, queue.name().as_str(), &topology.exchange, key).await?;
    }
    Ok(queue.name().clone())
}

/// Number of messages and consumers of a queue. Closes the channel if there is no such queue.
pub(super) async fn depth(channel: &Channel, queue: &str) -> Result<(u32, u32), Error> {
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let queue = answer(channel.queue_declare(queue.into(), options, FieldTable::default())).await?;
    Ok((queue.message_count(), queue.consumer_count()))
}

async fn durable_exchange(channel: &Channel, name: &str, kind: ExchangeKind) -> Result<(), Error> {
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    answer(channel.exchange_declare(name.into(), kind, options, FieldTable::default())).await
}

async fn durable_queue(channel: &Channel, name: &str, arguments: FieldTable) -> Result<(), Error> {
    let options = QueueDeclareOptions::durable();
    answer(channel.queue_declare(name.into(), options, arguments)).await?;
    Ok(())
}

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) -> Result<(), Error> {
    answer(channel.queue_bind(
        queue.into(),
        exchange.into(),
        key.into(),
        QueueBindOptions::default(),
        FieldTable::default(),
    ))
    .await
}

fn quorum(delivery_limit: i32) -> FieldTable {
    let mut arguments = FieldTable::default();
    arguments.insert("x-queue-type".into(), text("quorum"));
    arguments.insert(
        "x-delivery-limit".into(),
        AMQPValue::LongInt(delivery_limit),
    );
    arguments
}

fn text(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}
