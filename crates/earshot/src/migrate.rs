//! `earshot migrate`.

use clap::Args;

use crate::{block_on, database};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    database: database::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let database = arguments.database.open()?;
    let run = block_on(store::migrations::migrate(&database.url))?;
    for name in &run {
        eprintln!("ran {name}");
    }
    if run.is_empty() {
        eprintln!("the schema is up to date");
    }
    Ok(())
}
