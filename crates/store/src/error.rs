//! What can go wrong between a value and its row.

use crate::{QueryError, seal::OpenError};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Query(#[from] QueryError),
    /// No connection to the database within the pool's time.
    #[error("no database connection")]
    Pool(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("cannot open a sealed value")]
    Sealed(#[from] OpenError),
    /// A column holds what this version cannot read.
    #[error("unreadable value in the database")]
    Json(#[source] serde_json::Error),
}

impl From<diesel_async::pooled_connection::deadpool::PoolError> for Error {
    fn from(error: diesel_async::pooled_connection::deadpool::PoolError) -> Self {
        Self::Pool(Box::new(error))
    }
}
