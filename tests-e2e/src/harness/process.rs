//! A program that runs in the background, with its log.
//!
//! The program ends with the test, however the test ends: a small shell reads from a pipe that only the test holds
//! open, and kills the program when the kernel closes that pipe.

use std::{
    fs::{self, OpenOptions},
    io::{Read, Seek, SeekFrom, Write},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

const LAST_LINES: usize = 60;
const TICK: Duration = Duration::from_millis(10);

/// A running program. Dropping it kills the program.
pub(crate) struct Process {
    name: String,
    child: Child,
    watcher: Child,
    log: PathBuf,
    /// Offset in the log where the output of this run begins.
    log_start: u64,
}

impl Process {
    /// Starts the program. Its output goes to `<name>.log` in `directory`, after the output of earlier runs.
    pub(crate) fn spawn(name: &str, command: &mut Command, directory: &Path) -> Self {
        let log = directory.join(format!("{name}.log"));
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&log)
            .unwrap();
        let log_start = file.metadata().unwrap().len();
        let child = command
            .process_group(0) // ctrl-c is for us to handle
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        let watcher = Command::new("/bin/sh")
            .args(["-c", r#"read -r _; kill -9 "$1" 2>/dev/null"#, "watcher"])
            .arg(child.id().to_string())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            name: name.to_owned(),
            child,
            watcher,
            log,
            log_start,
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the most memory that the program had at once since its start, in MiB; `None` if it has ended.
    pub(crate) fn peak_memory(&self) -> Option<u64> {
        // A process that was waited for has no such file, and one that only ended has no memory.
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let mut lines = status.lines();
        let peak = lines.find_map(|line| line.strip_prefix("VmHWM:"))?;
        let kibibytes = peak.split_whitespace().next().unwrap();
        Some(kibibytes.parse::<u64>().unwrap() / 1_024)
    }

    /// Kills the program with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.signal(Signal::SIGKILL);
        self.child.wait().unwrap();
    }

    /// Pauses the program with SIGSTOP.
    pub(crate) fn pause(&self) {
        self.signal(Signal::SIGSTOP);
    }

    /// Resumes the program with SIGCONT.
    pub(crate) fn resume(&self) {
        self.signal(Signal::SIGCONT);
    }

    /// Sends SIGTERM and returns the exit status; panics when the program does not end within `patience`.
    pub(crate) fn terminate(&mut self, patience: Duration) -> ExitStatus {
        self.ask_to_end();
        self.wait_for_end(patience)
    }

    /// Sends SIGTERM.
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Sends SIGTERM to the program and its children, as a closed terminal does.
    pub(crate) fn ask_all_to_end(&self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = killpg(group, Signal::SIGTERM);
    }

    /// Waits for the exit status; panics when the program does not end within `patience`.
    pub(crate) fn wait_for_end(&mut self, patience: Duration) -> ExitStatus {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.ended() {
                return status;
            }
            assert!(
                Instant::now() < deadline,
                "{} did not end within {patience:?} of SIGTERM",
                self.name
            );
            std::thread::sleep(TICK);
        }
    }

    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Returns the output of this run.
    pub(crate) fn output(&self) -> String {
        let bytes = fs::read(&self.log).unwrap();
        let start = usize::try_from(self.log_start).unwrap();
        String::from_utf8_lossy(&bytes[start..]).into_owned()
    }

    /// Returns the output of this run after its first `read` bytes.
    pub(crate) fn output_after(&self, read: u64) -> Vec<u8> {
        let mut file = fs::File::open(&self.log).unwrap();
        file.seek(SeekFrom::Start(self.log_start + read)).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// Adds a line to the log, as if the program had printed it.
    pub(crate) fn write_to_log(&self, line: &str) {
        let file = OpenOptions::new().append(true).open(&self.log);
        file.unwrap()
            .write_all(format!("{line}\n").as_bytes())
            .unwrap();
    }

    /// Waits for a line that begins with `start`; panics with the output when the program ends before.
    pub(crate) async fn line(&mut self, start: &str, patience: Duration) -> String {
        let deadline = Instant::now() + patience;
        loop {
            let ended = self.ended();
            let output = self.output();
            let mut complete = output.split_inclusive('\n').filter(|l| l.ends_with('\n'));
            if let Some(line) = complete.find(|line| line.starts_with(start)) {
                return line.trim_end().to_owned();
            }
            if let Some(status) = ended {
                panic!("{} ended ({status}) before `{start}`:\n{output}", self.name);
            }
            assert!(
                Instant::now() < deadline,
                "{} did not print `{start}` within {patience:?}:\n{output}",
                self.name
            );
            tokio::time::sleep(TICK).await;
        }
    }

    /// Prints the last lines of its log, including earlier runs.
    pub(crate) fn print_log(&self) {
        let bytes = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        eprintln!("--- {}: the end of its log\n{}", self.name, last.join("\n"));
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        // An error means that it has ended.
        let _ = kill(pid, signal);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.watcher.kill();
        let _ = self.watcher.wait();
    }
}
