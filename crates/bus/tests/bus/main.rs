//! The bus on a real RabbitMQ, and the in-process bus, which makes the same promises.
//!
//! `AMQP_URL` names a broker; without it a private one is started. Each test has separate exchanges and queues
//! on it. Tests that kill a broker, or a connection to it, start a broker for themselves.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod dead_letters;
mod failures;
mod outbox;
mod promises;
mod support;
mod tls;
