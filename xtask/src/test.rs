//! `cargo xtask test`: every test of the workspace, with the servers that they need.
//!
//! PostgreSQL and RabbitMQ run only for this run, in the target directory, on free ports. Tests find them by
//! `DATABASE_URL` and `AMQP_URL`; if these are set already, those servers are used. The servers end with the run,
//! however it ends.
//!
//! The web console's tests are a separate group: they run in a browser and against `earshot dev --demo`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Result;
use private_servers::postgres::{Options, Postgres};
use private_servers::rabbitmq::RabbitMq;

use crate::install::{self, Software};
use crate::signals::Signals;
use crate::{cargo, console};

/// Option of this task, which may be at any position among cargo's arguments.
const NO_BROWSER: &str = "--no-browser";
/// Packages whose tests run the programs of others.
const RUN_PROGRAMS: [&str; 2] = ["bench", "tests-e2e"];

pub(crate) fn run(arguments: &[OsString], browser: bool) -> Result<ExitCode> {
    let browser = browser && !own_arguments(arguments).any(|argument| argument == NO_BROWSER);
    let arguments: Vec<_> = arguments
        .iter()
        .filter(|argument| *argument != NO_BROWSER)
        .cloned()
        .collect();
    let arguments = arguments.as_slice();
    let signals = Signals::hold()?;
    let selection = packages(arguments);
    if selection.is_empty()
        || selection
            .iter()
            .any(|package| RUN_PROGRAMS.contains(&package.as_str()))
    {
        let code = signals.run(build(arguments))?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }

    let servers = Servers::start()?;
    let mut test = cargo::command();
    test.arg("test");
    if selection.is_empty() {
        test.arg("--workspace");
    }
    test.args(arguments).envs(servers.urls());
    if !is_set("RUST_TEST_THREADS") {
        // Most tests wait for servers and timers most of the time.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        test.env("RUST_TEST_THREADS", (cores * 2).to_string());
    }
    let code = signals.run(test);
    drop(servers);
    let code = code?;
    if code != ExitCode::SUCCESS || !browser || !is_whole(arguments) {
        return Ok(code);
    }
    let profile = if own_arguments(arguments).any(|argument| argument == "--release") {
        "release"
    } else {
        "debug"
    };
    let earshot = cargo::target_dir()?.join(profile).join("earshot");
    signals.run(console::tests(&earshot)?)
}

/// Returns whether all packages and tests are requested.
fn is_whole(arguments: &[OsString]) -> bool {
    let flags = ["--release", "--locked", "--offline", "--no-fail-fast"];
    arguments
        .iter()
        .all(|argument| flags.iter().any(|flag| argument == flag))
}

/// Builds the binaries that tests run.
///
/// Builds all targets, because these have the features of the tests; otherwise the dependencies would be built twice.
fn build(arguments: &[OsString]) -> Command {
    let mut build = cargo::command();
    build.args(["build", "--workspace", "--all-targets"]);
    build.args(
        own_arguments(arguments)
            .filter(|argument| ["--release", "--locked", "--offline"].contains(argument)),
    );
    build
}

/// Returns the packages that `cargo test` is limited to; `--workspace` would override them.
fn packages(arguments: &[OsString]) -> Vec<String> {
    let mut packages = Vec::new();
    let mut arguments = own_arguments(arguments);
    while let Some(argument) = arguments.next() {
        if argument == "-p" || argument == "--package" {
            packages.extend(arguments.next().map(String::from));
        } else if let Some(package) = argument
            .strip_prefix("--package=")
            .or_else(|| argument.strip_prefix("-p"))
        {
            packages.push(package.trim_start_matches('=').to_owned());
        }
    }
    packages
}

/// Returns the arguments for cargo, without those for the test programs. An argument that is not UTF-8 cannot be one of
/// ours.
fn own_arguments(arguments: &[OsString]) -> impl Iterator<Item = &str> {
    arguments
        .iter()
        .take_while(|argument| *argument != "--")
        .filter_map(|argument| argument.to_str())
}

/// The servers that the environment does not define.
struct Servers {
    postgres: Option<Postgres>,
    rabbitmq: Option<RabbitMq>,
    directory: PathBuf,
}

impl Servers {
    fn start() -> Result<Self> {
        let parent = cargo::target_dir()?.join("test-servers");
        remove_leftovers(&parent);
        let directory = parent.join(std::process::id().to_string());
        let mut servers = Self {
            postgres: None,
            rabbitmq: None,
            directory,
        };

        if !is_set("DATABASE_URL") {
            install::ensure(&[Software::PostgreSql])?;
            let server =
                Postgres::start(&servers.directory.join("postgresql"), &Options::throwaway())?;
            eprintln!("DATABASE_URL={}", server.url());
            servers.postgres = Some(server);
        }
        if !is_set("AMQP_URL") {
            install::ensure(&[Software::RabbitMq])?;
            let server = RabbitMq::start(&servers.directory.join("rabbitmq"))?;
            eprintln!("AMQP_URL={}", server.amqp_url());
            servers.rabbitmq = Some(server);
        }
        Ok(servers)
    }

    fn urls(&self) -> impl Iterator<Item = (&'static str, String)> {
        let postgres = self
            .postgres
            .as_ref()
            .map(|server| ("DATABASE_URL", server.url()));
        let rabbitmq = self
            .rabbitmq
            .as_ref()
            .map(|server| ("AMQP_URL", server.amqp_url()));
        postgres.into_iter().chain(rabbitmq)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        // Their data is not needed any more.
        if let Some(server) = &mut self.rabbitmq {
            server.kill();
        }
        self.rabbitmq = None;
        self.postgres = None;
        // The next run removes what cannot be removed now.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Removes the directories of killed runs.
fn remove_leftovers(parent: &Path) {
    let Ok(runs) = fs::read_dir(parent) else {
        return;
    };
    for run in runs.flatten().map(|entry| entry.path()) {
        let homes = ["postgresql", "rabbitmq"].map(|name| run.join(name));
        if !homes.iter().any(|home| private_servers::is_in_use(home)) {
            let _ = fs::remove_dir_all(run);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests' own convention, not a setting of Earshot"
)]
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value: OsString| value != OsStr::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_told_from_what_goes_to_the_test_programs() {
        let named = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            packages(&arguments).join(" ")
        };
        assert_eq!(
            named(&[
                "-p",
                "store",
                "-pbus",
                "--package=events",
                "--package",
                "domain"
            ]),
            "store bus events domain"
        );
        assert_eq!(named(&["--release", "a_manager", "--", "-p", "x"]), "");
    }

    #[test]
    fn the_browser_is_started_for_the_whole_alone() {
        let whole = |arguments: &[&str]| {
            let arguments: Vec<_> = arguments.iter().map(OsString::from).collect();
            is_whole(&arguments)
        };
        assert!(whole(&[]) && whole(&["--release", "--locked"]));
        assert!(
            !whole(&["-p", "store"]) && !whole(&["a_manager"]) && !whole(&["--", "--nocapture"])
        );
    }
}
