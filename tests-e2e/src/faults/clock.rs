//! A replica's clock that jumps, using libfaketime. Timers, which count from a moment on, are not affected.
//!
//! Without the library (`apt-get install libfaketime`) clocks stay correct, and the test says so.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

/// Folders of Debian, by architecture, and of other systems.
const FOLDERS: [&str; 4] = [
    "/usr/lib/x86_64-linux-gnu/faketime",
    "/usr/lib/aarch64-linux-gnu/faketime",
    "/usr/lib/faketime",
    "/usr/lib64/faketime",
];
const LIBRARY: &str = "libfaketimeMT.so.1";

pub(super) struct Clock {
    /// File with the clock's error.
    offset: PathBuf,
}

impl Clock {
    /// `name` is the name of this clock's file in `directory`.
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
        // A rename is atomic, so a reader never sees half a file.
        fs::rename(&new, &self.offset).unwrap();
    }

    /// Makes a program that is not started yet use this clock.
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
