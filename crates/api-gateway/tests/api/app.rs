//! A gateway for one test: its own database, its own port.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use api_gateway::Gateway;
use backbone::Backbone;
use bus::EventPublisher;
use domain::{Id, Instructions, Timestamp, key::ApiKey, key::Role, manager::SourceType};
use runtime::{
    Config,
    config::{EncryptionKey, Kind, PlatformConfig},
};
use secrecy::SecretString;
use serde_json::Value;
use store::{
    keys::{self, NewKey},
    managers,
};
use test_support::{QUOTAS, TestDatabase};
use tokio::{net::TcpStream, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::client::{Client, manual_body};

pub(crate) struct TestApp {
    pub(crate) database: TestDatabase,
    pub(crate) base: String,
    shutdown: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
    /// No task sends them.
    events: EventPublisher,
    /// Number of events that are forgotten.
    forgotten: AtomicUsize,
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let database = TestDatabase::create().await;
        let mut config = config(&database.url_of(store::roles::Service::Gateway));
        change(&mut config);
        let (base, shutdown, serving, events) = spawn(&config);
        Self {
            database,
            base,
            shutdown,
            serving,
            events,
            forgotten: AtomicUsize::new(0),
        }
    }

    /// Routing keys of the published events, except the forgotten ones.
    pub(crate) fn events(&self) -> Vec<String> {
        let all = self.events.waiting();
        all[self.forgotten.load(Ordering::Relaxed)..].to_vec()
    }

    pub(crate) fn forget_events(&self) {
        let all = self.events.waiting().len();
        self.forgotten.store(all, Ordering::Relaxed);
    }

    /// Starts the stop.
    pub(crate) fn stop(&self) {
        self.shutdown.cancel();
    }

    /// Waits until the stop has finished.
    pub(crate) async fn stopped(&mut self) -> anyhow::Result<()> {
        (&mut self.serving).await.unwrap()
    }

    /// Returns a client with a new OWNER key of the account `name`. Creates the account if it does not exist.
    pub(crate) async fn account(&self, name: &str) -> Client {
        Client::new(&self.base, Some(self.owner_key(name).await))
    }

    /// Returns a new OWNER key of the account.
    pub(crate) async fn owner_key(&self, account: &str) -> String {
        let key = ApiKey::generate();
        self.store_key(account, &key, Role::Owner, None, None).await;
        key.expose()
    }

    pub(crate) async fn key(
        &self,
        account: &str,
        role: Role,
        namespaces: Option<&[&str]>,
    ) -> Client {
        let ids: Option<Vec<Id>> =
            namespaces.map(|names| names.iter().map(|n| last_id(n)).collect());
        let key = ApiKey::generate();
        self.store_key(account, &key, role, ids.as_deref(), None)
            .await;
        Client::new(&self.base, Some(key.expose()))
    }

    pub(crate) async fn store_key(
        &self,
        account: &str,
        key: &ApiKey,
        role: Role,
        namespaces: Option<&[Id]>,
        expire_time: Option<Timestamp>,
    ) {
        self.store_limited_key(account, |account| NewKey {
            namespaces,
            expire_time,
            ..NewKey::new(account, key, role)
        })
        .await;
    }

    pub(crate) async fn store_limited_key<'a>(
        &self,
        account: &str,
        new: impl FnOnce(Id) -> NewKey<'a>,
    ) {
        let mut conn = self.database.connect().await;
        let now = Timestamp::now();
        let account = keys::ensure_account(&mut conn, account, now).await.unwrap();
        keys::insert(&mut conn, new(account), now).await.unwrap();
    }

    /// Creates a MANUAL Manager whose instructions are in use, and returns its name.
    pub(crate) async fn manual_manager(
        &self,
        client: &Client,
        namespace: &str,
        instructions: &Value,
    ) -> String {
        let path = format!("/v1/{namespace}/managers");
        let name = client.made(&path, &manual_body(instructions)).await;
        let instructions = serde_json::from_value(instructions.clone()).unwrap();
        self.apply(&name, &instructions).await;
        name
    }

    /// Applies instructions to a new Manager, as the compiler does.
    pub(crate) async fn apply(&self, manager: &str, instructions: &Instructions) {
        let name = manager.parse().unwrap();
        let mut conn = self.database.connect().await;
        let now = Timestamp::now();
        let applied = managers::apply(&mut conn, name, 1, instructions, &QUOTAS, now).await;
        assert!(applied.unwrap().is_some());
    }

    /// Opens a TCP connection to the gateway.
    pub(crate) async fn connect(&self) -> TcpStream {
        let (_, address) = self.base.split_once("://").unwrap();
        TcpStream::connect(address).await.unwrap()
    }

    /// Client without a key.
    pub(crate) fn stranger(&self) -> Client {
        Client::new(&self.base, None)
    }
}

impl Drop for TestApp {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

/// Returns the last segment of a name.
pub(crate) fn last_id(name: &str) -> Id {
    name.rsplit('/').next().unwrap().parse().unwrap()
}

pub(crate) fn config(database_url: &str) -> Config {
    let mut config = Config::default();
    config.database.url = SecretString::from(database_url);
    config.bus.url = SecretString::from("in-process:");
    config.gateway.listen = ([127, 0, 0, 1], 0).into();
    config.gateway.rate_limit_per_minute = 1_000_000;
    config.gateway.drain_delay = std::time::Duration::ZERO;
    config.secrets.encryption_keys = vec![EncryptionKey::new("test", [7; 32])];
    config.platforms = vec![PlatformConfig {
        name: "hackernews".to_owned(),
        kind: Kind::HackerNews,
        source: SourceType::Forum,
        base_url: None,
        items_url: None,
        poll_interval: None,
        access: runtime::config::Access::default(),
    }];
    config
}

/// Serves until the token is cancelled, and returns the address.
pub(crate) fn serve(config: &Config) -> (String, CancellationToken) {
    let (base, shutdown, _serving, _events) = spawn(config);
    (base, shutdown)
}

fn spawn(
    config: &Config,
) -> (
    String,
    CancellationToken,
    JoinHandle<anyhow::Result<()>>,
    EventPublisher,
) {
    let backbone = Backbone::in_process(config).unwrap();
    let gateway = Gateway::new(api_gateway::listen(config).unwrap(), config, &backbone)
        .unwrap()
        .alone_in_process(config, &backbone);
    let scheme = if config.gateway.tls_key_file.is_empty() {
        "http"
    } else {
        "https"
    };
    let base = format!("{scheme}://{}", gateway.local_addr());
    let shutdown = CancellationToken::new();
    let stop = shutdown.clone();
    let events = backbone.events.clone();
    let serving = Arc::new(backbone);
    let serving = tokio::spawn(async move {
        let _kept = serving;
        gateway.serve(stop).await
    });
    (base, shutdown, serving, events)
}
