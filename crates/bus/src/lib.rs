//! The event bus: wakes the services that act on what was committed.
//!
//! A service publishes an event after the commit that made it true ([`EventPublisher`]). Between it and the readers is a
//! [`Bus`]: [`RabbitMq`] between processes, [`InProcess`] within one, with the same promises:
//!
//! - **Work** goes to one queue per reader, shared by the reader's replicas: one of them receives each event
//!   ([`consumer`]).
//! - **News** (broadcasts) reaches every connected reader ([`news`]). After each (re)connect the reader must read the
//!   database, to catch up.
//!
//! An event is a hint, and nothing depends on it: it is not stored, not confirmed, and comes once or not at all, in no
//! order. Every reader also looks for work in the database, so a lost event costs about a second. Only this crate uses
//! lapin.

pub mod consumer;
pub mod news;
pub mod publisher;
pub mod topology;
pub mod transport;

mod in_process;
mod metrics;
mod rabbitmq;

pub use consumer::{Consumer, consume};
pub use in_process::InProcess;
pub use news::{NewsReader, read_news};
pub use publisher::EventPublisher;
pub use rabbitmq::{InvalidUrl, RabbitMq, RabbitMqOptions};
pub use topology::Topology;
pub use transport::{Bus, Delivery, Error, Outgoing, Received, Subscription};
