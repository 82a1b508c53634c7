//! The product: PostgreSQL, RabbitMQ, and one replica of each service with the default limits.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use http::Method;
use private_servers::{
    RabbitMq, free_port,
    postgres::{Options, Postgres},
};

use super::api::Api;
use crate::dispatch::stack::KEY;

const SERVICES: [&str; 4] = [
    "api-gateway",
    "manager-compiler",
    "scanner",
    "webhook-dispatcher",
];
/// The platform of all feeds, so that both accounts compete for the same capacity.
pub(super) const PLATFORM: &str = "blogs";
const POLL_INTERVAL: &str = "500ms";
const START: Duration = Duration::from_secs(60);

pub(super) struct Product {
    // Services stop before the servers that they use.
    services: Vec<Service>,
    rabbitmq: RabbitMq,
    postgres: Postgres,
    home: PathBuf,
    api_url: String,
}

struct Service {
    name: &'static str,
    process: Child,
    ops: String,
}

impl Product {
    pub(super) async fn start(home: &Path, options: &Options) -> Result<Self> {
        let _ = fs::remove_dir_all(home);
        fs::create_dir_all(home)?;
        let postgres = Postgres::start(&home.join("postgres"), options)?;
        let rabbitmq = RabbitMq::start(&home.join("rabbitmq"))?;
        store::migrations::migrate(&postgres.url()).await?;
        let api = format!("127.0.0.1:{}", free_port()?);
        let mut product = Self {
            services: Vec::new(),
            rabbitmq,
            postgres,
            home: home.to_owned(),
            api_url: format!("http://{api}"),
        };
        for name in SERVICES {
            let service = product.spawn(name, &api)?;
            product.services.push(service);
        }
        for service in &mut product.services {
            service.ready().await?;
        }
        Ok(product)
    }

    fn spawn(&self, name: &'static str, api: &str) -> Result<Service> {
        let ops = format!("127.0.0.1:{}", free_port()?);
        let log = fs::File::create(self.home.join(format!("{name}.log")))?;
        let program = program(name)?;
        let process = Command::new(&program)
            .env("EARSHOT_DATABASE__URL", self.postgres.url())
            .env("EARSHOT_BUS__URL", self.rabbitmq.amqp_url())
            .env("EARSHOT_GATEWAY__LISTEN", api)
            .env("EARSHOT_OPS__LISTEN", &ops)
            .env("EARSHOT_LOG__FILTER", "warn")
            .env("EARSHOT_SECRETS__ENCRYPTION_KEYS", KEY)
            .env("EARSHOT_OUTBOUND__ALLOW_CIDRS", "127.0.0.0/8")
            .env("EARSHOT_OUTBOUND__ALLOW_HTTP", "true")
            .env("EARSHOT_PLATFORMS__0__NAME", PLATFORM)
            .env("EARSHOT_PLATFORMS__0__KIND", "feed")
            .env("EARSHOT_PLATFORMS__0__SOURCE", "NETWORK")
            .env("EARSHOT_PLATFORMS__0__POLL_INTERVAL", POLL_INTERVAL)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        Ok(Service { name, process, ops })
    }

    pub(super) fn api(&self) -> Api {
        Api::new(&self.api_url)
    }

    pub(super) fn database_url(&self) -> String {
        self.postgres.url()
    }

    /// Returns the services with the ids of their processes.
    pub(super) fn processes(&self) -> impl Iterator<Item = (&'static str, u32)> {
        { self.services.iter() }.map(|service| (service.name, service.process.id()))
    }

    pub(super) fn stop(mut self) -> Result<()> {
        self.services.clear();
        self.rabbitmq.kill();
        self.postgres.kill();
        fs::remove_dir_all(&self.home).context("remove the servers' home")
    }
}

impl Service {
    async fn ready(&mut self) -> Result<()> {
        let ops = Api::new(&format!("http://{}", self.ops));
        let begin = Instant::now();
        loop {
            let answer = ops.send(Method::GET, "/readyz", "", None).await;
            if answer.is_ok_and(|answer| answer.status == 200) {
                return Ok(());
            }
            let name = self.name;
            if let Some(status) = self.process.try_wait()? {
                bail!("{name} ended with {status}; see {name}.log");
            }
            ensure!(
                begin.elapsed() < START,
                "{name} is not ready; see {name}.log"
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the path of a program of the same profile. Test programs are one directory deeper.
fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let mut directory = own.parent().context("a program has a directory")?;
    if directory.ends_with("deps") {
        directory = directory.parent().context("deps has a parent")?;
    }
    let program = directory.join(name);
    ensure!(
        program.is_file(),
        "{} is missing: build it with `cargo build --workspace`",
        program.display()
    );
    Ok(program)
}
