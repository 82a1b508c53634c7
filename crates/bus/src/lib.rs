//! The event bus: how a committed event reaches the services that act on it.
//!
//! Events leave through the outbox, in the transaction that made them true; [`relay`] publishes them
//! and [`consumer`] runs a service's code over them. In between is a [`Bus`]: [`RabbitMq`] among
//! processes, [`InProcess`] within one, with the same promises:
//!
//! - **Work** goes to a queue of its own per reader, shared by the reader's replicas, and stays there
//!   until one of them has handled it: at least once, in no order.
//! - **News** reaches every reader that is connected; after each (re)connect the reader is told to
//!   read the database, for what it missed.
//! - Failures of ours never count against a message. What cannot be read, or fails the same way each
//!   time, is set aside as a dead letter.
//!
//! A lost bus loses nothing that matters: every reader also sweeps the database for work whose event
//! never came. This is the only crate that knows lapin.

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
