//! The benches of Earshot: what it promises in figures, measured beside a reference in the same run.
//!
//! One module a bench. Each starts what it needs by itself, measures, and returns a [`Report`], which
//! this program prints as a table and writes to `<out>/<name>.json`. It fails when a goal is missed.
//! Run by `cargo xtask bench <name>`, in the release profile.

mod api;
mod dispatch;
mod end_to_end;
mod jetstream;
mod matching;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use report::Report;

#[derive(Parser)]
#[command(name = "bench", about = "Measures Earshot against its goals")]
struct Arguments {
    /// Where the figures are written as JSON
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// How many posts the index decides on in a second, and how fast
    Match(matching::Options),
    /// How many deliveries leave in a second, and how late
    Dispatch(dispatch::Options),
    /// What lists and creates cost, beside pgbench with the same SQL
    Api(api::Options),
    /// From a post on a platform to its committed Scan, through a scanner with many Managers
    E2e(end_to_end::Options),
    /// What reading Bluesky's stream costs, and that it loses nothing when it breaks
    Jetstream(jetstream::Options),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Whether every goal is met.
fn run(arguments: &Arguments) -> Result<bool> {
    let report: Report = match &arguments.bench {
        Bench::Match(options) => matching::run(options),
        Bench::Dispatch(options) => dispatch::run(options),
        Bench::Api(options) => api::run(options),
        Bench::E2e(options) => end_to_end::run(options),
        Bench::Jetstream(options) => jetstream::run(options),
    }?;
    print!("{report}");
    let path = report.write(&arguments.out)?;
    println!("written to {}", path.display());
    Ok(report.is_met())
}
