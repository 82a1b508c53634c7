//! Scanners with a real database and simulated platform APIs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod alerts;
mod backfill;
mod budgets;
mod credentials;
mod days;
mod erasure;
mod failures;
mod fair;
mod fresh;
mod guard;
mod ids;
mod isolation;
mod judge;
mod late;
mod live;
mod logs;
mod lost_answers;
mod plans;
mod quarantine;
mod quotas;
mod reading;
mod replicas;
mod scans;
mod schedule;
mod streams;
mod support;
