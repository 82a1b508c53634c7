//! The bus against a real RabbitMQ, and the one within a process held to the same promises.
//!
//! `AMQP_URL` names a broker; without it a private one is started. Each test has exchanges and queues of
//! its own on it. The tests that kill a broker, or a connection to it, have one of their own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod dead_letters;
mod failures;
mod outbox;
mod promises;
mod support;
mod tls;
