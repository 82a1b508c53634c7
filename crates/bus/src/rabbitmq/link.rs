//! One connection to the broker, made when somebody needs it and again when it is lost.
//!
//! It tries once each time it is asked; waiting between tries is for whoever asks. It tells the log when
//! the broker goes and when it comes back, not each try.

use std::{io, path::PathBuf, sync::Mutex, time::Duration};

use lapin::{Channel, Connection, ConnectionProperties, tcp::OwnedTLSConfig, uri::AMQPUri};
use tokio::time::timeout;

use crate::transport::Error;

/// For the connection with all its handshakes, and for any answer of the broker.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// After twice this without a sign the broker counts as gone; it may say less.
const HEARTBEAT_SECONDS: u16 = 15;
/// The client keeps room for 32 frames in each direction of a connection. With the usual 128 kB a frame that is 17 MB in
/// a process, for events of some hundred bytes; a larger message goes in several frames.
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
    /// What the log was told last: whether the broker is there.
    told: Mutex<Option<bool>>,
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
            told: Mutex::new(None),
        }
    }

    /// A new channel, on a new connection where there is none.
    pub(super) async fn channel(&self) -> Result<Channel, Error> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = &*slot
            && connection.status().connected()
        {
            match answer(connection.create_channel()).await {
                // A connection that is silent for so long is no use to anybody.
                Err(Error::TimedOut(_)) => {}
                // A lone channel that fails, say for their number, is no reason to end the others.
                channel if channel.is_ok() || connection.status().connected() => return channel,
                _ => {}
            }
        }
        *slot = None;
        match self.connect().await {
            Ok((connection, channel)) => {
                *slot = Some(connection);
                self.tell(None);
                Ok(channel)
            }
            Err(error) => {
                self.tell(Some(&error));
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

    fn tell(&self, error: Option<&Error>) {
        let mut told = self.told.lock().unwrap_or_else(|lock| lock.into_inner());
        let there = error.is_none();
        if told.replace(there) == Some(there) {
            return;
        }
        let broker = format!("{}:{}", self.uri.authority.host, self.uri.authority.port);
        let role = self.role;
        match error {
            None => tracing::info!(broker, ?role, "connected to the broker"),
            Some(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string);
                tracing::warn!(broker, ?role, cause, "{error}, trying until it does");
            }
        }
    }
}

pub(super) fn away(error: lapin::Error) -> Error {
    Error::Away(Box::new(error))
}

/// Waits for the broker, but not forever: a connection may be dead without anybody having said so.
pub(super) async fn answer<T>(
    question: impl Future<Output = Result<T, lapin::Error>>,
) -> Result<T, Error> {
    match timeout(ANSWER_TIMEOUT, question).await {
        Ok(answer) => answer.map_err(away),
        Err(_) => Err(Error::TimedOut(ANSWER_TIMEOUT)),
    }
}
