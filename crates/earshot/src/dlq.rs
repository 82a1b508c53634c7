//! `earshot dlq`: messages that could not be processed.

use anyhow::{Context, bail};
use bus::RabbitMq;
use clap::{Args, Subcommand};
use secrecy::ExposeSecret;

use crate::{block_on, database};

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List dead letters, oldest first, without removing them.
    List(Arguments),
    /// Put dead letters back into their queues, to be processed again.
    Requeue(Arguments),
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The queue, such as `webhook-dispatcher.scan-created`; all queues by default.
    queue: Option<String>,
    /// Maximum number per queue.
    #[arg(long, default_value_t = 100)]
    limit: usize,
    /// The configuration file of the services.
    #[command(flatten)]
    config: database::Arguments,
}

pub(crate) fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => block_on(list(&arguments)),
        Command::Requeue(arguments) => block_on(requeue(&arguments)),
    }
}

impl Arguments {
    fn bus(&self) -> anyhow::Result<RabbitMq> {
        let config = self.config.load()?;
        let url = config.bus.url.expose_secret();
        if url.is_empty() {
            bail!("no broker: give --config or EARSHOT_BUS__URL");
        }
        backbone::broker(&config, "earshot-dlq")
    }

    fn queues(&self) -> Vec<&str> {
        match &self.queue {
            Some(queue) => vec![queue],
            None => vec![
                bus::topology::MANAGER_SUBMITTED,
                bus::topology::SCAN_CREATED,
            ],
        }
    }
}

async fn list(arguments: &Arguments) -> anyhow::Result<()> {
    let bus = arguments.bus()?;
    for queue in arguments.queues() {
        for letter in bus
            .dead_letters(queue, arguments.limit)
            .await
            .with_context(|| queue.to_owned())?
        {
            let time = letter
                .create_time
                .map_or_else(|| "-".to_owned(), |time| time.to_string());
            let reason = letter.reason.as_deref().unwrap_or("delivered too often");
            println!("{queue}\t{time}\t{}\t{reason}", letter.event);
        }
    }
    Ok(())
}

async fn requeue(arguments: &Arguments) -> anyhow::Result<()> {
    let bus = arguments.bus()?;
    for queue in arguments.queues() {
        let count = bus
            .requeue_dead_letters(queue, arguments.limit)
            .await
            .with_context(|| queue.to_owned())?;
        eprintln!("{queue}: requeued {count}");
    }
    Ok(())
}
