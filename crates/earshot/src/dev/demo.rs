//! The demo: simulated platforms, a customer, and the customer's server.
//!
//! The customer speaks to the API like any other client. A start makes a Namespace of its own: the
//! simulator and the receiver of an earlier one are gone.

mod receiver;

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, bail};
use domain::manager::SourceType;
use platforms::{
    Source,
    simulator::{Simulator, demo::Feeder},
};
use receiver::Receiver;
use runtime::config::{Kind, PlatformConfig};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const FREE_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);
const POST_INTERVAL: Duration = Duration::from_secs(1);
const APPLY_TIMEOUT: Duration = Duration::from_secs(15);

pub(super) struct Demo {
    simulator: Simulator,
    receiver: Receiver,
}

impl Demo {
    pub(super) fn start() -> anyhow::Result<Self> {
        let simulator =
            Simulator::start(FREE_PORT.into()).context("cannot start the platform simulator")?;
        let receiver =
            Receiver::start(FREE_PORT.into()).context("cannot start the demo receiver")?;
        Ok(Self {
            simulator,
            receiver,
        })
    }

    /// The simulated platforms, as configuration.
    pub(super) fn platforms(&self) -> anyhow::Result<Vec<PlatformConfig>> {
        self.simulator
            .settings()
            .into_iter()
            .map(|settings| {
                let kind = match settings.kind.as_str() {
                    "hackernews" => Kind::HackerNews,
                    "lemmy" => Kind::Lemmy,
                    "feed" => Kind::Feed,
                    other => bail!("the simulator has a platform of the unknown kind `{other}`"),
                };
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
                })
            })
            .collect()
    }

    /// Makes the customer, and publishes a post a second until `shutdown`.
    pub(super) async fn run(
        self,
        api: SocketAddr,
        key: &str,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<()> {
        let customer = Customer {
            api,
            key,
            http: reqwest::Client::builder().no_proxy().build()?,
        };
        // The posts begin at once: what comes before the Manager is at work is within its look back.
        let _feeder =
            Feeder::start(&self.simulator, POST_INTERVAL).context("cannot publish demo posts")?;
        let (page, hook) = (self.simulator.demo_page_url(), self.receiver.url());
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            made = customer.make(&page, &hook) => made.context("the demo customer")?,
        }
        shutdown.cancelled().await;
        Ok(())
    }
}

struct Customer<'a> {
    api: SocketAddr,
    key: &'a str,
    http: reqwest::Client,
}

impl Customer<'_> {
    async fn make(&self, page: &str, hook: &str) -> anyhow::Result<()> {
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
            "the demo customer's Manager is at work"
        );
        Ok(())
    }

    /// Returns the name of what was made.
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
