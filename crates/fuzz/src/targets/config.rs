//! The configuration: the operator's file, and environment variables.

use std::{fs, path::PathBuf, sync::LazyLock};

use runtime::config;

/// One file per process; each input overwrites it.
static FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let shared_memory = PathBuf::from("/dev/shm");
    let folder = if shared_memory.is_dir() {
        shared_memory
    } else {
        std::env::temp_dir()
    };
    folder.join(format!("earshot-fuzz-{}.toml", std::process::id()))
});

/// A file, and the same bytes as `NAME=value` lines of an environment.
pub(crate) fn config(data: &[u8]) {
    // Other files may be pipes and devices. The operator may name them, but a fuzzer must not.
    let text = String::from_utf8_lossy(data);
    if text.contains("file") || text.contains("FILE") {
        return;
    }
    if fs::write(&*FILE, data).is_ok() {
        read(config::load(Some(&FILE), Vec::new()));
    }
    let environment = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    read(config::load(None, environment));
}

fn read(loaded: Result<runtime::Config, config::ConfigError>) {
    match loaded {
        Ok(config) => assert!(
            !format!("{config:?}").contains("c4n4ry"),
            "a secret is shown"
        ),
        Err(error) => assert!(!error.to_string().is_empty(), "an error that says nothing"),
    }
}
