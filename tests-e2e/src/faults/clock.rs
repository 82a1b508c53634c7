//! A replica's clock that jumps, by libfaketime; timers, which count from some moment on, are left alone.
//!
//! Without the library (`apt-get install libfaketime`) clocks stay right, and the test says so.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// Debian's, by architecture, and others'.
const FOLDERS: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
];
const LIBRARY: &str = "libfaketimeMT.so.1";

pub(super) struct Clock {
    /// By how much it is wrong.
    offset: PathBuf,
}

impl Clock {
    /// `name` is this clock's own in `directory`.
    pub(super) fn new(directory: &Path, name: &str) -> Self {
        let clock = Self {
            offset: directory.join(format!("{name}.clock")),
        };
        clock.set(Duration::ZERO, true);
        clock
    }

    pub(super) fn set(&self, by: Duration, ahead: bool) {
        let sign = if ahead { '+' } else { '-' };
        let new = self.offset.with_extension("new");
        fs::write(&new, format!("{sign}{}\n", by.as_secs_f64())).unwrap();
        // Whole, whenever it is read.
        fs::rename(&new, &self.offset).unwrap();
    }

    /// Has a program that is yet to be started go by this clock.
    pub(super) fn apply(&self, command: &mut Command) {
        let Some(library) = library() else { return };
        command
            .env("LD_PRELOAD", library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.offset)
            .env("FAKETIME_CACHE_DURATION", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
            .env("FAKETIME_DISABLE_SHM", "1");
    }
}

pub(super) fn library() -> Option<PathBuf> {
    let candidates = FOLDERS.iter().map(|folder| Path::new(folder).join(LIBRARY));
    candidates.into_iter().find(|path| path.is_file())
}
