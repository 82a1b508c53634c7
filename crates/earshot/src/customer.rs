//! The customer's command line: what the REST API can do, in a terminal and in scripts.
//!
//! Data goes to stdout, all else to stderr. Exit codes: 0 done, 1 refused, 2 wrong usage, 3 nobody there.

mod arguments;
mod body;
mod commands;
mod complain;
mod foreign;
mod output;
pub(crate) mod place;
mod resources;

use std::process::ExitCode;

use clap::Subcommand;

#[cfg(feature = "server")]
pub(crate) use self::arguments::SensitivityWord;
use self::arguments::{Connections, Deliveries, Managers, Namespaces, Scans};
pub(crate) use self::{
    complain::{Failure, Given},
    foreign::{escaped, one_line},
    output::{Form, print},
    place::Place,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Containers of everything else.
    Namespaces(Namespaces),
    /// What watches: list and change them, try posts on them.
    Managers(Managers),
    /// Servers of yours, to which Scans are delivered.
    Connections(Connections),
    /// Posts that were found worth your attention.
    Scans(Scans),
    /// What was sent to your Connections, and what came of it.
    Deliveries(Deliveries),
}

pub(crate) fn run(command: Command) -> ExitCode {
    finish(crate::block_on(commands::run(command)))
}

/// Says what went wrong, and turns it into an exit code.
pub(crate) fn finish(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
