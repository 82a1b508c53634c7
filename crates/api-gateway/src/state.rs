//! Shared state of all handlers, and the one place where transactions begin and end.

use std::{
    ops::DerefMut,
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use backbone::Backbone;
use bus::OutboxWaker;
use domain::{Id, address::AddressPolicy, audit::Entry, manager::Rules};
use runtime::Config;
use store::{
    AsyncConnection, AsyncPgConnection, Pool, QueryError,
    migrations::{self, Schema},
    quotas,
    rates::Limits,
    seal::Sealer,
};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::{
    ApiError,
    authenticate::{Caller, KeyCache, guesses::Guesses},
    feeds::ConfiguredFeeds,
    own,
    rates::Meter,
    shares::{Held, Shares},
};

/// Previews of one account that a replica computes at a time.
const PREVIEWS: usize = 1;

pub(crate) struct AppState {
    pool: Pool,
    /// Shares of all connections.
    shares: Shares,
    /// Shares of the connections that no HTTP worker has to itself.
    shared: OnceLock<Shares>,
    previews: Shares,
    outbox: OutboxWaker,
    pub(crate) sealer: Sealer,
    pub(crate) keys: KeyCache,
    pub(crate) guesses: Guesses,
    pub(crate) rates: Meter,
    /// Default quotas, for accounts without overrides.
    pub(crate) quotas: quotas::Limits,
    pub(crate) addresses: AddressPolicy,
    feeds: ConfiguredFeeds,
    /// True if clients use TLS to this process itself.
    pub(crate) serves_tls: bool,
    pub(crate) cors_allowed_origins: Vec<String>,
    pub(crate) serves_console: bool,
    /// For a whole body; a client that drips must not hold a connection for long.
    pub(crate) body_timeout: Duration,
    /// Set once the schema was seen to suit; it does not grow old again.
    schema_suits: AtomicBool,
    runtime: OnceLock<Handle>,
    draining: AtomicBool,
    /// Cancelled when bodies that are still on their way are waited for no more.
    bodies: CancellationToken,
}

/// Work on a connection whose future may move between threads.
pub(crate) trait Work<C, R>: AsyncFnOnce(C) -> R + FnOnce(C) -> Self::Future {
    type Future: Future<Output = R>;
}

impl<W, C, R, F> Work<C, R> for W
where
    W: AsyncFnOnce(C) -> R + FnOnce(C) -> F,
    F: Future<Output = R>,
{
    type Future = F;
}

/// The answer of a transaction, and its entry in the audit log; `None` if it changed nothing.
pub(crate) struct Outcome<T>(pub(crate) T, pub(crate) Option<Entry>);

/// Why a transaction was rolled back.
enum Ended<T> {
    /// The request was a test, and this is the response.
    Tested(T),
    Failed(ApiError),
}

impl<T> From<QueryError> for Ended<T> {
    fn from(error: QueryError) -> Self {
        Self::Failed(error.into())
    }
}

impl AppState {
    pub(crate) fn new(config: &Config, backbone: &Backbone) -> anyhow::Result<Self> {
        Ok(Self {
            pool: backbone.pool.clone(),
            shares: Shares::of(config.database.max_connections as usize),
            shared: OnceLock::new(),
            previews: Shares::each(PREVIEWS),
            outbox: backbone.outbox.clone(),
            sealer: backbone::sealer(config).context("the API gateway seals header values")?,
            keys: KeyCache::default(),
            guesses: Guesses::new(config.gateway.trusted_proxies.clone()),
            rates: Meter::new(Limits {
                key: config.gateway.rate_limit_per_minute,
                account: config.gateway.account_rate_limit(),
            }),
            quotas: backbone::default_quotas(config),
            addresses: config.outbound.address_policy(),
            feeds: ConfiguredFeeds::new(config),
            serves_tls: !config.gateway.tls_certificate_file.is_empty(),
            cors_allowed_origins: config.gateway.cors_allowed_origins.clone(),
            serves_console: config.gateway.console,
            body_timeout: config.gateway.body_timeout,
            schema_suits: AtomicBool::new(false),
            runtime: OnceLock::new(),
            draining: AtomicBool::new(false),
            bodies: CancellationToken::new(),
        })
    }

    /// Database connections are driven on the present runtime from now on.
    pub(crate) fn enter_runtime(&self) {
        // The first runtime stays: a gateway is served once.
        let _ = self.runtime.set(Handle::current());
    }

    /// The gateway will stop soon: clients are to go on elsewhere, one answer at a time.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Returns true if [`AppState::drain`] was called.
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// The gateway stops: a client that has not sent the whole body is asked to try again.
    pub(crate) fn cut_bodies(&self) {
        self.bodies.cancel();
    }

    /// Ends at [`AppState::cut_bodies`].
    pub(crate) fn bodies(&self) -> CancellationToken {
        self.bodies.clone()
    }

    pub(crate) fn feeds(&self) -> &ConfiguredFeeds {
        &self.feeds
    }

    pub(crate) fn manager_rules(&self) -> Rules<'_> {
        Rules {
            addresses: &self.addresses,
            feeds: &self.feeds,
        }
    }

    /// A connection to a database whose schema suits.
    ///
    /// One of the HTTP worker's own, where it has them and one is not in use.
    pub(crate) async fn connection(
        &self,
    ) -> Result<impl DerefMut<Target = AsyncPgConnection> + Send + use<>, ApiError> {
        let conn = match own::connection().await? {
            Some(conn) => conn,
            None => self.shared_connection().await?,
        };
        self.suiting(conn).await
    }

    /// Returns `conn` if the schema of its database suits.
    async fn suiting(&self, mut conn: store::Connection) -> Result<store::Connection, ApiError> {
        if !self.schema_suits.load(Ordering::Relaxed) {
            match migrations::schema(&mut conn).await? {
                Schema::Suits => self.schema_suits.store(true, Ordering::Relaxed),
                Schema::TooOld { .. } => {
                    return Err(ApiError::Unavailable(anyhow::anyhow!(
                        "the database's schema is too old"
                    )));
                }
            }
        }
        Ok(conn)
    }

    /// Same as [`AppState::connection`], for a request of `account`, which holds half of them at most, and half of those
    /// that all HTTP workers share: a worker whose own ones it holds still finds one for other accounts.
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

    /// The right of `account` to compute a preview.
    pub(crate) async fn preview_for(&self, account: Id) -> Result<OwnedSemaphorePermit, ApiError> {
        self.previews.take(account).await
    }

    /// A connection that the process shares.
    ///
    /// It is driven by a task on the runtime that opened it, so it is opened on the process's, not on that of
    /// an HTTP worker: those end first, and each would stall what others wait for. One that is idle is taken
    /// without the way over there.
    async fn shared_connection(&self) -> Result<store::Connection, ApiError> {
        match store::idle(&self.pool).await {
            Some(conn) => Ok(conn),
            None => self.open().await,
        }
    }

    /// A connection of the pool, opened if all are in use.
    async fn open(&self) -> Result<store::Connection, ApiError> {
        let pool = self.pool.clone();
        let runtime = self.runtime.get().cloned().unwrap_or_else(Handle::current);
        let opened = runtime
            .spawn(async move { pool.get().await })
            .await
            .map_err(|error| ApiError::Internal(error.into()))?;
        Ok(opened.map_err(store::Error::from)?)
    }

    /// Runs `work` in a transaction, which test mode rolls back; the answer is the same. The transaction also writes
    /// the entry in the audit log. Events that it enqueued leave at once after the commit.
    pub(crate) async fn write<T, W>(&self, caller: &Caller, work: W) -> Result<T, ApiError>
    where
        T: Send,
        W: for<'c> Work<&'c mut AsyncPgConnection, Result<Outcome<T>, ApiError>, Future: Send>
            + Send,
    {
        let test_mode = caller.test_mode;
        let mut conn = self.connection_for(caller.key.account).await?;
        let outcome = conn
            .transaction(async move |conn| {
                let Outcome(answer, entry) = work(conn).await.map_err(Ended::Failed)?;
                if let Some(entry) = entry {
                    caller.record(conn, &entry).await?;
                }
                if test_mode {
                    Err(Ended::Tested(answer))
                } else {
                    Ok(answer)
                }
            })
            .await;
        match outcome {
            Ok(answer) => {
                self.outbox.wake();
                Ok(answer)
            }
            Err(Ended::Tested(answer)) => Ok(answer),
            Err(Ended::Failed(error)) => Err(error),
        }
    }
}
