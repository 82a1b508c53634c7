//! `cargo xtask`: development tasks of Earshot.
//!
//! Everything else depends on it, so it must build fast: tasks that need heavy crates run a child `cargo`.

mod bench;
mod cargo;
mod console;
mod generate;
mod install;
mod nextest;
mod release;
mod signals;
mod test;
mod train;
mod up;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "Tasks of the Earshot workspace"
)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Starts Earshot with its demo: installs PostgreSQL if it is missing, builds, runs `earshot dev --demo`
    Up {
        /// Further arguments of `earshot dev`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Runs every test by cargo-nextest, with a private PostgreSQL and RabbitMQ, or with those in DATABASE_URL and AMQP_URL.
    /// The browser tests of the web console run last, unless single tests or packages are selected
    Test {
        /// Skip the tests that need a browser
        #[arg(long)]
        no_browser: bool,
        /// Further arguments of `cargo nextest run`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measures a part against its goals, in the release profile, and writes target/bench/NAME.json
    Bench {
        bench: bench::Bench,
        /// Further arguments of the bench
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Trains the model that decides on posts, and writes it with its scores; the same data gives the same bytes
    Train {
        /// The directory of the data sets
        #[arg(long)]
        data: std::path::PathBuf,
        /// Output directory, instead of crates/matching/model
        #[arg(long)]
        out: Option<std::path::PathBuf>,
    },
    /// Sets the version in every file that has it, commits, and tags the commit; pushes nothing
    Release {
        /// The next version, such as 0.2.0: that of the tree if it is not released yet, or one that follows it
        version: release::Version,
        /// Do not sign the tag
        #[arg(long)]
        no_sign: bool,
    },
    /// Writes the generated files
    Generate {
        /// Write nothing, and fail with the names of the files that differ
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Arguments::parse().task {
        Task::Up { arguments } => up::run(&arguments),
        Task::Test {
            no_browser,
            arguments,
        } => test::run(&arguments, !no_browser),
        Task::Bench { bench, arguments } => bench::run(bench, &arguments),
        Task::Train { data, out } => train::run(&data, out),
        Task::Release { version, no_sign } => release::run(version, !no_sign),
        Task::Generate { check } => generate::run(check),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
