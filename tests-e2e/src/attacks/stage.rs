//! A running service, and accounts with a Namespace.

use std::{
    ops::Deref,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{api::Api, config, eventually, service::Service};

pub(super) const PATIENCE: Duration = Duration::from_secs(120);
/// Name of the platform whose feeds customers name by their addresses.
const BLOGS: &str = "blogs";

pub(super) struct Stage {
    pub(super) service: Service,
    accounts: AtomicUsize,
}

impl Stage {
    /// Starts the service with its usual settings.
    pub(super) async fn start() -> Self {
        Self::configured(|_| String::new()).await
    }

    /// Starts the service with additional settings, which may use the simulator's address.
    pub(super) async fn configured(more: impl FnOnce(&str) -> String) -> Self {
        let settings = |simulator: &str| with_blogs(config::common(simulator)) + &more(simulator);
        let service = Service::start(settings).await;
        Self {
            service,
            accounts: AtomicUsize::new(0),
        }
    }

    /// Creates an account with a Namespace; no other test gets it.
    pub(super) async fn account(&self, name: &str) -> Account {
        let number = self.accounts.fetch_add(1, Ordering::Relaxed);
        let name = format!("{name}-{number}");
        let owner_key = self.service.key(&name, "OWNER");
        Account::create(&self.service.api_url, owner_key, name).await
    }
}

/// An account, used by its OWNER.
pub(super) struct Account {
    api: Api,
    pub(super) owner_key: String,
    pub(super) name: String,
    pub(super) namespace: String,
}

impl Deref for Account {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Account {
    /// Creates the Namespace of a new account.
    pub(super) async fn create(api_url: &str, owner_key: String, name: String) -> Self {
        let api = Api::new(api_url, &owner_key);
        let namespace = api.create_namespace(&name).await;
        Self {
            api,
            owner_key,
            name,
            namespace,
        }
    }

    /// Creates a Manager that matches posts with `word` in these feeds, and waits until it is applied.
    pub(super) async fn watch(&self, feeds: &[String], word: &str, notices: &[String]) -> Value {
        let created = self
            .create_manager(&self.namespace, &manual(feeds, word, notices))
            .await;
        self.applied(&created, PATIENCE).await
    }

    /// Waits until a Manager has `count` Scans, and returns them, newest first.
    pub(super) async fn wait_for_scans(&self, manager: &Value, count: usize) -> Vec<Value> {
        eventually(&format!("{count} Scans"), PATIENCE, async || {
            let scans = self.scans(manager, 100).await;
            (scans.len() >= count).then_some(scans)
        })
        .await
    }

    /// Returns the path of the account's resources of a kind.
    pub(super) fn path(&self, collection: &str) -> String {
        format!("/v1/{}/{collection}", self.namespace)
    }
}

/// Returns the settings with feeds of customers, and posts from before their first reading.
pub(super) fn with_blogs(settings: String) -> String {
    let settings = settings
        .replace("backfill = \"0s\"", "backfill = \"1h\"")
        // Polls that a test did not ask for would only cost time.
        .replace("poll_interval = \"200ms\"", "poll_interval = \"2s\"");
    settings + &config::customers_feeds(BLOGS)
}

/// A MANUAL Manager that matches posts with `word`.
pub(super) fn manual(feeds: &[String], word: &str, notices: &[String]) -> Value {
    let notices = notices
        .iter()
        .map(|name| json!({"type": "HTTP_REQUEST", "connection": name}));
    json!({
        "nickname": word, "type": "FEED_MANAGER", "source": {"type": "FORUM"},
        "instructions": {"feeds": feeds, "require": [[word]]},
        "notices": notices.collect::<Vec<_>>(),
    })
}

/// Returns the name of the feed at an address.
pub(super) fn feed(url: &str) -> String {
    format!("{BLOGS}:{url}")
}
