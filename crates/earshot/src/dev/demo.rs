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
use client::{Client, Error, Retries};
use domain::manager::SourceType;
use platform_simulator::{Simulator, demo::Feeder};
use platforms::Source;
use receiver::Receiver;
use runtime::{
    Backoff,
    config::{Kind, PlatformConfig},
};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const POST_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest and longest time between two looks whether the Manager is applied. They use up requests of the user's key.
const APPLIED_LOOK: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];

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
        let customer = Customer::new(api, key)?;
        // The posts start at once: those before the Manager is active are within its backfill window.
        let _feeder =
            Feeder::start(&self.simulator, POST_INTERVAL).context("cannot publish demo posts")?;
        let prepared = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            prepared = self.prepare(&customer) => prepared.context("cannot create the demo customer"),
        };
        // The platforms go on: they serve other Managers too.
        if let Err(error) = &prepared {
            tracing::error!("{error:#}");
        }
        shutdown.cancelled().await;
        prepared
    }

    async fn prepare(&mut self, customer: &Customer) -> anyhow::Result<()> {
        if let Some(manager) = &self.memory.known.manager
            && customer.has(manager).await?
        {
            tracing::info!(manager.name = manager, "the demo customer is ready");
            return Ok(());
        }
        let manager = customer
            .make(&self.simulator.demo_page_url(), &self.receiver.url())
            .await?;
        // Before the wait: a process that ends meanwhile continues with this customer.
        self.memory.known.manager = Some(manager.clone());
        self.memory.write()?;
        let applied = customer.applied(&manager).await?;
        let brief = applied["instructions"]["brief"]
            .as_str()
            .unwrap_or_default();
        tracing::info!(
            manager.name = manager,
            brief,
            "the demo customer's Manager is active"
        );
        Ok(())
    }
}

struct Customer {
    api: Client,
}

impl Customer {
    /// The customer waits for as long as the service or its database is unavailable.
    fn new(api: SocketAddr, key: &str) -> anyhow::Result<Self> {
        let base = format!("http://{api}").parse()?;
        let client = Client::new(base, SecretString::from(key))?;
        let api = client.with_retries(Retries { times: u32::MAX });
        Ok(Self { api })
    }

    /// Returns whether the Manager of an earlier start is in this database.
    async fn has(&self, manager: &str) -> anyhow::Result<bool> {
        match self.api.get::<Value>(manager).await {
            Ok(_) => Ok(true),
            Err(Error::Refused(refusal)) if refusal.status == 404 => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Creates the customer, and returns the name of its Manager.
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
        Ok(manager)
    }

    /// Creates a resource and returns its name.
    async fn create(&self, collection: &str, body: &Value) -> anyhow::Result<String> {
        let made: Value = self.api.create(collection, body).await?;
        Ok(made["name"]
            .as_str()
            .context("no name in the answer")?
            .to_owned())
    }

    /// Returns the Manager once it is applied.
    async fn applied(&self, manager: &str) -> anyhow::Result<Value> {
        let [shortest, longest] = APPLIED_LOOK;
        let mut backoff = Backoff::new(shortest, longest);
        loop {
            let found: Value = self.api.get(manager).await?;
            match found["state"].as_str() {
                Some("APPLIED") => return Ok(found),
                Some("APPLY_FAILED") => bail!("not applied: {}", found["applyError"]),
                _ => backoff.wait().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead, BufReader, Read, Write},
        net::{SocketAddr, TcpListener},
        thread,
    };

    use serde_json::{Value, json};

    use super::Customer;

    /// Gives the answers in turn, one per connection, and returns the request lines.
    fn api(answers: Vec<(u16, Value)>) -> (SocketAddr, thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serve = move || {
            answers
                .into_iter()
                .map(move |answer| one(&listener, &answer))
        };
        (address, thread::spawn(move || serve().collect()))
    }

    fn one(listener: &TcpListener, (status, body): &(u16, Value)) -> String {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = BufReader::new(socket.try_clone().unwrap());
        let (mut first, mut length) = (String::new(), 0);
        request.read_line(&mut first).unwrap();
        loop {
            let mut line = String::new();
            request.read_line(&mut line).unwrap();
            let line = line.trim().to_lowercase();
            if let Some(told) = line.strip_prefix("content-length:") {
                length = told.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        request.read_exact(&mut vec![0; length]).unwrap();
        let body = body.to_string();
        write!(
            socket,
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        first.trim().trim_end_matches(" HTTP/1.1").to_owned()
    }

    #[tokio::test]
    async fn an_outage_of_the_database_only_delays_the_customer() {
        let away = || (503, json!({"code": 503, "message": "unavailable"}));
        let named = |name: &str| (201, json!({"name": name}));
        let state = |state: &str| (200, json!({"state": state}));
        let busy = (429, json!({"code": 429, "message": "too many requests"}));
        let (address, asked) = api(vec![
            away(),
            named("namespaces/n"),
            away(),
            named("namespaces/n/connections/c"),
            away(),
            named("namespaces/n/managers/m"),
            away(),
            state("PENDING_APPLY"),
            busy,
            state("APPLIED"),
        ]);
        let customer = Customer::new(address, "esk_x").unwrap();
        let manager = customer
            .make("http://page.test/", "http://hook.test/")
            .await
            .unwrap();
        customer.applied(&manager).await.unwrap();

        let [namespaces, connections, managers, manager] = [
            "POST /v1/namespaces",
            "POST /v1/namespaces/n/connections",
            "POST /v1/namespaces/n/managers",
            "GET /v1/namespaces/n/managers/m",
        ];
        let twice = [namespaces, connections, managers].map(|path| [path; 2]);
        let expected = [twice.as_flattened(), &[manager; 4]].concat();
        assert_eq!(asked.join().unwrap(), expected);
    }

    #[tokio::test]
    async fn only_a_missing_manager_makes_a_new_customer() {
        let missing = || (404, json!({"code": 404, "message": "not found"}));
        let away = (503, json!({"code": 503, "message": "unavailable"}));
        let refused = (403, json!({"code": 403, "message": "forbidden"}));
        let found = (200, json!({"name": "namespaces/n/managers/m"}));
        let (address, asked) = api(vec![away, found, missing(), refused]);
        let customer = Customer::new(address, "esk_x").unwrap();
        assert!(customer.has("namespaces/n/managers/m").await.unwrap());
        assert!(!customer.has("namespaces/n/managers/m").await.unwrap());
        assert!(customer.has("namespaces/n/managers/m").await.is_err());
        assert_eq!(asked.join().unwrap().len(), 4);
    }
}
