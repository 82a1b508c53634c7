//! The common base of every service: the database, the bus, and a heartbeat.
//!
//! A service starts even if its dependencies are unavailable: it waits for a database with the right schema,
//! and reports that in its readiness. While it works, upkeep tasks run next to it: the heartbeat that keeps its
//! leases alive (on a separate connection, so that a busy pool never costs a lease), the publisher of events, the
//! partitions of the coming weeks, the aggregation of statistics, the purge of deleted data. Upkeep ends after the
//! work: a service that drains still holds its leases.

mod clock;
mod heartbeat;
mod keys;
mod patience;
pub mod places;
mod purges;
pub mod shares;
mod stats;
mod upkeep;
pub mod work;

use std::sync::Arc;

use anyhow::Context as _;
use bus::{Bus, EventPublisher, InProcess, RabbitMq, RabbitMqOptions};
use runtime::Config;
use secrecy::ExposeSecret;
use store::Pool;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use clock::Clock;
use heartbeat::Heartbeat;
pub use keys::{LOOK as KEYS_LOOK, follow_keys, sealer};
use purges::Purges;

/// Default quotas, for accounts without overrides.
pub fn default_quotas(config: &Config) -> store::quotas::Limits {
    store::quotas::Limits {
        namespaces: config.quotas.namespaces,
        managers: config.quotas.managers,
        connections: config.quotas.connections,
        feeds: config.quotas.feeds,
        content_bytes: config.quotas.content_bytes,
        scans_per_day: config.quotas.scans_per_day,
    }
}

/// Connections and identity of one replica. Cheap to clone: all clones are the same replica.
#[derive(Clone)]
pub struct Backbone {
    pub pool: Pool,
    pub bus: Arc<dyn Bus>,
    /// Publishes events, each after its commit.
    pub events: EventPublisher,
    /// The owner of this replica's leases.
    pub replica: Uuid,
    /// The only permit for suspects, for all kinds of work: at most one item that may have crashed earlier processes is
    /// in hand.
    suspects: Arc<Semaphore>,
    heartbeat: Arc<Heartbeat>,
    schema_suits: watch::Sender<bool>,
    clock: Arc<Clock>,
}

impl Backbone {
    /// Creates the base for one service in a process: its events go over RabbitMQ. Does not connect yet.
    ///
    /// # Errors
    /// If an address cannot be parsed.
    pub fn new(config: &Config, service: &str) -> anyhow::Result<Self> {
        let bus = broker(config, &format!("earshot-{service}"))?;
        Self::with_bus(config, Arc::new(bus))
    }

    /// Creates the base for all services in one process.
    ///
    /// # Errors
    /// If the database's address cannot be parsed.
    pub fn in_process(config: &Config) -> anyhow::Result<Self> {
        Self::with_bus(config, Arc::new(InProcess::new()))
    }

    fn with_bus(config: &Config, bus: Arc<dyn Bus>) -> anyhow::Result<Self> {
        let url = config.database.url.expose_secret();
        if store::is_plain_by_omission(url) {
            tracing::warn!(
                "connections to the database are not encrypted; if this is intended, add sslmode=disable to the url"
            );
        }
        let size = usize::try_from(config.database.max_connections)?;
        let heartbeat_pool = store::connect(url, 1).context("database.url")?;
        let replica = Uuid::new_v4();
        Ok(Self {
            pool: store::connect(url, size).context("database.url")?,
            bus,
            events: EventPublisher::default(),
            suspects: Arc::new(Semaphore::new(1)),
            heartbeat: Arc::new(Heartbeat::new(heartbeat_pool, replica)),
            replica,
            schema_suits: watch::Sender::new(false),
            clock: Arc::default(),
        })
    }

    /// Runs `work` with the upkeep, and removes the replica after it.
    ///
    /// # Errors
    /// Those of `work`, and the panic of an upkeep task, because the work must not continue without it.
    pub async fn host(
        &self,
        context: &runtime::Context,
        work: impl Future<Output = anyhow::Result<()>>,
    ) -> anyhow::Result<()> {
        let stop = CancellationToken::new();
        let mut upkeep = self.start_upkeep(context, &stop);
        let outcome = tokio::select! {
            outcome = work => outcome,
            Some(ended) = upkeep.join_next() => {
                Err(anyhow::anyhow!("upkeep ended before the work: {ended:?}"))
            }
        };
        stop.cancel();
        while upkeep.join_next().await.is_some() {}
        outcome
    }

    /// Starts a separate task for each part: busy work must not stop the heartbeat.
    fn start_upkeep(&self, context: &runtime::Context, stop: &CancellationToken) -> JoinSet<()> {
        // All checks are registered before any task starts: with only some of them, the process could look ready.
        for check in ["database", "schema", "clock", "bus"] {
            drop(context.health.check(check));
        }
        let mut tasks = JoinSet::new();
        let (own, given, until) = (self.clone(), context.clone(), stop.clone());
        tasks.spawn(async move {
            upkeep::watch_database(&own.pool, &own.schema_suits, &own.clock, &given, &until).await;
        });
        let (own, given, until) = (self.clone(), context.clone(), stop.clone());
        tasks.spawn(async move { upkeep::watch_bus(&own.bus, &given, &until).await });
        let (own, given, until) = (self.clone(), context.clone(), stop.clone());
        let heartbeat = async move { own.heartbeat.run(&given, &until).await };
        tasks.spawn(self.with_schema(stop, heartbeat));
        let (own, until) = (self.clone(), stop.clone());
        let stats = async move { stats::run(&own.pool, &until).await };
        tasks.spawn(self.with_schema(stop, stats));
        let purges = Arc::new(Purges(self.pool.clone()));
        tasks.spawn(self.with_schema(stop, work::run(purges, self, stop)));
        let (own, until) = (self.clone(), stop.clone());
        tasks.spawn(async move { own.events.run(&*own.bus, &until).await });
        tasks
    }

    /// Runs `work` once there is a schema to write to.
    fn with_schema<W: Future<Output = ()>>(
        &self,
        stop: &CancellationToken,
        work: W,
    ) -> impl Future<Output = ()> + use<W> {
        let (schema_suits, stop) = (self.schema_suits.clone(), stop.clone());
        async move {
            if is_set(&schema_suits, &stop).await {
                work.await;
            }
        }
    }

    /// Waits until the database has the right schema and this replica's first heartbeat, without which other replicas
    /// could take over its leases, and until the clock agrees with the database's. Returns `false` if `shutdown` came
    /// first.
    pub async fn ready(&self, shutdown: &CancellationToken) -> bool {
        is_set(self.heartbeat.beating(), shutdown).await
            && is_set(&self.clock.was_right, shutdown).await
    }

    /// Returns true while this process must take no work, because its clock is more than an hour off.
    pub fn is_suspended(&self) -> bool {
        *self.clock.is_wrong.borrow()
    }

    /// Returns true if leases of silent replicas may be taken over: only after this replica's own heartbeat has
    /// been steady for five seconds. While the database was unavailable, all replicas were silent.
    pub fn may_take_over(&self) -> bool {
        self.heartbeat.is_steady()
    }
}

/// Waits until `flag` is set; returns `false` if `stop` came first.
async fn is_set(flag: &watch::Sender<bool>, stop: &CancellationToken) -> bool {
    let mut flag = flag.subscribe();
    tokio::select! {
        () = stop.cancelled() => false,
        found = flag.wait_for(|set| *set) => found.is_ok(),
    }
}

/// Creates the configured broker. Does not connect yet.
fn broker(config: &Config, connection_name: &str) -> anyhow::Result<RabbitMq> {
    let file = &config.bus.ca_certificates_file;
    let options = RabbitMqOptions {
        connection_name: connection_name.to_owned(),
        ca_certificates_file: (!file.is_empty()).then(|| file.into()),
        ..RabbitMqOptions::default()
    };
    RabbitMq::new(config.bus.url.expose_secret(), options).context("bus.url")
}
