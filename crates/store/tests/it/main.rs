//! The queries, over a real PostgreSQL: each test has a separate database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod compilations;
mod connections;
mod deletions;
mod deliveries;
mod delivery_log;
mod duplicates;
mod feed_days;
mod feedback;
mod feeds;
mod filter_properties;
mod filters;
mod floods;
mod functions;
mod idempotency;
mod isolation;
mod keyed;
mod keys;
mod lists;
mod managers;
mod migrations;
mod outbox;
mod plans;
mod platform_budgets;
mod purges;
mod quarantine;
mod quotas;
mod recent_posts;
mod replays;
mod replicas;
mod retention;
mod roles;
mod rows;
mod scans;
mod sessions;
mod stats;
mod support;
#[path = "../../examples/schema/tables.rs"]
mod tables;
mod tls;
