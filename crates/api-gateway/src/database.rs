//! Connections to the database, and how accounts share them.

use std::{
    ops::DerefMut,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use domain::Id;
use store::{
    AsyncPgConnection, Pool,
    migrations::{self, Schema},
};
use tokio::runtime::Handle;

use crate::{
    ApiError, own,
    shares::{Held, Shares},
};

pub(crate) struct Database {
    pool: Pool,
    /// Shares of all connections.
    shares: Shares,
    /// Shares of the shared pool, without the workers' local connections.
    shared: OnceLock<Shares>,
    /// Set once a suitable schema was seen. A schema never becomes older again.
    schema_suits: AtomicBool,
    runtime: OnceLock<Handle>,
}

impl Database {
    pub(crate) fn new(pool: Pool, max_connections: usize) -> Self {
        Self {
            pool,
            shares: Shares::of(max_connections),
            shared: OnceLock::new(),
            schema_suits: AtomicBool::new(false),
            runtime: OnceLock::new(),
        }
    }

    /// Drives database connections on the current runtime from now on.
    pub(crate) fn enter_runtime(&self) {
        // The first runtime stays, because a gateway is served only once.
        let _ = self.runtime.set(Handle::current());
    }

    /// Returns a connection to a database with a suitable schema.
    ///
    /// It is worker-local if the HTTP worker has an idle one.
    pub(crate) async fn connection(
        &self,
    ) -> Result<impl DerefMut<Target = AsyncPgConnection> + Send + use<>, ApiError> {
        let conn = match own::connection().await? {
            Some(conn) => conn,
            None => self.shared_connection().await?,
        };
        self.suiting(conn).await
    }

    /// Returns `conn` if its database has a suitable schema.
    async fn suiting(&self, mut conn: store::Connection) -> Result<store::Connection, ApiError> {
        if !self.schema_suits.load(Ordering::Relaxed) {
            match migrations::schema(&mut conn).await? {
                Schema::Suits => self.schema_suits.store(true, Ordering::Relaxed),
                found => {
                    return Err(ApiError::Unavailable(anyhow::anyhow!("{found}")));
                }
            }
        }
        Ok(conn)
    }

    /// Same as [`Database::connection`], for a request of `account`. An account holds at most half of all
    /// connections, and at most half of the shared ones, so that a worker whose local ones it holds still finds one
    /// for other accounts.
    pub(crate) async fn connection_for(
        &self,
        account: Id,
    ) -> Result<impl DerefMut<Target = AsyncPgConnection> + Send + use<>, ApiError> {
        let of_all = self.shares.take(account).await?;
        let (conn, of_shared) = match own::connection().await? {
            Some(conn) => (conn, None),
            None => {
                let shared = self
                    .shared
                    .get_or_init(|| Shares::of(self.pool.status().max_size));
                let of_shared = shared.take(account).await?;
                (self.shared_connection().await?, Some(of_shared))
            }
        };
        Ok(Held {
            conn: self.suiting(conn).await?,
            _permits: (of_all, of_shared),
        })
    }

    /// Returns a connection of the shared pool.
    ///
    /// It is driven by a task on the runtime that opened it. So it is opened on the process's runtime, not on an
    /// HTTP worker's: workers end first, and a worker that is busy would stall requests of others. An idle
    /// connection is taken without switching runtimes.
    async fn shared_connection(&self) -> Result<store::Connection, ApiError> {
        match store::try_idle(&self.pool).await {
            Some(conn) => Ok(conn),
            None => self.open().await,
        }
    }

    /// Returns a pooled connection, or opens one if all are in use.
    async fn open(&self) -> Result<store::Connection, ApiError> {
        let pool = self.pool.clone();
        let runtime = self.runtime.get().cloned().unwrap_or_else(Handle::current);
        let opened = runtime
            .spawn(async move { pool.get().await })
            .await
            .map_err(|error| ApiError::Internal(error.into()))?;
        Ok(opened.map_err(store::Error::from)?)
    }
}
