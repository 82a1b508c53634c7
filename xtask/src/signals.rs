//! Handles Ctrl-C and similar signals, for a task that must clean up.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::thread;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

/// The exit code of shells after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Blocks termination signals, and passes them to the running child.
///
/// Must be created before the first thread.
pub(crate) struct Signals {
    held: SigSet,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    arrived: AtomicBool,
    /// The process group of the running child, or 0.
    group: AtomicI32,
}

impl Signals {
    pub(crate) fn hold() -> Result<Self> {
        let set = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        set.thread_block().context("hold back signals")?;
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            while let Ok(signal) = set.wait() {
                shared.arrived.store(true, Ordering::SeqCst);
                let group = shared.group.load(Ordering::SeqCst);
                if group != 0 {
                    // An error means that the group has just ended.
                    let _ = killpg(Pid::from_raw(group), signal);
                }
            }
        });
        Ok(Self { held: set, state })
    }

    /// Returns whether a signal has arrived.
    pub(crate) fn interrupted(&self) -> bool {
        self.state.arrived.load(Ordering::SeqCst)
    }

    /// Runs `command` until it ends and returns its exit code, or the code for an interruption.
    pub(crate) fn run(&self, mut command: Command) -> Result<ExitCode> {
        if self.interrupted() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        // In a separate process group, ctrl-c at the terminal only reaches this process, which passes it to the child.
        command.process_group(0);
        // A child inherits blocked signals, and would never learn that it must end. A signal at this moment ends this
        // process without cleanup; the servers end with it.
        self.held.thread_unblock().context("let signals through")?;
        let child = command.spawn();
        self.held.thread_block().context("hold back signals")?;
        let mut child = child.with_context(|| format!("start {command:?}"))?;
        let group = i32::try_from(child.id()).context("process id out of range")?;
        self.state.group.store(group, Ordering::SeqCst);
        if self.interrupted() {
            // The signal arrived between the first check and the store.
            let _ = killpg(Pid::from_raw(group), Signal::SIGINT);
        }
        let status = child.wait();
        self.state.group.store(0, Ordering::SeqCst);
        let status = status.context("wait for a child process")?;
        if self.interrupted() {
            return Ok(ExitCode::from(INTERRUPTED));
        }
        Ok(status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from))
    }
}
