//! Runs all tests against real servers, and installs those servers if they are missing.
//!
//! Tests of crates that need PostgreSQL or RabbitMQ get a private server, whose address is in the variables
//! `DATABASE_URL` and `AMQP_URL`; if these are set already, those servers are used. The servers end with the run,
//! however it ends.
//!
//! cargo-nextest runs the tests, by `.config/nextest.toml`. The web console's tests are a separate group: they run in a
//! browser and against `earshot dev --demo`, also after a failure of the others.

mod flaky;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Result;
use nix::sys::statvfs::statvfs;
use nix::unistd::geteuid;
use private_servers::postgres::{Options, Postgres};
use private_servers::rabbitmq::RabbitMq;

use crate::install::{self, Software};
use crate::signals::Signals;
use crate::{cargo, console, nextest};

/// Option of this task, which may be at any position among nextest's arguments.
const NO_BROWSER: &str = "--no-browser";
/// File system in memory.
const MEMORY: &str = "/dev/shm";
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

    let mut test = nextest::command()?;
    test.arg("run");
    if selection.is_empty() {
        test.arg("--workspace");
    }
    if !is_set("NEXTEST_TEST_THREADS") {
        // Most tests wait for servers and timers most of the time.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        test.env("NEXTEST_TEST_THREADS", (cores * 2).to_string());
    }
    let report = cargo::target_dir()?.join("nextest/default/junit.xml");
    let _ = fs::remove_file(&report);
    let servers = Servers::start()?;
    test.args(arguments).envs(servers.urls());
    if servers.postgres.is_some() && servers.directory.starts_with(MEMORY) {
        // Tests that start servers create their files there, too.
        test.env("EARSHOT_TEST_SERVERS", &servers.directory);
    }
    let mut code = signals.run(test)?;
    drop(servers);
    if browser && is_whole(arguments) && !signals.interrupted() {
        let profile = if own_arguments(arguments).any(|argument| argument == "--release") {
            "release"
        } else {
            "debug"
        };
        let earshot = cargo::target_dir()?.join(profile).join("earshot");
        let console = signals.run(console::tests(&earshot)?)?;
        if console != ExitCode::SUCCESS {
            eprintln!("FAILED: tests of the web console");
            code = console;
        }
    }
    if report.exists() {
        for test in flaky::read(&report)? {
            let first = test.outputs.first().map_or("", |output| output.trim());
            println!("FLAKY {}, first output:\n{first}", test.name);
            for loss in test.losses() {
                println!("FAILED, although a retry passed: {}: {loss}", test.name);
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

/// Returns whether all packages and tests are requested.
fn is_whole(arguments: &[OsString]) -> bool {
    let flags = ["--release", "--locked", "--offline", "--no-fail-fast"];
    arguments
        .iter()
        .all(|argument| flags.iter().any(|flag| argument == flag))
}

/// Builds the tests, and the binaries that they run.
///
/// In one build, because tests add features to dependencies, which would be built twice otherwise.
fn build(arguments: &[OsString]) -> Command {
    let mut build = cargo::command();
    build.args(["build", "--workspace", "--bins", "--tests"]);
    build.args(
        own_arguments(arguments)
            .filter(|argument| ["--release", "--locked", "--offline"].contains(argument)),
    );
    build
}

/// Returns the packages that the run is limited to; `--workspace` would override them.
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

/// Returns the arguments for cargo, without those that select tests. An argument that is not UTF-8 cannot be one of
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
        let parent = parent_directory()?;
        remove_leftovers(&parent);
        let directory = parent.join(std::process::id().to_string());
        let mut servers = Self {
            postgres: None,
            rabbitmq: None,
            directory,
        };

        if !is_set("DATABASE_URL") {
            install::ensure(&[Software::PostgreSql])?;
            let options = Options {
                // Each test has separate connection pools.
                settings: vec!["max_connections=600".to_owned()],
                ..Options::throwaway()
            };
            let server = Postgres::start(&servers.directory.join("postgresql"), &options)?;
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

/// Directory of all runs' servers. In memory where there is enough, because each test creates a database of a thousand files.
fn parent_directory() -> Result<PathBuf> {
    const NEEDED: u64 = 8 << 30;
    let available = statvfs(MEMORY).map_or(0, |of| of.blocks_available() * of.fragment_size());
    if available >= NEEDED {
        return Ok(Path::new(MEMORY).join(format!("earshot-test-servers-{}", geteuid())));
    }
    Ok(cargo::target_dir()?.join("test-servers"))
}

/// Removes the directories of killed runs.
fn remove_leftovers(parent: &Path) {
    let Ok(runs) = fs::read_dir(parent) else {
        return;
    };
    for run in runs.flatten().map(|entry| entry.path()) {
        let homes = ["postgresql", "rabbitmq"].map(|name| run.join(name));
        if !homes.iter().any(|home| private_servers::is_in_use(home)) {
            // A test that was killed may have left a disk mounted there.
            if let Err(error) = fs::remove_dir_all(&run) {
                eprintln!("cannot remove {}: {error}", run.display());
            }
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
    fn package_arguments_are_separated_from_test_arguments() {
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
    fn browser_is_started_only_for_the_whole_suite() {
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
