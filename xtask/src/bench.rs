//! `cargo xtask bench`: figures against goals, by the program `bench` in the release profile.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::cargo;
use crate::install::{self, Software};
use crate::signals::Signals;

/// A bench, which says itself what it measures.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Bench {
    Match,
    Dispatch,
    Api,
    E2e,
}

impl Bench {
    fn name(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Dispatch => "dispatch",
            Self::Api => "api",
            Self::E2e => "e2e",
        }
    }

    fn needs(self) -> &'static [Software] {
        match self {
            Self::Match => &[],
            Self::Dispatch | Self::Api | Self::E2e => &[Software::PostgreSql],
        }
    }
}

pub(crate) fn run(bench: Bench, arguments: &[OsString]) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    install::ensure(bench.needs())?;
    let mut command = cargo::command();
    command
        .args(["run", "--release", "--package", "bench", "--", "--out"])
        .arg(cargo::target_dir()?.join("bench"))
        .arg(bench.name())
        .args(arguments);
    signals.run(command)
}
