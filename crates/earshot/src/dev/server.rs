//! Keeps the private database server running.
//!
//! Nobody else does: when the server ends, killed for want of memory perhaps, it is started again on
//! the same port and data, and the services reconnect by themselves.

use std::{
    sync::mpsc::{RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

use private_servers::Postgres;
use tokio_util::sync::CancellationToken;

const LOOK: Duration = Duration::from_millis(500);

/// Stops the server when dropped.
pub(super) struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
    lost: CancellationToken,
}

impl Keeper {
    /// # Errors
    /// When no thread can be had.
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
                tracing::error!("the database server has ended: starting it again");
                if let Err(error) = server.restart() {
                    tracing::error!("cannot start the database server again: {error:#}");
                    gone.cancel();
                    return;
                }
                tracing::info!("the database server runs again");
            }
        };
        let thread = thread::Builder::new().name("database-keeper".to_owned());
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread.spawn(keep)?),
            lost,
        })
    }

    /// Cancelled when there is no server any more, and cannot be.
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
