//! The pool of connections that a process shares.

use std::time::Duration;

use ::deadpool::managed::{TimeoutType, Timeouts};
use diesel::{ConnectionError, ConnectionResult};
use diesel_async::{
    AsyncPgConnection, SimpleAsyncConnection,
    pooled_connection::{AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool},
};
use futures::FutureExt;
use tokio_postgres::{NoTls, config::Host};

use crate::Error;

/// How long what was sent may stay unacknowledged before the connection is taken for dead.
const SILENCE: Duration = Duration::from_secs(30);

/// Cheap to clone: all clones share the connections.
pub type Pool = deadpool::Pool<AsyncPgConnection>;

/// One of the pool's connections; it goes back when it is dropped.
pub type Connection = deadpool::Object<AsyncPgConnection>;

/// The pool could not be made; that a server answers is found out at first use.
#[derive(Debug, thiserror::Error)]
#[error("invalid database settings")]
pub struct ConnectError(#[source] deadpool::BuildError);

/// A pool of up to `size` connections to `url`, opened when they are needed. Whoever waits longer than
/// five seconds for one gets an error instead.
///
/// # Errors
/// When the settings contradict each other.
pub fn connect(url: &str, size: usize) -> Result<Pool, ConnectError> {
    let mut settings = ManagerConfig::default();
    settings.custom_setup = Box::new(|url| establish_bounded(url).boxed());
    // A connection that was closed is known to be, without a question to the server before each use.
    settings.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, settings);
    Pool::builder(manager)
        .max_size(size)
        .runtime(::deadpool::Runtime::Tokio1)
        .wait_timeout(Some(Duration::from_secs(5)))
        .create_timeout(Some(Duration::from_secs(5)))
        .recycle_timeout(Some(Duration::from_secs(3)))
        .build()
        .map_err(ConnectError)
}

/// A connection that is open and idle, if there is one, without waiting.
pub async fn idle(pool: &Pool) -> Option<Connection> {
    if pool.status().available == 0 {
        return None;
    }
    // Should another take it at this moment, none is opened in its place.
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

/// Bounds for whatever waits: a statement, a lock, and, at the server, a client that has gone in the
/// middle of a transaction, whose locks others wait for.
const BOUNDS: &str = "SET statement_timeout = '30s'; SET lock_timeout = '10s'; \
    SET idle_in_transaction_session_timeout = '60s'; \
    SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3";

async fn establish_bounded(url: &str) -> ConnectionResult<AsyncPgConnection> {
    let mut conn = establish(url).await?;
    conn.batch_execute(BOUNDS)
        .await
        .map_err(ConnectionError::CouldntSetupConfiguration)?;
    Ok(conn)
}

/// Connects to `url`. The error names the server and every cause down to the system's own, which
/// diesel's does not; it never repeats the URL, which may hold a password.
///
/// # Errors
/// When the URL cannot be read, nobody answers, or the server refuses.
pub async fn establish(url: &str) -> ConnectionResult<AsyncPgConnection> {
    let mut config: tokio_postgres::Config =
        url.parse().map_err(|error: tokio_postgres::Error| {
            ConnectionError::InvalidConnectionUrl(chain(&error))
        })?;
    // A server that has gone without a word is given up.
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(SILENCE);
    }
    config.keepalives_idle(Duration::from_secs(5));
    config.keepalives_interval(Duration::from_secs(5));
    config.keepalives_retries(3);
    let (client, connection) = config.connect(NoTls).await.map_err(|error| {
        ConnectionError::BadConnection(format!("{}: {}", servers(&config), chain(&error)))
    })?;
    AsyncPgConnection::try_from_client_and_connection(client, connection).await
}

fn servers(config: &tokio_postgres::Config) -> String {
    let ports = config.get_ports();
    let named = config.get_hosts().iter().enumerate().map(|(at, host)| {
        // One port may stand for all hosts, and none for the usual one.
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
    use super::establish;

    #[tokio::test]
    async fn the_cause_is_named_and_the_password_is_not() {
        // Nobody listens on port 1.
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
}
