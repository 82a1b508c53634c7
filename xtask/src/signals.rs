//! Handles Ctrl-C and similar signals, for a task that must clean up.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

/// The exit code of shells after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Returns the exit code of a task that was interrupted.
pub(crate) fn interrupted() -> ExitCode {
    ExitCode::from(INTERRUPTED)
}

/// Blocks termination signals, and passes them to the running children.
///
/// Must be created before the first thread.
pub(crate) struct Signals {
    held: SigSet,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    arrived: AtomicBool,
    /// The process groups of the running children.
    groups: Mutex<BTreeSet<i32>>,
}

impl State {
    fn groups(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
                for group in shared.groups().iter() {
                    // An error means that the group has just ended.
                    let _ = killpg(Pid::from_raw(*group), signal);
                }
            }
        });
        Ok(Self { held: set, state })
    }

    /// Returns true if a signal has arrived.
    pub(crate) fn interrupted(&self) -> bool {
        self.state.arrived.load(Ordering::SeqCst)
    }

    /// Runs `command` until it ends and returns its exit code, or the code for an interruption. Several threads may do
    /// so at a time.
    pub(crate) fn run(&self, mut command: Command) -> Result<ExitCode> {
        if self.interrupted() {
            return Ok(interrupted());
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
        self.state.groups().insert(group);
        if self.interrupted() {
            // The signal arrived between the first check and the store.
            let _ = killpg(Pid::from_raw(group), Signal::SIGINT);
        }
        let status = child.wait();
        self.state.groups().remove(&group);
        let status = status.context("wait for a child process")?;
        if self.interrupted() {
            return Ok(interrupted());
        }
        Ok(status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .map_or(ExitCode::FAILURE, ExitCode::from))
    }
}
