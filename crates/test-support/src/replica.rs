//! One replica of a service, in a separate runtime, so that it can be killed like a process.

use std::{future::Future, sync::Arc};

use backbone::Backbone;
use bus::{Bus, Outgoing};
use events::{AnyEvent, Message, TraceContext};
use runtime::{Config, Context, Health, config::EncryptionKey};
use store::roles::Service;
use tokio::{runtime::Runtime, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{TIMEOUT, TestDatabase};

/// Same base configuration as `earshot dev`, on this database under the role of a service, with the key of [`crate::Fixture`].
pub fn config(database: &TestDatabase, service: Service) -> Config {
    let mut config = Config::dev();
    config.database.url = database.url_of(service).into();
    config.secrets.encryption_keys = vec![EncryptionKey::new("test", [7; 32])];
    config
}

/// Publishes an event, as a service does.
///
/// # Panics
/// If the bus does not take it.
pub async fn publish(bus: &Arc<dyn Bus>, event: impl Into<AnyEvent>) {
    let message = Message::new(event);
    let outgoing = Outgoing {
        message: message.encode(),
        create_time: message.create_time,
        trace: TraceContext::default(),
    };
    bus.publish(&outgoing).await.expect("the bus takes it");
}

/// Killed when dropped.
pub struct Replica {
    pub backbone: Backbone,
    pub health: Health,
    pub(crate) service: &'static str,
    shutdown: CancellationToken,
    work: JoinHandle<anyhow::Result<()>>,
    runtime: Option<Runtime>,
}

impl Replica {
    /// Hosts a service with this configuration, on a bus that it shares with others.
    ///
    /// # Panics
    /// If the configuration cannot be used.
    pub fn of<F>(
        service: &'static str,
        config: &Config,
        bus: &Arc<dyn Bus>,
        run: impl FnOnce(Arc<Config>, Context, Backbone) -> F,
    ) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        let mut backbone = Backbone::in_process(config).expect("the configuration is usable");
        backbone.bus = Arc::clone(bus);
        let (config, own) = (Arc::new(config.clone()), backbone.clone());
        Self::start(service, backbone, move |context| run(config, context, own))
    }

    /// Hosts `run` on `backbone`.
    ///
    /// # Panics
    /// If the system has no more threads; the functions below panic if the replica does not behave as expected.
    pub fn start<F>(
        service: &'static str,
        backbone: Backbone,
        run: impl FnOnce(Context) -> F,
    ) -> Self
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        runtime::crypto::install();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name(service)
            .enable_all()
            .build()
            .expect("a runtime starts");
        let context = Context {
            shutdown: CancellationToken::new(),
            health: Health::new(),
            service,
        };
        let (shutdown, health) = (context.shutdown.clone(), context.health.clone());
        let work = run(context.clone());
        let hosting = backbone.clone();
        let work = runtime.spawn(async move { hosting.host(&context, work).await });
        Self {
            backbone,
            health,
            service,
            shutdown,
            work,
            runtime: Some(runtime),
        }
    }

    /// Shuts down like after a signal, and waits for the end.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        tokio::time::timeout(TIMEOUT, &mut self.work)
            .await
            .expect("the replica ends in time")
            .expect("it does not panic")
            .expect("it ends well");
    }

    /// Stops everything at once, like `kill -9`: leases are not returned.
    pub fn kill(self) {}
}

impl Drop for Replica {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
