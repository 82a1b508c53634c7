//! `cargo xtask train`: creates the model file of `matching` from data sets on disk.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::cargo;

pub(crate) fn run(data: &Path, out: Option<PathBuf>) -> Result<ExitCode> {
    ensure!(data.is_dir(), "`{}` is not a directory", data.display());
    let data = data.canonicalize().context("find the data sets")?;
    let out = match out {
        Some(out) => out
            .canonicalize()
            .context("find the directory to write to")?,
        None => cargo::root().join("crates/matching/model"),
    };
    let status = cargo::command()
        .args(["run", "--quiet", "--release"])
        .args(["--manifest-path", "tools/train/Cargo.toml"])
        .arg("--target-dir")
        .arg(cargo::target_dir()?)
        .arg("--")
        .args([&data, &out])
        .status()
        .context("run cargo")?;
    ensure!(status.success(), "no model was created");
    println!("wrote {}", out.join("model.bin").display());
    Ok(ExitCode::SUCCESS)
}
