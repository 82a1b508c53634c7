//! What every service stands on: the database, the bus, the outbox relay, and a heartbeat.
//!
//! A service is started whatever is away: it waits for a database whose schema suits, and says so in
//! its readiness. While it works, upkeep runs beside it: the heartbeat on which its leases hang (on a
//! connection of its own, so that a busy pool never costs a lease), the relay, the partitions of the
//! weeks to come. Upkeep ends after the work has: a service that drains still holds its leases.

mod upkeep;

use std::sync::Arc;

use anyhow::Context as _;
use bus::{Bus, InProcess, OutboxWaker, RabbitMq, RabbitMqOptions, Relay};
use runtime::Config;
use secrecy::ExposeSecret;
use store::{Pool, seal::Sealer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Cheap to clone: all clones are the same replica.
#[derive(Clone)]
pub struct Backbone {
    pub pool: Pool,
    pub bus: Arc<dyn Bus>,
    /// To be woken after each commit that enqueued an event.
    pub outbox: OutboxWaker,
    /// In whose name leases are taken.
    pub replica: Uuid,
    heartbeat_pool: Pool,
    schema_suits: watch::Sender<bool>,
    /// Known to the database as alive, from the first heartbeat on.
    beating: watch::Sender<bool>,
}

impl Backbone {
    /// For the process of one service: its events go over RabbitMQ. Connects to nothing yet.
    ///
    /// # Errors
    /// When an address cannot be read.
    pub fn new(config: &Config, service: &str) -> anyhow::Result<Self> {
        let options = RabbitMqOptions {
            connection_name: format!("earshot-{service}"),
            ..RabbitMqOptions::default()
        };
        let bus = RabbitMq::new(config.bus.url.expose_secret(), options).context("bus.url")?;
        Self::with_bus(config, Arc::new(bus))
    }

    /// For all services in one process.
    ///
    /// # Errors
    /// When the database's address cannot be read.
    pub fn in_process(config: &Config) -> anyhow::Result<Self> {
        Self::with_bus(config, Arc::new(InProcess::new()))
    }

    fn with_bus(config: &Config, bus: Arc<dyn Bus>) -> anyhow::Result<Self> {
        let url = config.database.url.expose_secret();
        let size = usize::try_from(config.database.max_connections)?;
        Ok(Self {
            pool: store::connect(url, size).context("database.url")?,
            heartbeat_pool: store::connect(url, 1).context("database.url")?,
            bus,
            outbox: OutboxWaker::default(),
            replica: Uuid::new_v4(),
            schema_suits: watch::Sender::new(false),
            beating: watch::Sender::new(false),
        })
    }

    /// Runs `work` with upkeep beside it, and ends the replica after it.
    ///
    /// # Errors
    /// Those of `work`.
    pub async fn host(
        &self,
        context: &runtime::Context,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        let relay = Relay::with_waker(
            self.pool.clone(),
            Arc::clone(&self.bus),
            self.outbox.clone(),
        );
        let beside = async {
            let relaying = async {
                if self.ready(&stop).await {
                    relay.run(stop.clone()).await;
                }
            };
            tokio::join!(
                relaying,
                self.beat(context, &stop),
                upkeep::watch_database(&self.pool, &self.schema_suits, context, &stop),
                upkeep::watch_bus(&self.bus, context, &stop),
            );
        };
        let work = async {
            let outcome = work.await;
            stop.cancel();
            outcome
        };
        let (outcome, ()) = tokio::join!(work, beside);
        outcome
    }

    /// Waits for a database whose schema suits and that knows this replica: what is leased before the
    /// first heartbeat would be anybody's. `false` when `shutdown` came first.
    pub async fn ready(&self, shutdown: &CancellationToken) -> bool {
        is_set(&self.beating, shutdown).await
    }

    async fn beat(&self, context: &runtime::Context, stop: &CancellationToken) {
        // Before there is a schema there is nothing to write to.
        if is_set(&self.schema_suits, stop).await {
            upkeep::beat(
                &self.heartbeat_pool,
                self.replica,
                &self.beating,
                context,
                stop,
            )
            .await;
        }
    }
}

/// Waits until `flag` is set; `false` when `stop` came first.
async fn is_set(flag: &watch::Sender<bool>, stop: &CancellationToken) -> bool {
    let mut flag = flag.subscribe();
    tokio::select! {
        () = stop.cancelled() => false,
        found = flag.wait_for(|set| *set) => found.is_ok(),
    }
}

/// The sealer of the configured keys.
///
/// # Errors
/// When `secrets.encryption_keys` is empty.
pub fn sealer(config: &Config) -> anyhow::Result<Sealer> {
    let keys = config
        .secrets
        .encryption_keys
        .iter()
        .map(|key| (key.id().to_owned(), *key.expose_bytes()));
    Sealer::new(keys).context("secrets.encryption_keys")
}
