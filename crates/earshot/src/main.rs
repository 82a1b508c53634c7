//! The customer's and the operator's command line, and Earshot in one process.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed or refused, 2 wrong
//! usage, 3 a service that is not there.
//!
//! Without the feature `server` it is a client alone: small, and quick to build.

mod customer;
#[cfg(feature = "server")]
mod database;
#[cfg(feature = "server")]
mod dev;
#[cfg(feature = "server")]
mod dlq;
#[cfg(feature = "server")]
mod evaluate;
#[cfg(feature = "server")]
mod healthcheck;
#[cfg(feature = "server")]
mod keys;
mod listen;
mod manual;
mod mcp;
#[cfg(feature = "server")]
mod migrate;
#[cfg(feature = "server")]
mod reseal;
mod trigger;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Watches forums, microblogs and networks for posts that matter, and hands them over.
#[derive(Parser)]
#[command(name = "earshot", version = version(), propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Customer(customer::Command),
    /// Print each Scan as it comes, and post it to a server of yours, with no public address.
    Listen(listen::Arguments),
    /// Publish a made-up post in the demo, and let it take the real way.
    Trigger(trigger::Arguments),
    /// Serve a language model's tools on stdin and stdout, by the Model Context Protocol.
    Mcp(mcp::Arguments),
    /// Print what makes a shell complete these commands.
    Completions(manual::Completions),
    /// Print the manual page, or write one for each command.
    Man(manual::Man),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Operator(Operator),
}

/// What works on the database and the broker themselves.
#[cfg(feature = "server")]
#[derive(Subcommand)]
enum Operator {
    /// Run all of Earshot in one process, with a PostgreSQL server of its own.
    Dev(dev::Arguments),
    /// Make, list and revoke API keys.
    #[command(subcommand)]
    Keys(keys::Command),
    /// Bring the database to the schema of this version.
    Migrate(migrate::Arguments),
    /// Seal what customers gave for their Connections by the first of `secrets.encryption_keys`.
    Reseal(reseal::Arguments),
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

fn version() -> String {
    #[cfg(feature = "server")]
    let version = runtime::build_info::version();
    #[cfg(not(feature = "server"))]
    let version = env!("CARGO_PKG_VERSION").to_owned();
    version
}

/// A TLS client that is made before this panics.
fn install_crypto() {
    // An error only says that it is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Runs a short command's future.
fn block_on<T, E: From<std::io::Error>>(work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
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
