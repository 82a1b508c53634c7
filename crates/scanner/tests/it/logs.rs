//! Log lines of this process, warnings and worse.

use std::{
    io,
    sync::{Mutex, OnceLock, PoisonError},
};

use tracing_subscriber::{filter::LevelFilter, fmt::MakeWriter};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static STARTED: OnceLock<()> = OnceLock::new();

struct Lines;

impl io::Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(String::from_utf8_lossy(line).into_owned());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'w> MakeWriter<'w> for Lines {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        Self
    }
}

/// Keeps lines from now on.
pub(crate) fn keep() {
    STARTED.get_or_init(|| {
        tracing_subscriber::fmt()
            .with_max_level(LevelFilter::WARN)
            .with_ansi(false)
            .with_writer(Lines)
            .init();
    });
}

/// Lines that contain `name`: other tests log too.
pub(crate) fn about(name: &str) -> Vec<String> {
    let lines = LINES.lock().unwrap_or_else(PoisonError::into_inner);
    lines
        .iter()
        .filter(|line| line.contains(name))
        .cloned()
        .collect()
}
