//! A server that a killed parent left running, and its pid file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::process::wait_until;

const PATIENCE: Duration = Duration::from_secs(30);

/// The fields of `postmaster.pid` that we need; PostgreSQL documents its lines in `miscadmin.h`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: Pid,
    pub(crate) port: u16,
    pub(crate) ready: bool,
}

impl PidFile {
    pub(crate) fn read(data: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let lines: Vec<_> = text.lines().map(str::trim).collect();
        let pid: i32 = lines.first()?.parse().ok().filter(|pid| *pid > 1)?;
        // The later lines are written while the server starts.
        let port = lines
            .get(3)
            .and_then(|port| port.parse().ok())
            .unwrap_or_default();
        Some(Self {
            pid: Pid::from_raw(pid),
            port,
            ready: lines.get(7) == Some(&"ready"),
        })
    }
}

/// Stops a server that still runs in `data`, and removes a pid file without a server.
///
/// Call this with the home locked: then a server that runs there has lost its parent.
pub(crate) fn clear(data: &Path) -> Result<()> {
    let Some(PidFile { pid, .. }) = PidFile::read(data) else {
        return Ok(());
    };
    if runs_in(pid, data) {
        for signal in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGKILL] {
            // An error means that it has just ended.
            let _ = kill(pid, signal);
            if wait_until(Instant::now() + PATIENCE, || !runs_in(pid, data)) {
                return Ok(());
            }
        }
        bail!(
            "PostgreSQL process {pid} uses {} and does not end",
            data.display()
        );
    }
    // Another process may have this number now, and PostgreSQL would mistake it for a server.
    let path = data.join("postmaster.pid");
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Returns true if process `pid` is a PostgreSQL server whose working directory is `data`.
fn runs_in(pid: Pid, data: &Path) -> bool {
    if kill(pid, None) == Err(nix::errno::Errno::ESRCH) {
        return false;
    }
    if Path::new("/proc/self/cwd").exists() {
        let cwd = fs::metadata(format!("/proc/{pid}/cwd"));
        return match (cwd, fs::metadata(data)) {
            (Ok(cwd), Ok(data)) => (cwd.dev(), cwd.ino()) == (data.dev(), data.ino()),
            // A zombie has none, and we may not read it for other users' processes.
            _ => false,
        };
    }
    let name = Command::new("ps")
        .args(["-o", "comm=", "-p", &pid.to_string()])
        .output();
    name.is_ok_and(|output| {
        String::from_utf8_lossy(&output.stdout)
            .trim()
            .ends_with("postgres")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_pid_files_are_read() {
        let full = "4711\n/data\n1763700000\n20123\n\n127.0.0.1\n  1234  5\nready   \n";
        let pid = Pid::from_raw(4711);
        assert_eq!(
            PidFile::parse(full),
            Some(PidFile {
                pid,
                port: 20123,
                ready: true
            })
        );
        assert_eq!(
            PidFile::parse("4711\n/data\n"),
            Some(PidFile {
                pid,
                port: 0,
                ready: false
            })
        );
        for broken in ["", "x", "0\n", "-1\n", "1\n"] {
            assert_eq!(PidFile::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn stale_pid_file_is_removed_without_a_kill() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("postmaster.pid");
        fs::write(&path, format!("{}\n", std::process::id())).unwrap();
        clear(data.path()).unwrap();
        assert!(!path.exists());
    }
}
