//! Keeps the private database server running.
//!
//! No service manager does this for a private server: when it ends, for example killed because memory ran out, it is
//! restarted on the same port and data, and the services reconnect automatically.

use std::{
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use private_servers::Postgres;
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_millis(500);

/// Guard of the server. Stops the server when dropped.
pub(super) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    lost: CancellationToken,
}

impl Keeper {
    /// # Errors
    /// Returns an error when no thread can be started.
    pub(super) fn start(server: Postgres) -> std::io::Result<Self> {
        let (stop, stopped) = channel::<()>();
        let lost = CancellationToken::new();
        let gone = lost.clone();
        let keep = move || {
            let mut server = server;
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if server.is_running() {
                    continue;
                }
                tracing::error!("the database server has ended: restarting it");
                if let Err(error) = server.restart() {
                    tracing::error!("cannot restart the database server: {error:#}");
                    gone.cancel();
                    return;
                }
                tracing::info!("restarted the database server");
            }
        };
        let thread = thread::Builder::new().name("database-keeper".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(keep)?),
            lost,
        })
    }

    /// Returns a token that is cancelled when the server has ended and cannot be restarted.
    pub(super) fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
