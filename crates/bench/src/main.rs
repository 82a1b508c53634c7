//! The benchmarks of Earshot: measure its goals in figures, compared with a reference in the same run.
//!
//! There is one module per bench. Each starts everything it needs, measures, and returns a [`Report`], which this
//! program prints as a table and writes to `<out>/<name>.json`. It fails when a goal is missed. Run with `cargo xtask
//! bench <name>`, in the release profile.

mod api;
mod dispatch;
mod end_to_end;
mod feeds;
mod isolation;
mod jetstream;
mod matching;
mod report;
mod requests;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use report::Report;

/// Quotas that no bench exceeds.
const QUOTAS: store::quotas::Limits = store::quotas::Limits {
    namespaces: u32::MAX,
    managers: u32::MAX,
    connections: u32::MAX,
    feeds: u32::MAX,
    content_bytes: u32::MAX,
    scans_per_day: u32::MAX,
};

#[derive(Parser)]
#[command(name = "bench", about = "Measures Earshot against its goals")]
struct Arguments {
    /// Directory for the figures as JSON
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Subcommand)]
enum Bench {
    /// Measure how many posts the index decides on per second, and how fast
    Match(matching::Options),
    /// Measure how many deliveries are sent per second, and how late
    Dispatch(dispatch::Options),
    /// Measure the cost of lists and creates, compared with pgbench running the same SQL
    Api(api::Options),
    /// Measure the latency from a post on a platform to its committed Scan, through a scanner with many Managers
    E2e(end_to_end::Options),
    /// Measure the cost of reading Bluesky's stream, and check that nothing is lost when it breaks
    Jetstream(jetstream::Options),
    /// Measure how fast feeds are read, and what damaged and hostile ones cost
    Feeds(feeds::Options),
    /// Measure what one account notices of another that does its worst
    Isolation(isolation::Options),
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

/// Runs a bench, and returns whether every goal is met.
fn run(arguments: &Arguments) -> Result<bool> {
    let report: Report = match &arguments.bench {
        Bench::Match(options) => matching::run(options),
        Bench::Dispatch(options) => dispatch::run(options),
        Bench::Api(options) => api::run(options),
        Bench::E2e(options) => end_to_end::run(options),
        Bench::Jetstream(options) => jetstream::run(options),
        Bench::Feeds(options) => feeds::run(options),
        Bench::Isolation(options) => isolation::run(options),
    }?;
    print!("{report}");
    let path = report.write(&arguments.out)?;
    println!("written to {}", path.display());
    Ok(report.is_met())
}
