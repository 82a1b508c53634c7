//! `cargo xtask`: what a person who works on Earshot asks of the machine.
//!
//! Builds fast, since it stands before all else: what needs heavy crates runs as a child `cargo`.

mod bench;
mod cargo;
mod console;
mod generate;
mod install;
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
    /// Brings up Earshot with its demo: installs PostgreSQL where it is missing, builds, runs `earshot dev --demo`
    Up {
        /// Further arguments of `earshot dev`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Runs every test, with a private PostgreSQL and RabbitMQ, or those that DATABASE_URL and AMQP_URL name;
    /// those of the web console in a browser come last, unless single tests or packages are asked for
    Test {
        /// Leave out the tests that take a browser
        #[arg(long)]
        no_browser: bool,
        /// Further arguments of `cargo test`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Measures a part against its goals, in the release profile, and writes target/bench/<name>.json
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
        /// Where to write, instead of crates/matching/model
        #[arg(long)]
        out: Option<std::path::PathBuf>,
    },
    /// Writes the generated files
    Generate {
        /// Write nothing, and fail naming the files that differ
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
        Task::Generate { check } => generate::run(check),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
