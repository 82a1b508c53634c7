//! One connection to the broker, opened on first use and again after it is lost.
//!
//! It makes one attempt per call; the caller waits between attempts. It logs when the broker goes away and when
//! it comes back, not each attempt.

use std::{io, path::PathBuf, sync::Mutex, time::Duration};

use lapin::{Channel, Connection, ConnectionProperties, tcp::OwnedTLSConfig, uri::AMQPUri};
use tokio::time::timeout;

use crate::transport::Error;

/// Timeout for the connection with all its handshakes, and for any response of the broker.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The broker counts as gone after twice this time without a sign; it may ask for less.
const HEARTBEAT_SECONDS: u16 = 15;
/// The client buffers 32 frames in each direction of a connection. With the usual 128 kB per frame that is 17
/// MB in a process, for events of some hundred bytes; a larger message is sent in several frames.
const FRAME_BYTES: u32 = 16 * 1024;

#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Publishing,
    Consuming,
}

pub(super) struct Link {
    uri: AMQPUri,
    role: Role,
    name: String,
    ca_certificates_file: Option<PathBuf>,
    connection: tokio::sync::Mutex<Option<Connection>>,
    /// The last state that was logged: whether the broker is there.
    logged: Mutex<Option<bool>>,
}

impl Link {
    pub(super) fn new(
        mut uri: AMQPUri,
        role: Role,
        name: &str,
        ca_certificates_file: Option<PathBuf>,
    ) -> Self {
        uri.query.heartbeat.get_or_insert(HEARTBEAT_SECONDS);
        uri.query.frame_max.get_or_insert(FRAME_BYTES);
        let role_name = match role {
            Role::Publishing => "publish",
            Role::Consuming => "consume",
        };
        Self {
            uri,
            role,
            name: format!("{name} {role_name}"),
            ca_certificates_file,
            connection: tokio::sync::Mutex::new(None),
            logged: Mutex::new(None),
        }
    }

    /// Opens a channel, on a new connection if necessary.
    pub(super) async fn channel(&self) -> Result<Channel, Error> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = &*slot
            && connection.status().connected()
        {
            match answer(connection.create_channel()).await {
                // A connection that does not respond for so long is unusable.
                Err(Error::TimedOut(_)) => {}
                // A channel may fail alone, for example because of the channel limit. The other channels stay
                // open.
                channel if channel.is_ok() || connection.status().connected() => return channel,
                _ => {}
            }
        }
        *slot = None;
        match self.connect().await {
            Ok((connection, channel)) => {
                *slot = Some(connection);
                self.log(None);
                Ok(channel)
            }
            Err(error) => {
                self.log(Some(&error));
                Err(error)
            }
        }
    }

    async fn connect(&self) -> Result<(Connection, Channel), Error> {
        let properties =
            ConnectionProperties::default().with_connection_name(self.name.as_str().into());
        let tls = OwnedTLSConfig {
            identity: None,
            cert_chain: self.ca_certificates().await?,
        };
        let runtime = lapin::runtime::default_runtime().map_err(away)?;
        let connection = answer(Connection::connect_uri_with_config(
            self.uri.clone(),
            properties,
            tls,
            runtime,
        ))
        .await?;
        let channel = answer(connection.create_channel()).await?;
        Ok((connection, channel))
    }

    async fn ca_certificates(&self) -> Result<Option<String>, Error> {
        let Some(file) = &self.ca_certificates_file else {
            return Ok(None);
        };
        let read = tokio::fs::read_to_string(file).await;
        let named = |error: io::Error| {
            let text = format!("certificates to trust: {}: {error}", file.display());
            Error::Away(io::Error::new(error.kind(), text).into())
        };
        read.map(Some).map_err(named)
    }

    fn log(&self, error: Option<&Error>) {
        let mut logged = self.logged.lock().unwrap_or_else(|lock| lock.into_inner());
        let there = error.is_none();
        if logged.replace(there) == Some(there) {
            return;
        }
        let broker = format!("{}:{}", self.uri.authority.host, self.uri.authority.port);
        let role = self.role;
        match error {
            None => tracing::info!(broker, ?role, "connected to the broker"),
            Some(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string);
                tracing::warn!(broker, ?role, cause, "{error}, retrying");
            }
        }
    }
}

fn away(error: lapin::Error) -> Error {
    Error::Away(Box::new(error))
}

/// Waits for the broker with a timeout, because a dead connection may never report its end.
pub(super) async fn answer<T>(
    question: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, Error> {
    match timeout(ANSWER_TIMEOUT, question).await {
        Ok(answer) => answer.map_err(away),
        Err(_) => Err(Error::TimedOut(ANSWER_TIMEOUT)),
    }
}
