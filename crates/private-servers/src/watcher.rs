//! Ends a server when our process dies in any way.
//!
//! A small shell reads from a pipe that only we hold open. The kernel closes it when our process ends,
//! including after `kill -9`, and the shell then signals the server. (`PR_SET_PDEATHSIG` works only on Linux,
//! fires when the spawning *thread* ends, and needs unsafe code.)

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

/// Stops watching when dropped, without a signal.
#[derive(Debug)]
pub(crate) struct Watcher(Child);

impl Watcher {
    /// Sends `signal` to `target` after our process has ended; a negative target is a process group.
    pub(crate) fn spawn(signal: Signal, target: i32) -> Result<Self> {
        let name = signal.as_str().trim_start_matches("SIG");
        Command::new("/bin/sh")
            .args([
                "-c",
                r#"read -r _; kill -s "$1" -- "$2" 2>/dev/null"#,
                "earshot-watcher",
            ])
            .args([name, &target.to_string()])
            .current_dir("/")
            .process_group(0) // we handle ctrl-c at the terminal
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map(Self)
            .context("start /bin/sh to watch over a server")
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Killed before its pipe closes; an error means that it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
