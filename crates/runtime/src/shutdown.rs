//! Signals that end a process.
//!
//! They are waited for on a thread and runtime of their own, so that they count from the first moment
//! on, and whatever the service's threads are stuck in.

use std::{io, process, thread};

use nix::sys::signal::{SigSet, Signal};
use tokio::{
    runtime::{Builder, Runtime},
    signal::unix::{self, SignalKind, signal},
};
use tokio_util::sync::CancellationToken;

/// Returns a token that the first SIGINT or SIGTERM cancels; the second one ends the process at
/// once, with 130 or 143, as if it had had no handler.
///
/// Needs no runtime, and from its return on no signal is lost: call it before anything slow.
///
/// # Errors
///
/// When the system refuses handlers for signals, or a thread.
pub fn on_signal() -> io::Result<CancellationToken> {
    // Whoever started us may have held them back, and we would have inherited it.
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
    // Before it is told: a log that nobody reads may block.
    token.cancel();
    tracing::info!(signal = name, "shutting down");
    let (_, number) = runtime.block_on(signals.next());
    // What a shell says of a process that a signal ended.
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
