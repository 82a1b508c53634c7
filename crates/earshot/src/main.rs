//! The command line for customers and operators, and Earshot in one process.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 failed or refused, 2 wrong usage, 3 service
//! unreachable, 4 `diff` found changes.
//!
//! Without the feature `server` it is only a client: small, and quick to build.

#[cfg(feature = "server")]
mod accounts;
mod customer;
#[cfg(feature = "server")]
mod database;
#[cfg(feature = "server")]
mod dev;
#[cfg(all(test, feature = "server"))]
mod documented;
#[cfg(feature = "server")]
mod erase;
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
#[cfg(feature = "server")]
mod sessions;
mod trigger;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Watches forums, microblogs and networks for posts that matter, and delivers them.
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
    /// Print each Scan when it arrives, and post it to your server, without a public address.
    Listen(listen::Arguments),
    /// Publish a test post in the demo, which is processed like any other post.
    Trigger(trigger::Arguments),
    /// Serve tools for a language model on stdin and stdout, with the Model Context Protocol.
    Mcp(mcp::Arguments),
    /// Print a shell's completion script for these commands.
    Completions(manual::Completions),
    /// Print the manual page, or write one for each command.
    Man(manual::Man),
    #[cfg(feature = "server")]
    #[command(flatten)]
    Operator(Operator),
}

/// Commands that use the database and the broker directly.
#[cfg(feature = "server")]
#[derive(Subcommand)]
enum Operator {
    /// Run all of Earshot in one process, with a private PostgreSQL server.
    Dev(dev::Arguments),
    /// List accounts and set their quotas.
    #[command(subcommand)]
    Accounts(accounts::Command),
    /// Create, change, list and revoke API keys.
    #[command(subcommand)]
    Keys(keys::Command),
    /// List and revoke the sessions of people who signed in to the console.
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Migrate the database to the schema of this version.
    Migrate(migrate::Arguments),
    /// Seal the secrets of Connections with the first of `secrets.encryption_keys`.
    Reseal(reseal::Arguments),
    /// Erase the stored posts of one author.
    Erase(erase::Arguments),
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
        Operator::Accounts(command) => accounts::run(&command),
        Operator::Keys(command) => keys::run(command),
        Operator::Sessions(command) => sessions::run(command),
        Operator::Migrate(arguments) => migrate::run(&arguments),
        Operator::Reseal(arguments) => reseal::run(&arguments),
        Operator::Erase(arguments) => erase::run(&arguments),
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

/// Installs the crypto provider. A TLS client that is created before this panics.
fn install_crypto() {
    // An error only means that it is already installed.
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
    fn command_line_definition_is_valid() {
        super::Arguments::command().debug_assert();
    }
}
