//! A server's log file: the server writes it, and we read it only to explain a failed start.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

/// A larger log is truncated at the next start.
const MAX_SIZE_BYTES: u64 = 16 << 20;
const TAIL_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// Start of the current run's output.
    start: u64,
}

impl Log {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, start: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sends the output of `command` to this log.
    pub(crate) fn attach(&mut self, command: &mut Command) -> Result<()> {
        let file = self
            .open()
            .with_context(|| format!("open {}", self.path.display()))?;
        command
            .stdout(Stdio::from(file.try_clone()?))
            .stderr(Stdio::from(file));
        Ok(())
    }

    fn open(&mut self) -> std::io::Result<File> {
        if fs::metadata(&self.path).is_ok_and(|metadata| metadata.len() > MAX_SIZE_BYTES) {
            fs::remove_file(&self.path)?;
        }
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path)?;
        self.start = file.metadata()?.len();
        Ok(file)
    }

    /// The output since [`Log::attach`], at most the last 64 KiB.
    pub(crate) fn since_start(&self) -> String {
        let read = || -> std::io::Result<Vec<u8>> {
            let mut file = File::open(&self.path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(
                self.start.max(length.saturating_sub(TAIL_BYTES)),
            ))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
    }

    /// The last few lines, for an error message.
    pub(crate) fn last_lines(&self) -> String {
        let text = self.since_start();
        let lines: Vec<_> = text
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        lines[lines.len().saturating_sub(6)..].join("\n")
    }
}
