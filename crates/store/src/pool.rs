//! The pool of connections that a process shares.

use std::{
    ops::Deref,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ::deadpool::managed::{TimeoutType, Timeouts};
use diesel::{ConnectionError, ConnectionResult};
use diesel_async::{
    AsyncConnection as _, AsyncPgConnection, SimpleAsyncConnection,
    pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool},
};
use futures::FutureExt;
use tokio_postgres::{
    Client, NoTls, Socket,
    config::{Host, SslMode, SslNegotiation},
    tls::TlsStream,
};

use crate::{
    Error,
    observe::{self, Statements},
    servers,
    silence::{self, Answers, Silence},
    sqlstate::{Observing, Plain},
    tls::{Address, Mode, verifying},
};

/// Longest time that sent data may stay unacknowledged before the connection counts as dead. The kernel of a living
/// server acknowledges at once, even during a long statement.
const SILENCE: Duration = Duration::from_secs(10);
/// Longest wait for the result of a statement: longer than its time limit at the server ([`BOUNDS`]).
const PATIENCE: Duration = Duration::from_secs(40);
/// Longest time to open a connection. With several servers it is longer, so that each one is tried.
const CREATE: Duration = Duration::from_secs(5);
/// Time to set up a connection after one of several servers has answered.
const SET_UP: Duration = Duration::from_secs(1);

/// A pool of connections, which all clones share.
#[derive(Clone)]
pub struct Pool {
    connections: deadpool::Pool<AsyncPgConnection>,
    /// The count of [`silence::LOST_SERVERS`] when idle connections were last discarded.
    lost_servers: Arc<AtomicU64>,
}

impl Pool {
    /// Returns a connection, after a wait of at most five seconds.
    ///
    /// # Errors
    /// When no connection is free in time, or the database does not answer.
    pub async fn get(&self) -> Result<Connection, deadpool::PoolError> {
        self.discard_lost();
        let begin = Instant::now();
        let got = self.connections.get().await;
        observe::WAIT.observe(begin.elapsed().as_secs_f64());
        got
    }

    /// Discards idle connections after a server refused to write or did not answer: a new connection finds the new
    /// primary.
    fn discard_lost(&self) {
        let lost = silence::LOST_SERVERS.load(Ordering::Relaxed);
        if self.lost_servers.swap(lost, Ordering::Relaxed) != lost {
            let discarded = self.connections.retain(|_, _| false).removed.len();
            tracing::warn!(
                discarded,
                "the database is read-only or silent: reconnecting"
            );
        }
    }
}

impl Deref for Pool {
    type Target = deadpool::Pool<AsyncPgConnection>;

    fn deref(&self) -> &Self::Target {
        &self.connections
    }
}

/// A pooled connection, which returns to the pool when it is dropped.
pub type Connection = deadpool::Object<AsyncPgConnection>;

/// The pool could not be created. Whether a server answers is only known at first use.
#[derive(Debug, thiserror::Error)]
#[error("invalid database settings")]
pub struct ConnectError(#[source] deadpool::BuildError);

/// Creates a pool of up to `size` connections to `url`, opened when needed. Waiting for one fails after five
/// seconds.
///
/// # Errors
/// If the settings contradict each other.
pub fn connect(url: &str, size: usize) -> Result<Pool, ConnectError> {
    connect_with_patience(url, size, PATIENCE)
}

/// Same as [`connect`], with another limit on the wait for a statement's result.
///
/// # Errors
/// When the settings contradict each other.
pub fn connect_with_patience(
    url: &str,
    size: usize,
    patience: Duration,
) -> Result<Pool, ConnectError> {
    let mut settings = ManagerConfig::default();
    settings.custom_setup = Box::new(move |url| establish_bounded(url, patience).boxed());
    // A closed connection is detected without asking the server before each use.
    settings.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, settings);
    let pool = deadpool::Pool::builder(manager)
        .max_size(size)
        .runtime(::deadpool::Runtime::Tokio1)
        .wait_timeout(Some(Duration::from_secs(5)))
        .create_timeout(Some(create_timeout(url)))
        .recycle_timeout(Some(Duration::from_secs(3)))
        .build()
        .map_err(ConnectError)?;
    observe::watch(&pool);
    Ok(Pool {
        connections: pool,
        lost_servers: Arc::default(),
    })
}

/// Returns the longest time to open a connection. An invalid URL is reported by the first use of the pool.
fn create_timeout(url: &str) -> Duration {
    let config = Address::read(url).and_then(|address| address.config());
    let longest = config.ok().as_ref().and_then(servers::longest_connect);
    longest.map_or(CREATE, |longest| CREATE.max(longest + SET_UP))
}

/// Returns an open and idle connection, if there is one, without waiting.
pub async fn try_idle(pool: &Pool) -> Option<Connection> {
    if pool.status().available == 0 {
        return None;
    }
    // If another task takes it at this moment, the pool does not open a new one.
    let timeouts = Timeouts {
        wait: Some(Duration::ZERO),
        create: Some(Duration::ZERO),
        recycle: Some(Duration::ZERO),
    };
    pool.timeout_get(&timeouts).await.ok()
}

/// Returns an unused connection, opened if necessary; `None` if all are in use.
pub async fn unused(pool: &Pool) -> Result<Option<Connection>, Error> {
    let timeouts = Timeouts {
        wait: Some(Duration::ZERO),
        ..pool.timeouts()
    };
    match pool.timeout_get(&timeouts).await {
        Ok(conn) => Ok(Some(conn)),
        Err(deadpool::PoolError::Timeout(TimeoutType::Wait)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Time limits for a statement, for a lock, and for a client that disappears in the middle of a transaction
/// while others wait for its locks. Statements here are short, and compiling one would take longer than running it.
const BOUNDS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '60s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; \
    SET jit = off";

async fn establish_bounded(url: &str, patience: Duration) -> ConnectionResult<AsyncPgConnection> {
    let answers = Arc::<Answers>::default();
    let silence = Silence {
        answers: Arc::clone(&answers),
        patience,
        lost_servers: &silence::LOST_SERVERS,
    };
    let mut conn = establish_with(url, Some(silence)).await?;
    conn.batch_execute(BOUNDS)
        .await
        .map_err(ConnectionError::CouldntSetupConfiguration)?;
    conn.set_instrumentation(Statements::new(answers));
    Ok(conn)
}

/// Connects to `url`, which may name several servers ([`crate::servers`]), and sets the encryption ([`crate::tls`]).
/// The program's name is the default of `application_name`. Unlike diesel's error, ours names the server and every
/// cause, down to the operating system's. It never contains the URL, which may hold a password.
///
/// # Errors
/// If the URL is invalid, the server does not answer, or it refuses the connection.
pub async fn establish(url: &str) -> ConnectionResult<AsyncPgConnection> {
    establish_with(url, None).await
}

async fn establish_with(
    url: &str,
    silence: Option<Silence>,
) -> ConnectionResult<AsyncPgConnection> {
    let address = Address::read(url).map_err(ConnectionError::InvalidConnectionUrl)?;
    let mut config = address
        .config()
        .map_err(ConnectionError::InvalidConnectionUrl)?;
    config.ssl_mode(address.mode.ssl_mode());
    if config.get_application_name().is_none() {
        config.application_name(program());
    }
    // A connection to a server that disappeared is closed.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    let failed = ConnectionError::BadConnection;
    match &address.mode {
        Mode::Plain => {
            let is_named = |host: &Host| matches!(host, Host::Tcp(_));
            let hosts = config.get_hosts();
            if hosts.is_empty() || !hosts.iter().all(is_named) {
                // On a Unix socket the driver does not accept `Plain`, so only codes that the driver keeps itself are
                // known.
                let connected = servers::connect(&config, NoTls).await;
                let (client, connection) = connected.map_err(failed)?;
                return assemble(client, connection, silence).await;
            }
            config.ssl_mode(SslMode::Require);
            config.ssl_negotiation(SslNegotiation::Direct);
            let connected = servers::connect(&config, Observing(Plain)).await;
            let (client, connection) = connected.map_err(failed)?;
            assemble(client, connection, silence).await
        }
        Mode::Verified(roots) => {
            let tls = verifying(roots.as_deref()).map_err(failed)?;
            let (client, connection) = servers::connect(&config, Observing(tls))
                .await
                .map_err(failed)?;
            assemble(client, connection, silence).await
        }
    }
}

async fn assemble<S>(
    client: Client,
    connection: tokio_postgres::Connection<Socket, S>,
    silence: Option<Silence>,
) -> ConnectionResult<AsyncPgConnection>
where
    S: TlsStream + Unpin + Send + 'static,
{
    let Some(silence) = silence else {
        return AsyncPgConnection::try_from_client_and_connection(client, connection).await;
    };
    tokio::spawn(silence.drive(connection));
    AsyncPgConnection::try_from(client).await
}

/// Name of this program in `pg_stat_activity` and in the server's log: `scanner`, `api-gateway`.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns true if connections to `url` cross a network unencrypted although the URL does not request that.
pub fn is_plain_by_omission(url: &str) -> bool {
    let Ok(address) = Address::read(url) else {
        return false;
    };
    let Ok(config) = address.config() else {
        return false;
    };
    let is_far = |host: &Host| match host {
        Host::Tcp(name) => {
            let address = name.parse::<std::net::IpAddr>();
            name != "localhost" && !address.is_ok_and(|address| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => false,
    };
    !address.is_said && config.get_hosts().iter().any(is_far)
}

#[cfg(test)]
mod tests {
    use super::{establish, is_plain_by_omission};

    #[tokio::test]
    async fn error_names_the_cause_without_the_password() {
        // No server listens on port 1.
        let Err(error) = establish("postgres://user:hush@127.0.0.1:1/db").await else {
            panic!("connected");
        };
        let text = error.to_string();
        assert!(
            text.contains("127.0.0.1:1") && text.contains("refused"),
            "{text}"
        );
        assert!(!text.contains("hush"), "{text}");
    }

    #[test]
    fn url_without_a_tls_mode_is_detected() {
        for (url, omits) in [
            ("postgres://u:p@database.internal/d", true),
            ("postgres://u:p@10.0.0.1:5433/d?application_name=x", true),
            ("postgres://u:p@database.internal/d?sslmode=disable", false),
            (
                "postgres://u:p@database.internal/d?sslmode=verify-full",
                false,
            ),
            ("postgres://u:p@database.internal/d?sslrootcert=/ca", false),
            ("postgres://u:p@127.0.0.1/d", false),
            ("postgres://u:p@localhost,[::1]/d", false),
            ("postgres:///d?host=/run/postgresql", false),
        ] {
            assert_eq!(is_plain_by_omission(url), omits, "{url}");
        }
    }
}
