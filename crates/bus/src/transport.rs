//! The interface of a bus for publishers and readers, independent of the transport.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use domain::Timestamp;
use events::{Encoded, TraceContext};

/// Carries messages from publishers to those who are subscribed.
#[async_trait]
pub trait Bus: Send + Sync + 'static {
    /// The `messaging.system` of traces.
    fn system(&self) -> &'static str;

    /// The exchange that events are published to.
    fn exchange(&self) -> &str;

    /// Sends a message, without waiting for its arrival. It may be lost even without an error.
    async fn publish(&self, message: &Outgoing) -> Result<(), Error>;

    /// Subscribes to the queue of a group of readers, and declares it if it is missing. Each message goes to one of
    /// them.
    fn work(&self, queue: &str, keys: &[&str]) -> Box<dyn Subscription>;

    /// Subscribes only this reader to messages that are published from now on.
    fn news(&self, keys: &[&str]) -> Box<dyn Subscription>;

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

/// A request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the broker does not answer")]
    Away(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the broker did not answer within {0:?}")]
    TimedOut(Duration),
}

/// An endless stream of messages: it reconnects by itself.
#[async_trait]
pub trait Subscription: Send {
    /// Waits for the next item. If the future is dropped while waiting, the subscription must be dropped too.
    async fn next(&mut self) -> Received;
}

#[derive(Debug)]
pub enum Received {
    /// Subscribed, for the first time or again. Messages may have been missed.
    Connected,
    /// Disconnected: no message arrives until [`Received::Connected`] comes again.
    Lost,
    Delivery(Delivery),
}

/// A message that was received.
#[derive(Clone)]
pub struct Delivery {
    pub payload: Bytes,
    pub key: String,
    pub trace: TraceContext,
}

impl std::fmt::Debug for Delivery {
    /// Leaves out the payload, which may be long and does not belong in a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delivery")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
