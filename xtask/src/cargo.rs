//! Runs cargo, and finds the workspace's directories.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Returns the workspace's root directory.
pub(crate) fn root() -> &'static Path {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir)
}

/// Returns the target directory: this program is `target/debug/xtask`, wherever `target` is.
pub(crate) fn target_dir() -> Result<PathBuf> {
    let program = std::env::current_exe().context("find this program's path")?;
    let target = program
        .ancestors()
        .nth(2)
        .context("find the target directory")?;
    Ok(target.to_owned())
}

/// Returns the command `cargo`, to run in the workspace's root.
pub(crate) fn command() -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(root());
    command
}
