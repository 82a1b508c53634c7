//! A running server process: signals, waiting, and the end.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::watcher::Watcher;

const TICK: Duration = Duration::from_millis(20);

/// The recipients of signals: only the process, or its whole process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Process,
    Group,
}

/// A child with a watcher. Dropping it kills the child.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    target: Pid,
    _watcher: Watcher,
}

impl Process {
    /// Starts `command` in a new process group; it gets `last_signal` when we die.
    pub(crate) fn spawn(command: &mut Command, reach: Reach, last_signal: Signal) -> Result<Self> {
        let program = command.get_program().to_owned();
        let mut child = command
            .process_group(0)
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let pid = i32::try_from(child.id()).context("process id out of range")?;
        let target = match reach {
            Reach::Process => pid,
            Reach::Group => -pid,
        };
        match Watcher::spawn(last_signal, target) {
            Ok(watcher) => Ok(Self {
                child,
                target: Pid::from_raw(target),
                _watcher: watcher,
            }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The exit status, if it has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for it to end by itself.
    pub(crate) fn wait(mut self) -> Result<ExitStatus> {
        self.child.wait().context("wait for a child process")
    }

    /// Sends each signal and waits for its time; after the last one the child is killed.
    pub(crate) fn stop(mut self, steps: &[(Signal, Duration)]) {
        for (signal, patience) in steps {
            // An error means that it has ended, which the wait finds out.
            let _ = kill(self.target, *signal);
            if self.wait_for(*patience) {
                return;
            }
        }
    }

    fn wait_for(&mut self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        wait_until(deadline, || self.ended().is_some())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            let _ = kill(self.target, Signal::SIGKILL);
            let _ = self.child.wait();
        }
    }
}

/// Calls `done` every few milliseconds until it returns true, or false at the deadline.
pub(crate) fn wait_until(deadline: Instant, mut done: impl FnMut() -> bool) -> bool {
    loop {
        if done() {
            return true;
        }
        if Instant::now() >= deadline {
            return false;
        }
        sleep(TICK);
    }
}
