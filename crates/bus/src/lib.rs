//! The event bus: delivers committed events to the services that act on them.
//!
//! Events leave through the outbox, in the transaction that they describe; [`relay`] publishes them and
//! [`consumer`] runs a service's code for them. Between them is a [`Bus`]: [`RabbitMq`] between processes,
//! [`InProcess`] within one, with the same promises:
//!
//! - **Work** goes to one queue per reader, shared by the reader's replicas, and stays there until one of them
//!   has handled it: at least once, in no order.
//! - **News** (broadcasts) reaches every connected reader. After each (re)connect the reader must read the
//!   database, to catch up.
//! - Failures on our side never count against a message. A message that is unreadable, or fails the same way
//!   each time, is set aside as a dead letter.
//!
//! Losing the bus loses no work: every reader also sweeps the database for work whose event never came. Only
//! this crate uses lapin.

pub mod consumer;
pub mod news;
pub mod relay;
pub mod topology;
pub mod transport;

mod in_process;
mod metrics;
mod rabbitmq;

pub use consumer::{ConsumeOptions, Consumer, Outcome, consume};
pub use in_process::InProcess;
pub use news::{NewsReader, read_news};
pub use rabbitmq::{DeadLetter, InvalidUrl, RabbitMq, RabbitMqOptions};
pub use relay::{OutboxWaker, Relay};
pub use topology::Topology;
pub use transport::{
    Bus, Delivery, Error, Outgoing, Published, QueueDepth, Received, Settle, Subscription,
};
