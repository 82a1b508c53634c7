//! The bus on a real RabbitMQ, and the in-process bus, which makes the same promises.
//!
//! `AMQP_URL` names a broker; without it a private one is started. Each test has a separate exchange and queues
//! on it. Tests that kill a broker, or a connection to it, start a broker for themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod failures;
mod promises;
mod publisher;
mod support;
mod tls;
