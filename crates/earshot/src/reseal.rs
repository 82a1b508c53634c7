//! `earshot reseal`.

use anyhow::{Context, bail};
use clap::Args;
use store::connections;

use crate::{block_on, database};

const AT_ONCE: i64 = 200;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    database: database::Arguments,
}

/// Can run next to running services, and can be repeated: values that the first key has sealed stay unchanged.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let config = arguments.database.load()?;
    let sealer = backbone::sealer(&config)?;
    let database = arguments.database.open()?;
    let (seen, changed, unreadable) = block_on(async {
        let mut conn = store::establish(&database.url)
            .await
            .context("cannot connect to the database")?;
        let (mut seen, mut changed, mut unreadable, mut after) = (0, 0, 0, None);
        loop {
            let done = connections::reseal(&mut conn, &sealer, after, AT_ONCE).await?;
            for (name, error) in &done.unreadable {
                eprintln!("{name}: {error}");
            }
            seen += done.seen;
            changed += done.changed;
            unreadable += done.unreadable.len();
            if done.last.is_none() {
                return anyhow::Ok((seen, changed, unreadable));
            }
            after = done.last;
        }
    })?;
    eprintln!("resealed {changed} of {seen} Connections");
    if unreadable > 0 {
        bail!("{unreadable} cannot be decrypted: their keys are not in secrets.encryption_keys");
    }
    Ok(())
}
