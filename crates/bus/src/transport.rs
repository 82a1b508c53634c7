//! The interface of a bus for the relay and the consumer loop, independent of the transport.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::Timestamp;
use events::{Encoded, TraceContext};

/// Carries messages from publishers to subscribers.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// The `messaging.system` of traces.
    fn system(&self) -> &'static str;

    /// The exchange that events are published to.
    fn exchange(&self) -> &str;

    /// Publishes each message and waits until the bus has stored it. Returns one result per message, in the
    /// same order. After an error the message may or may not be stored; publish it again.
    async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>>;

    /// Subscribes to the queue of a group of readers, and declares it if it is missing. At most `prefetch`
    /// messages are unsettled at a time.
    fn work(&self, queue: &str, keys: &[&str], prefetch: u16) -> Box<dyn Subscription>;

    /// Subscribes only this reader to messages that are published from now on.
    fn news(&self, keys: &[&str]) -> Box<dyn Subscription>;

    /// Number of messages and consumers of a work queue.
    async fn depth(&self, queue: &str) -> Result<QueueDepth, Error>;

    /// Checks whether messages can be sent now, for readiness checks. Connects if there is no connection yet.
    async fn check(&self) -> Result<(), Error>;
}

/// A message to publish.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub message: Encoded,
    pub create_time: Timestamp,
    /// The parent of the spans that handle the message.
    pub trace: TraceContext,
}

/// Result for a message that the bus has accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Stored in every bound queue.
    Routed,
    /// No queue is bound: there is no subscriber.
    Unroutable,
}

/// A message was not accepted, or a request not answered. A retry may help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the broker does not answer")]
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the broker did not answer within {0:?}")]
    TimedOut(Duration),
    #[error("the broker refused the message")]
    Refused,
    #[error("the queue is full")]
    Full,
}

/// An endless stream of messages: it reconnects by itself.
#[async_trait]
pub trait Subscription: Send {
    /// Waits for the next item. The future may be dropped while waiting, if only [`Subscription::stop`] is
    /// called afterwards.
    async fn next(&mut self) -> Received;

    /// Takes no more messages. Delivered ones can still be settled until the subscription is dropped.
    async fn stop(&mut self);
}

#[derive(Debug)]
pub enum Received {
    /// Subscribed, for the first time or again. Broadcasts may have been missed.
    Connected,
    /// Disconnected: no message arrives until [`Received::Connected`] comes again.
    Lost,
    Delivery(Delivery),
}

/// A message to be handled, and settled once. If it is dropped unsettled, it comes again.
pub struct Delivery {
    pub payload: Bytes,
    pub key: String,
    pub trace: TraceContext,
    /// True if it may have been delivered before.
    pub redelivered: bool,
    /// The bus's number of this delivery.
    pub tag: u64,
    pub settle: Box<dyn Settle>,
}

/// Ends a delivery. After an error the bus will deliver the message again.
#[async_trait]
pub trait Settle: Send + Sync {
    /// The message was handled.
    async fn ack(&self) -> Result<(), Error>;

    /// Returns the message for another consumer.
    async fn requeue(&self) -> Result<(), Error>;

    /// Puts it back as a new message, without its delivery count.
    async fn renew(&self) -> Result<(), Error>;

    /// Sets it aside, because no consumer can handle it.
    async fn dead_letter(&self, reason: &str) -> Result<(), Error>;

    /// Returns true if the bus has taken the message back already, so that settling it has no effect.
    fn is_lost(&self) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// Messages that wait for a reader.
    pub ready: u32,
    pub consumers: u32,
    pub dead_letters: u32,
}

impl std::fmt::Debug for Delivery {
    /// Leaves out the payload, which may be long and does not belong in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("key", &self.key)
            .field("redelivered", &self.redelivered)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
