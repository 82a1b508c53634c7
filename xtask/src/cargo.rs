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
    forget_this_package(&mut command);
    command
}

/// Removes the variables in which cargo describes this package. ring's build script depends on them, so what depends on
/// ring would be built twice: by cargo in a shell, and by cargo under this program.
pub(crate) fn forget_this_package(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let is_ours = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if is_ours {
            command.env_remove(name);
        }
    }
}
