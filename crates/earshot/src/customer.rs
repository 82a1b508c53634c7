//! The customer's command line: the functions of the REST API, for terminals and scripts.
//!
//! Data goes to stdout, everything else to stderr. Exit codes: 0 done, 1 refused, 2 wrong usage, 3 service unreachable, 4 `diff` found
//! changes.

mod arguments;
mod body;
mod code;
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
use self::arguments::{Audit, Connections, Deliveries, Managers, Namespaces, Scans};
pub(crate) use self::{
    complain::{Failure, Given},
    foreign::{escaped, one_line},
    output::{Form, print},
    place::Place,
};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Manage Namespaces, which contain everything else.
    Namespaces(Namespaces),
    /// List and change Managers, and try posts on them.
    Managers(Managers),
    /// Manage Connections: your servers, which receive Scans.
    Connections(Connections),
    /// Read Scans: posts that are worth your attention.
    Scans(Scans),
    /// Read deliveries to your Connections, and their results.
    Deliveries(Deliveries),
    /// Read the audit log: who changed what, when, and from where.
    Audit(Audit),
    /// Print the Managers of a Namespace as YAML, for `diff` and `apply`.
    Export(code::Export),
    /// Show what `apply` would change. Exits 0 if nothing, and 4 if something.
    Diff(code::Diff),
    /// Create and change Managers as YAML files say.
    Apply(code::Apply),
}

pub(crate) fn run(command: Command) -> ExitCode {
    finish(crate::block_on(commands::run(command)))
}

/// Prints the error, if any, and returns the exit code.
pub(crate) fn finish(outcome: Result<(), Failure>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
