//! What a bus must do for the relay and the consumer loop, whichever way messages travel.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::Timestamp;
use events::{Encoded, TraceContext};

/// Carries messages from whoever publishes to whoever subscribed.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// The `messaging.system` of traces.
    fn system(&self) -> &'static str;

    /// The exchange that events are published to.
    fn exchange(&self) -> &str;

    /// Hands over each message and waits until the bus has taken it: one answer each, in the same
    /// order. An error means that the message may or may not have been taken; publish it again.
    async fn publish(&self, batch: &[Outgoing]) -> Vec<Result<Published, Error>>;

    /// Subscribes to the queue of a group of readers, which is made where it is missing. Up to
    /// `prefetch` messages are out at a time.
    fn work(&self, queue: &str, keys: &[&str], prefetch: u16) -> Box<dyn Subscription>;

    /// Subscribes this reader alone to what is published from now on.
    fn news(&self, keys: &[&str]) -> Box<dyn Subscription>;

    /// How much a queue of work holds.
    async fn depth(&self, queue: &str) -> Result<QueueDepth, Error>;

    /// Whether messages can travel now, for readiness checks. Connects where nothing has yet.
    async fn check(&self) -> Result<(), Error>;
}

/// A message on its way out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub message: Encoded,
    pub create_time: Timestamp,
    /// Becomes the parent of whatever handles the message.
    pub trace: TraceContext,
}

/// What became of a message that the bus has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is safe in every queue that wants it.
    Routed,
    /// No queue wants it: nobody has subscribed.
    Unroutable,
}

/// A message was not taken, or a question not answered. Trying again may help.
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

/// A stream of messages that does not end: a lost connection is restored inside.
#[async_trait]
pub trait Subscription: Send {
    /// Waits for what comes next. Safe to drop while waiting, if nothing is asked of it afterwards but
    /// [`Subscription::stop`].
    async fn next(&mut self) -> Received;

    /// Takes no more messages. Those given out can still be settled until the subscription is dropped.
    async fn stop(&mut self);
}

#[derive(Debug)]
pub enum Received {
    /// Subscribed, for the first time or again. News may have been missed.
    Connected,
    /// Nothing flows until [`Received::Connected`] comes again.
    Lost,
    Delivery(Delivery),
}

/// A message to be handled, and settled once. One that is dropped unsettled comes again.
pub struct Delivery {
    pub payload: Bytes,
    pub key: String,
    pub trace: TraceContext,
    /// It may have been seen before.
    pub redelivered: bool,
    /// The bus's own number of this delivery.
    pub tag: u64,
    pub settle: Box<dyn Settle>,
}

/// How a delivery ends. An error means that the bus will deliver the message again.
#[async_trait]
pub trait Settle: Send + Sync {
    /// It was handled.
    async fn ack(&self) -> Result<(), Error>;

    /// Somebody else shall handle it.
    async fn requeue(&self) -> Result<(), Error>;

    /// Puts it back as if it were new: no count against it is kept.
    async fn renew(&self) -> Result<(), Error>;

    /// Nobody can handle it.
    async fn dead_letter(&self, reason: &str) -> Result<(), Error>;

    /// Whether the bus has taken the message back already, so that settling it is in vain.
    fn is_lost(&self) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueDepth {
    /// Waiting for a reader.
    pub ready: u32,
    pub consumers: u32,
    pub dead_letters: u32,
}

impl std::fmt::Debug for Delivery {
    /// Without the payload, which may be long and is nobody's business in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("key", &self.key)
            .field("redelivered", &self.redelivered)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}
