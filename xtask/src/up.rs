//! `cargo xtask up`: from a new machine to the first Scans.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cargo;
use crate::install::{self, Software};

/// Becomes `earshot dev` in the same process, so that signals and the exit code are those of `earshot dev`.
///
/// Builds the development profile: the release profile takes several times as long, and the demo does not need its
/// speed.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    install::ensure(&[Software::PostgreSql])?;
    // Built in the workspace, but run in the user's directory: `.earshot` and `--config` are relative to it.
    let manifest = cargo::root().join("Cargo.toml");
    let mut command = std::process::Command::new("cargo");
    cargo::forget_this_package(&mut command);
    let error = command
        .args(["run", "--package", "earshot", "--manifest-path"])
        .arg(manifest)
        .args(["--", "dev", "--demo"])
        .args(arguments)
        .exec();
    Err(error).context("run cargo")
}
