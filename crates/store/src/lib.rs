//! PostgreSQL: schema, migrations, and one module of queries per resource. The only crate that knows
//! SQL.
//!
//! Query functions take the connection first, so that the caller owns the transaction, and return `QueryResult`:
//! the caller decides what a missing row means. Every read of a tenant's data takes the Namespace. Time is an
//! argument, except where an order must hold across replicas: there the database's clock counts.
//!
//! Statements that diesel's query builder cannot express are files in `queries/`, which `prepared::query!` runs.
//!
//! Every function that takes a connection fails if the database does not answer. An `# Errors` section lists
//! further errors.

mod error;
mod floor;
mod listing;
mod observe;
mod pool;
mod prepared;
mod schema;
mod servers;
mod silence;
mod tls;
mod words;

pub mod address_key;
pub mod audit;
pub mod backfills;
pub mod connections;
pub mod deliveries;
pub mod digests;
pub mod erasure;
pub mod fair;
pub mod feed_post_ids;
pub mod feedback;
pub mod feeds;
pub mod idempotency;
pub mod keyed;
pub mod keys;
pub mod lanes;
pub mod mail;
pub mod managers;
pub mod migrations;
pub mod namespaces;
pub mod planner_statistics;
pub mod plans;
pub mod platform_budgets;
pub mod pooling;
pub mod purges;
pub mod quotas;
pub mod rates;
pub mod reads;
pub mod recent_posts;
pub mod refused_posts;
pub mod replays;
pub mod replicas;
pub mod retention;
pub mod roles;
pub mod scans;
pub mod seal;
pub mod service_events;
pub mod sessions;
pub mod sizes;
mod sqlstate;
pub mod stats;
pub mod trial_deliveries;
pub mod waiting;
pub mod work;

pub use diesel::result::{Error as QueryError, QueryResult};
pub use diesel_async::{AsyncConnection, AsyncPgConnection};
pub use error::{Error, is_cut_off, is_passing, lost_namespace};
pub use floor::Floor;
pub use listing::{MAX_COST, MAX_PAGE_BYTES, Page, is_by_create_time};
pub use pool::{
    ConnectError, Connection, Pool, connect, connect_with_patience, establish,
    is_plain_by_omission, try_idle, unused,
};
