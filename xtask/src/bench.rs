//! `cargo xtask bench`: compares figures with goals, using the program `bench` in the release profile.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::cargo;
use crate::install::{self, Software};
use crate::signals::Signals;

/// A bench. It prints what it measures.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Bench {
    Match,
    Dispatch,
    Api,
    E2e,
    Jetstream,
    Feeds,
    Isolation,
}

impl Bench {
    fn name(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Dispatch => "dispatch",
            Self::Api => "api",
            Self::E2e => "e2e",
            Self::Jetstream => "jetstream",
            Self::Feeds => "feeds",
            Self::Isolation => "isolation",
        }
    }

    /// Returns the programs that it runs.
    fn measures(self) -> &'static [&'static str] {
        match self {
            Self::Match | Self::Feeds => &[],
            Self::Dispatch => &["webhook-dispatcher"],
            Self::Api => &["api-gateway"],
            Self::E2e => &["scanner", "webhook-dispatcher"],
            Self::Jetstream => &["platform-simulator"],
            Self::Isolation => &[
                "api-gateway",
                "manager-compiler",
                "scanner",
                "webhook-dispatcher",
            ],
        }
    }

    fn needs(self) -> &'static [Software] {
        match self {
            Self::Dispatch | Self::E2e | Self::Isolation => {
                &[Software::PostgreSql, Software::RabbitMq]
            }
            Self::Match | Self::Api => &[Software::PostgreSql],
            Self::Jetstream | Self::Feeds => &[],
        }
    }
}

pub(crate) fn run(bench: Bench, arguments: &[OsString]) -> Result<ExitCode> {
    let signals = Signals::hold()?;
    install::ensure(bench.needs())?;
    let target = cargo::target_dir()?;
    let mut build = cargo::command();
    build.args(["build", "--release", "--package", "bench"]);
    // As in a release.
    build.args(["--package", "runtime", "--features", "runtime/jemalloc"]);
    for package in bench.measures() {
        build.args(["--package", package]);
    }
    let built = signals.run(build)?;
    if built != ExitCode::SUCCESS {
        return Ok(built);
    }
    let mut command = Command::new(target.join("release").join("bench"));
    command
        .current_dir(cargo::root())
        .arg("--out")
        .arg(target.join("bench"))
        .arg(bench.name())
        .args(arguments);
    signals.run(command)
}
