//! A gateway for one test: its own database, its own port.

use std::sync::Arc;

use api_gateway::Gateway;
use backbone::Backbone;
use domain::{Id, Timestamp, key::ApiKey, key::Role, manager::SourceType};
use runtime::{
    Config,
    config::{EncryptionKey, Kind, PlatformConfig},
};
use secrecy::SecretString;
use store::keys::{self, NewKey};
use test_support::TestDatabase;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::client::Client;

pub(crate) struct TestApp {
    pub(crate) database: TestDatabase,
    pub(crate) base: String,
    shutdown: CancellationToken,
    serving: JoinHandle<anyhow::Result<()>>,
}

impl TestApp {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let database = TestDatabase::create().await;
        let mut config = config(&database.url_of(store::roles::Service::Gateway));
        change(&mut config);
        let (base, shutdown, serving) = spawn(&config);
        Self {
            database,
            base,
            shutdown,
            serving,
        }
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
        self.key(name, Role::Owner, None).await
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
    let (base, shutdown, _serving) = spawn(config);
    (base, shutdown)
}

fn spawn(config: &Config) -> (String, CancellationToken, JoinHandle<anyhow::Result<()>>) {
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
    let serving = Arc::new(backbone);
    let serving = tokio::spawn(async move {
        let _kept = serving;
        gateway.serve(stop).await
    });
    (base, shutdown, serving)
}
