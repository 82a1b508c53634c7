//! PostgreSQL: schema, migrations, and one module of queries per resource. The only crate that knows
//! SQL.
//!
//! Query functions take the connection first, so that the caller owns the transaction, and return
//! `QueryResult`: what a missing row means is the caller's to say. Every read of a tenant's data takes
//! the Namespace. Time is an argument, save where an order must hold across replicas: there the
//! database's clock rules.

mod pool;
mod schema;

pub mod outbox;

pub use diesel::result::{Error as QueryError, QueryResult};
pub use diesel_async::AsyncPgConnection;
pub use pool::{ConnectError, Pool, connect};
