//! The demo: simulated platforms, a customer, and the customer's server.
//!
//! The customer uses the API like any other client. It is created once per data directory. Simulator and receiver use
//! the same ports after a restart, so that a later start continues with the same customer.

mod receiver;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use domain::manager::SourceType;
use platforms::{
    Source,
    simulator::{Simulator, demo::Feeder},
};
use receiver::Receiver;
use runtime::config::{Kind, PlatformConfig};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const POST_INTERVAL: Duration = Duration::from_secs(1);
const APPLY_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) struct Demo {
    simulator: Simulator,
    receiver: Receiver,
    memory: Memory,
}

/// State for the next start: `demo.json` in the data directory.
struct Memory {
    path: PathBuf,
    known: Known,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Known {
    simulator_port: u16,
    receiver_port: u16,
    /// The customer's Manager, once it exists.
    manager: Option<String>,
}

impl Memory {
    /// Starts with an empty state if there is no readable file.
    fn read(data_dir: &Path) -> Self {
        let path = data_dir.join("demo.json");
        let known = std::fs::read(&path)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self {
            path,
            known: known.unwrap_or_default(),
        }
    }

    fn write(&self) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec_pretty(&self.known)?;
        std::fs::write(&self.path, bytes)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }
}

impl Demo {
    pub(super) fn start(data_dir: &Path) -> anyhow::Result<Self> {
        let mut memory = Memory::read(data_dir);
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (simulator, receiver) = (memory.known.simulator_port, memory.known.receiver_port);
        let old = Simulator::start(at(simulator)).and_then(|simulator| {
            let receiver = Receiver::start(at(receiver))?;
            Ok((simulator, receiver))
        });
        let (simulator, receiver) = match old {
            Ok(both) => both,
            Err(error) => {
                // The previous customer's server cannot be reached any more, so a new customer is created.
                tracing::warn!(
                    "a port of the previous demo is in use, creating a new demo customer: {error}"
                );
                memory.known = Known::default();
                let simulator =
                    Simulator::start(at(0)).context("cannot start the platform simulator")?;
                let receiver = Receiver::start(at(0)).context("cannot start the demo receiver")?;
                (simulator, receiver)
            }
        };
        memory.known.simulator_port = simulator.addr().port();
        memory.known.receiver_port = receiver.port();
        memory.write()?;
        Ok(Self {
            simulator,
            receiver,
            memory,
        })
    }

    /// Returns the configuration of the simulated platforms.
    pub(super) fn platforms(&self) -> anyhow::Result<Vec<PlatformConfig>> {
        self.simulator
            .settings()
            .into_iter()
            .map(|settings| {
                let kind = Kind::named(&settings.kind).with_context(|| {
                    format!("the simulator has an unknown kind `{}`", settings.kind)
                })?;
                let source = match settings.source {
                    Some(Source::Microblog) => SourceType::Microblog,
                    Some(Source::Network) => SourceType::Network,
                    Some(Source::Forum) | None => SourceType::Forum,
                };
                Ok(PlatformConfig {
                    name: settings.name,
                    kind,
                    source,
                    base_url: settings.base_url,
                    items_url: settings.items_url,
                    poll_interval: settings.poll_interval,
                    access: runtime::config::Access::default(),
                })
            })
            .collect()
    }

    /// Creates the customer, unless it exists, and publishes a post a second until `shutdown`.
    pub(super) async fn run(
        mut self,
        api: SocketAddr,
        key: &str,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<()> {
        let customer = Customer {
            api,
            key,
            http: reqwest::Client::builder().no_proxy().build()?,
        };
        // The posts start at once: those before the Manager is active are within its backfill window.
        let _feeder =
            Feeder::start(&self.simulator, POST_INTERVAL).context("cannot publish demo posts")?;
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            ready = self.prepare(&customer) => ready.context("cannot create the demo customer")?,
        }
        shutdown.cancelled().await;
        Ok(())
    }

    async fn prepare(&mut self, customer: &Customer<'_>) -> anyhow::Result<()> {
        if let Some(manager) = &self.memory.known.manager
            && customer.has(manager).await?
        {
            tracing::info!(manager.name = manager, "the demo customer is ready");
            return Ok(());
        }
        let manager = customer
            .make(&self.simulator.demo_page_url(), &self.receiver.url())
            .await?;
        self.memory.known.manager = Some(manager);
        self.memory.write()
    }
}

struct Customer<'a> {
    api: SocketAddr,
    key: &'a str,
    http: reqwest::Client,
}

impl Customer<'_> {
    /// Returns whether the Manager of an earlier start is in this database.
    async fn has(&self, manager: &str) -> anyhow::Result<bool> {
        let request = self.http.get(format!("http://{}/v1/{manager}", self.api));
        Ok(request
            .bearer_auth(self.key)
            .send()
            .await?
            .status()
            .is_success())
    }

    /// Creates the customer, and returns the name of its Manager once that is active.
    async fn make(&self, page: &str, hook: &str) -> anyhow::Result<String> {
        let namespace = self
            .create("namespaces", &json!({"nickname": "Larkspur (demo)"}))
            .await?;
        let connection = json!({
            "nickname": "demo receiver",
            "type": "HTTP_CONNECTION",
            "url": hook,
            "method": "POST",
            "headers": {"x-demo-secret": receiver::SECRET}
        });
        let connection = self
            .create(&format!("{namespace}/connections"), &connection)
            .await?;
        let manager = json!({
            "nickname": "people who look for a backup",
            "type": "FEED_MANAGER",
            "enable": true,
            "source": {"type": "FORUM"},
            "input": {"type": "STRUCTURED", "urls": [page], "focus": {"type": "SALES"}},
            "notices": [{"type": "HTTP_REQUEST", "connection": connection}]
        });
        let manager = self
            .create(&format!("{namespace}/managers"), &manager)
            .await?;
        let applied = tokio::time::timeout(APPLY_TIMEOUT, self.applied(&manager)).await;
        let applied = applied.context("its Manager is not applied yet")??;
        let brief = applied["instructions"]["brief"]
            .as_str()
            .unwrap_or_default();
        tracing::info!(
            manager.name = manager,
            brief,
            "the demo customer's Manager is active"
        );
        Ok(manager)
    }

    /// Creates a resource and returns its name.
    async fn create(&self, path: &str, body: &Value) -> anyhow::Result<String> {
        let request = self
            .http
            .post(format!("http://{}/v1/{path}", self.api))
            .json(body);
        let made = self.send(request).await?;
        Ok(made["name"]
            .as_str()
            .context("no name in the answer")?
            .to_owned())
    }

    async fn applied(&self, manager: &str) -> anyhow::Result<Value> {
        loop {
            let found = self
                .send(self.http.get(format!("http://{}/v1/{manager}", self.api)))
                .await?;
            match found["state"].as_str() {
                Some("APPLIED") => return Ok(found),
                Some("APPLY_FAILED") => bail!("not applied: {}", found["applyError"]),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Value> {
        let response = request.bearer_auth(self.key).send().await?;
        let status = response.status();
        let body: Value = response.json().await?;
        if !status.is_success() {
            bail!("the API answered {status}: {body}");
        }
        Ok(body)
    }
}
