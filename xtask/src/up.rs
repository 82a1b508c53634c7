//! `cargo xtask up`: from a fresh machine to Scans that arrive.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::cargo;
use crate::install::{self, Software};

/// Ends as `earshot dev`, in this very process, so that signals and the exit code are its own.
///
/// The development profile is built: the release profile takes several times as long, and the demo
/// does not need its speed.
pub(crate) fn run(arguments: &[OsString]) -> Result<ExitCode> {
    install::ensure(&[Software::PostgreSql])?;
    // Built where the workspace is, run where the person is: `.earshot` and `--config` are theirs.
    let manifest = cargo::root().join("Cargo.toml");
    let error = std::process::Command::new("cargo")
        .args(["run", "--package", "earshot", "--manifest-path"])
        .arg(manifest)
        .args(["--", "dev", "--demo"])
        .args(arguments)
        .exec();
    Err(error).context("run cargo")
}
