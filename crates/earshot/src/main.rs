//! The operator's command line, and Earshot in one process.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed or refused, 2 wrong
//! usage.

mod database;
mod dev;
mod dlq;
mod evaluate;
mod healthcheck;
mod keys;
mod migrate;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Watches forums, microblogs and networks for posts that matter, and hands them over.
#[derive(Parser)]
#[command(name = "earshot", version = runtime::build_info::version(), propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[cfg(feature = "server")]
mod reseal;
mod trigger;
#[derive(Subcommand)]
enum Command {
    /// Run all of Earshot in one process, with a PostgreSQL server of its own.
    Dev(dev::Arguments),
    /// Make, list and revoke API keys.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Bring the database to the schema of this version.
    Migrate(migrate::Arguments),
    /// Look at messages that could not be processed, and put them back.
    #[command(subcommand)]
    Dlq(dlq::Command),
    /// Score posts offline against customers' pages.
    Evaluate(evaluate::Arguments),
    /// Exit 0 if the URL answers 200, and 1 if not.
    Healthcheck(healthcheck::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    install_crypto();
    match arguments.command {
        Command::Customer(command) => customer::run(command),
        Command::Listen(arguments) => listen::run(arguments),
        Command::Trigger(arguments) => trigger::run(&arguments),
        Command::Mcp(arguments) => mcp::run(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => customer::finish(manual::man(&arguments)),
        #[cfg(feature = "server")]
        Command::Operator(command) => operate(command),
    }
}

#[cfg(feature = "server")]
fn operate(command: Operator) -> ExitCode {
    let outcome = match command {
        Operator::Dev(arguments) => dev::run(arguments),
        Operator::Keys(command) => keys::run(command),
        Operator::Migrate(arguments) => migrate::run(&arguments),
        Operator::Reseal(arguments) => reseal::run(&arguments),
        Operator::Dlq(command) => dlq::run(command),
        Operator::Evaluate(arguments) => evaluate::run(&arguments),
        Operator::Healthcheck(arguments) => healthcheck::run(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            match error.chain().find_map(|cause| cause.downcast_ref()) {
                Some(wrong) => runtime::service::print_config_error("earshot", wrong),
                None => eprintln!("earshot: {error:#}"),
            }
            ExitCode::FAILURE
        }
    }
}

/// Runs a short command's future.
fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    /// Seal what customers gave for their Connections by the first of `secrets.encryption_keys`.
    Reseal(reseal::Arguments),
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?
        .block_on(work)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        super::Arguments::command().debug_assert();
    }
}
