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
use tokio_postgres::{NoTls, config::Host};

use crate::{
    Error,
    observe::{self, Statements},
    tls::{Address, Mode, verifying},
};

/// Longest time that sent data may stay unacknowledged before the connection counts as dead. The kernel of a
/// server that lives acknowledges at once, however long the statement takes.
const SILENCE: Duration = Duration::from_secs(10);

/// Cheap to clone: all clones share the connections.
#[derive(Clone)]
pub struct Pool {
    connections: deadpool::Pool<AsyncPgConnection>,
    /// The count of [`observe::READ_ONLY_ERRORS`] when idle connections were last discarded.
    read_only_errors: Arc<AtomicU64>,
}

impl Pool {
    /// Returns a connection, after a wait of at most five seconds.
    ///
    /// # Errors
    /// When no connection is free in time, or the database does not answer.
    pub async fn get(&self) -> Result<Connection, deadpool::PoolError> {
        self.discard_read_only();
        let begin = Instant::now();
        let got = self.connections.get().await;
        observe::WAIT.observe(begin.elapsed().as_secs_f64());
        got
    }

    /// Discards idle connections after a server refused to write: it became a standby, and a new connection finds
    /// the new primary.
    fn discard_read_only(&self) {
        let errors = observe::READ_ONLY_ERRORS.load(Ordering::Relaxed);
        if self.read_only_errors.swap(errors, Ordering::Relaxed) != errors {
            let discarded = self.connections.retain(|_, _| false).removed.len();
            tracing::warn!(discarded, "the database is read-only: reconnecting");
        }
    }
}

impl Deref for Pool {
    type Target = deadpool::Pool<AsyncPgConnection>;

    fn deref(&self) -> &Self::Target {
        &self.connections
    }
}

/// One of the pool's connections; it goes back when it is dropped.
pub type Connection = deadpool::Object<AsyncPgConnection>;

/// The pool could not be made; that a server answers is found out at first use.
#[derive(Debug, thiserror::Error)]
#[error("invalid database settings")]
pub struct ConnectError(#[source] deadpool::BuildError);

/// A pool of up to `size` connections to `url`, opened when they are needed. A wait for one
/// fails after five seconds.
///
/// # Errors
/// When the settings contradict each other.
pub fn connect(url: &str, size: usize) -> Result<Pool, ConnectError> {
    let mut settings = ManagerConfig::default();
    settings.custom_setup = Box::new(|url| establish_bounded(url).boxed());
    // A connection that was closed is known to be, without a question to the server before each use.
    settings.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, settings);
    let pool = deadpool::Pool::builder(manager)
        .max_size(size)
        .runtime(::deadpool::Runtime::Tokio1)
        .wait_timeout(Some(Duration::from_secs(5)))
        .create_timeout(Some(Duration::from_secs(5)))
        .recycle_timeout(Some(Duration::from_secs(3)))
        .build()
        .map_err(ConnectError)?;
    observe::watch(&pool);
    Ok(Pool {
        connections: pool,
        read_only_errors: Arc::default(),
    })
}

/// A connection that is open and idle, if there is one, without waiting.
pub async fn idle(pool: &Pool) -> Option<Connection> {
    if pool.status().available == 0 {
        return None;
    }
    // If another task takes it at this moment, the pool opens no new one.
    let timeouts = Timeouts {
        wait: Some(Duration::ZERO),
        create: Some(Duration::ZERO),
        recycle: Some(Duration::ZERO),
    };
    pool.timeout_get(&timeouts).await.ok()
}

/// A connection that is not in use, opened if need be; none when all are.
///
/// # Errors
/// When the database does not answer.
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
/// while others wait for its locks.
const BOUNDS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '60s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

async fn establish_bounded(url: &str) -> ConnectionResult<AsyncPgConnection> {
    let mut conn = establish(url).await?;
    conn.batch_execute(BOUNDS)
        .await
        .map_err(ConnectionError::CouldntSetupConfiguration)?;
    conn.set_instrumentation(Statements::default());
    Ok(conn)
}

/// Connects to `url`, encrypted or not as its `sslmode` and `sslrootcert` say ([`crate::tls`]), and under the
/// program's name where it gives no `application_name`. The error names the server and every cause down to the
/// system's own, which diesel's does not; it never repeats the URL, which may hold a password.
///
/// # Errors
/// When the URL is invalid, the server does not answer, or it refuses the connection.
pub async fn establish(url: &str) -> ConnectionResult<AsyncPgConnection> {
    let address = Address::read(url).map_err(ConnectionError::InvalidConnectionUrl)?;
    let mut config: tokio_postgres::Config =
        address
            .url
            .parse()
            .map_err(|error: tokio_postgres::Error| {
                ConnectionError::InvalidConnectionUrl(chain(&error))
            })?;
    config.ssl_mode(address.mode.ssl_mode());
    if config.get_application_name().is_none() {
        config.application_name(program());
    }
    // A server that has gone without a word is given up.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    let failed = |error: tokio_postgres::Error| {
        ConnectionError::BadConnection(format!("{}: {}", servers(&config), chain(&error)))
    };
    match &address.mode {
        Mode::Plain => {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            AsyncPgConnection::try_from_client_and_connection(client, connection).await
        }
        Mode::Verified(roots) => {
            let tls = verifying(roots.as_deref()).map_err(ConnectionError::BadConnection)?;
            let (client, connection) = config.connect(tls).await.map_err(failed)?;
            AsyncPgConnection::try_from_client_and_connection(client, connection).await
        }
    }
}

/// Name of this program in `pg_stat_activity` and in the server's log: `scanner`, `api-gateway`.
fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns whether connections to `url` cross a network unencrypted although the URL does not ask for that.
#[must_use]
pub fn is_plain_by_omission(url: &str) -> bool {
    let Ok(address) = Address::read(url) else {
        return false;
    };
    let Ok(config) = address.url.parse::<tokio_postgres::Config>() else {
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

fn servers(config: &tokio_postgres::Config) -> String {
    let ports = config.get_ports();
    let named = config.get_hosts().iter().enumerate().map(|(at, host)| {
        // One port may apply to all hosts; without any, the default port applies.
        let port = ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(name) => format!("{name}:{port}"),
            #[cfg(unix)]
            Host::Unix(path) => path.display().to_string(),
        }
    });
    named.collect::<Vec<_>>().join(", ")
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{establish, is_plain_by_omission};

    #[tokio::test]
    async fn the_cause_is_named_and_the_password_is_not() {
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
    fn a_url_that_says_nothing_of_encryption_is_found_out() {
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
