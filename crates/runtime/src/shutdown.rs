//! Signals that end a process.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Exit code of a process that an operator cut short: 128 and the number of SIGINT.
const CUT_SHORT: i32 = 130;

/// Returns a token that the first SIGINT or SIGTERM cancels; the second one ends the process at
/// once. Call it on a tokio runtime.
///
/// # Errors
///
/// When the system refuses handlers for signals.
pub fn on_signal() -> std::io::Result<CancellationToken> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let token = CancellationToken::new();
    let cancelled = token.clone();
    tokio::spawn(async move {
        let name = either(&mut interrupt, &mut terminate).await;
        tracing::info!(signal = name, "shutting down");
        cancelled.cancel();
        let name = either(&mut interrupt, &mut terminate).await;
        tracing::warn!(signal = name, "second signal, ending at once");
        std::process::exit(CUT_SHORT);
    });
    Ok(token)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) -> &'static str {
    tokio::select! {
        _ = interrupt.recv() => "SIGINT",
        _ = terminate.recv() => "SIGTERM",
    }
}
