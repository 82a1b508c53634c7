//! Finds the installed programs of RabbitMQ and Erlang.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::path;

/// Directories of the program itself in packages. The program on the PATH is often a wrapper that
/// requires one user and the system's own directories.
const PATTERNS: &[&str] = &[
    "/usr/lib/rabbitmq/bin",           // Debian, Ubuntu, Fedora
    "/usr/lib/rabbitmq/lib/*/sbin",    // Alpine, Arch
    "/opt/rabbitmq/sbin",              // the container image
    "/opt/homebrew/opt/rabbitmq/sbin", // Homebrew
    "/usr/local/opt/rabbitmq/sbin",    // Homebrew on Intel
    "/home/linuxbrew/.linuxbrew/opt/rabbitmq/sbin",
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installation {
    pub server: PathBuf,
    /// A search path with the Erlang machine and all other programs that the script calls.
    pub path: OsString,
}

/// The machine has no RabbitMQ server.
#[derive(Debug, PartialEq, Eq)]
pub struct NotInstalled;

impl std::fmt::Display for NotInstalled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            "RabbitMQ is not installed: install the package `rabbitmq-server` (Debian, Ubuntu, Fedora, Alpine) \
             or `rabbitmq` (Arch, Homebrew), or run `cargo xtask test`, which does that",
        )
    }
}

impl std::error::Error for NotInstalled {}

impl Installation {
    pub fn find() -> Result<Self> {
        Self::find_in(path::search_path(), PATTERNS)
    }

    fn find_in(on_path: Vec<PathBuf>, patterns: &[&str]) -> Result<Self> {
        let known = patterns.iter().flat_map(|pattern| path::expand(pattern));
        let server = known
            .chain(on_path.iter().cloned())
            .map(|directory| directory.join("rabbitmq-server"))
            .find(|server| server.is_file())
            .ok_or(NotInstalled)?;
        let usual = [
            "/usr/local/bin",
            "/usr/bin",
            "/bin",
            "/usr/local/sbin",
            "/usr/sbin",
            "/sbin",
        ];
        let path = std::env::join_paths(
            on_path
                .iter()
                .map(PathBuf::as_path)
                .chain(usual.map(Path::new)),
        )?;
        Ok(Self { server, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packaged_rabbitmq_is_preferred_to_the_wrapper() {
        let root = tempfile::tempdir().unwrap();
        let [wrapper, real] = ["sbin", "rabbitmq-4.1"].map(|name| root.path().join(name));
        for directory in [&wrapper, &real] {
            std::fs::create_dir(directory).unwrap();
            std::fs::write(directory.join("rabbitmq-server"), "").unwrap();
        }
        let pattern = format!("{}/rabbitmq-*", root.path().display());
        let find = |patterns: &[&str]| {
            Installation::find_in(vec![wrapper.clone()], patterns)
                .unwrap()
                .server
        };

        assert_eq!(find(&[&pattern]), real.join("rabbitmq-server"));
        assert_eq!(find(&[]), wrapper.join("rabbitmq-server"));
    }

    #[test]
    fn missing_rabbitmq_error_names_the_package() {
        let error = Installation::find_in(Vec::new(), &[]).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&NotInstalled));
        assert!(error.to_string().contains("`rabbitmq-server`"), "{error}");
    }
}
