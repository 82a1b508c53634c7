//! Signals that end a process.
//!
//! A separate thread and runtime wait for them, so that they work from the first moment, even if all threads of
//! the service are blocked.

use std::{io, process, thread};

use nix::sys::signal::{SigSet, Signal};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{self, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// Returns a token that the first SIGINT or SIGTERM cancels; the second one ends the process at once, with 130
/// or 143, as without a handler.
///
/// It needs no runtime, and no signal is lost after it returns: call it before anything slow.
///
/// # Errors
///
/// If the system refuses signal handlers, or a thread.
pub fn on_signal() -> io::Result<CancellationToken> {
    // The parent process may have blocked them, and we would have inherited that.
    SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]).thread_unblock()?;
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let signals = {
        let _context = runtime.enter();
        Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        }
    };
    let token = CancellationToken::new();
    let cancelled = token.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || wait(&runtime, signals, &cancelled))?;
    Ok(token)
}

fn wait(runtime: &Runtime, mut signals: Signals, token: &CancellationToken) {
    let (name, _) = runtime.block_on(signals.next());
    // Cancel before logging: writing to a log without a reader may block.
    token.cancel();
    tracing::info!(signal = name, "shutting down");
    let (_, number) = runtime.block_on(signals.next());
    // The exit code that a shell shows for a process that a signal ended.
    process::exit(128 + number.as_raw_value());
}

struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    async fn next(&mut self) -> (&'static str, SignalKind) {
        tokio::select! {
            _ = self.interrupt.recv() => ("SIGINT", SignalKind::interrupt()),
            _ = self.terminate.recv() => ("SIGTERM", SignalKind::terminate()),
        }
    }
}
