//! Tests of the queries with a real PostgreSQL. Each test has a separate database.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod account_feeds;
mod baseline;
mod codes;
mod compilations;
mod connections;
mod deletions;
mod deliveries;
mod delivery_log;
mod dumps;
mod duplicates;
mod feed_days;
mod feed_post_ids;
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
mod large_pages;
mod lists;
mod managers;
mod migration_locks;
mod migrations;
mod outbox;
mod plan_locks;
mod planner_statistics;
mod plans;
mod platform_budgets;
mod pooling;
mod purges;
mod quarantine;
mod quotas;
mod recent_posts;
mod refused_posts;
mod replays;
mod replicas;
mod retention;
mod roles;
mod rows;
mod scans;
mod sessions;
mod sizes;
mod stats;
mod support;
#[path = "../../examples/schema/tables.rs"]
mod tables;
mod tls;
mod unwatched;
mod waiting;
mod work;
