//! `earshot mcp`: tools for a language model, with the Model Context Protocol on stdin and stdout.

use std::process::ExitCode;

use clap::Args;

use crate::customer::{self, Failure, Place};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// Offer tools that change things, too.
    #[arg(long)]
    allow_writes: bool,
}

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    customer::finish(serve(arguments))
}

fn serve(arguments: &Arguments) -> Result<(), Failure> {
    let client = arguments.place.client()?;
    let server = if arguments.allow_writes {
        mcp::Server::new(client)
    } else {
        mcp::Server::with_writes(client, false)
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(mcp::on_stdio(server));
    // A thread may still wait for input.
    runtime.shutdown_background();
    served.map_err(|error| Failure::Local(error.to_string()))
}
