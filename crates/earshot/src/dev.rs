//! `earshot dev`: all four services in one process, on a private PostgreSQL server.
//!
//! It uses the same service code and SQL as the distributed form; only the bus is in the process. All
//! persistent data is in the data directory: the database, the key that seals secrets, and the API key.

mod demo;
mod secrets;
mod server;

use std::{
    io::Write,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use api_gateway::Gateway;
use backbone::Backbone;
use clap::Args;
use domain::{Timestamp, key::ApiKey, key::Role, manager::SourceType};
use private_servers::{Postgres, postgres::Options};
use runtime::{
    Config, Context, Health,
    config::{Kind, Loader, PlatformConfig},
    telemetry::Output,
};
use secrecy::{ExposeSecret, SecretString};
use tokio_util::sync::CancellationToken;

use self::server::Keeper;
use crate::database::private_home;

const ACCOUNT: &str = "dev";
/// Interval of readiness checks during the start.
const READY_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Directory for the database and the keys.
    #[arg(long, value_name = "DIR", default_value = ".earshot")]
    data_dir: PathBuf,
    /// A configuration file; `EARSHOT_SECTION__KEY` variables override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address of the API; port 0 picks a free one. Overrides `gateway.listen`.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Address of health checks and metrics. Overrides `ops.listen`.
    #[arg(long, value_name = "ADDR")]
    ops_listen: Option<SocketAddr>,
    /// Add simulated platforms, a demo customer and a webhook receiver: no network is needed.
    #[arg(long)]
    demo: bool,
    /// Check the configuration, change nothing, and exit: 0 if it is valid, 1 if not.
    #[arg(long)]
    check_config: bool,
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut config = load(&arguments)?;
    if arguments.check_config {
        return Ok(());
    }
    let telemetry = runtime::telemetry::init("earshot", &config.log, Output::Stderr);
    let outcome = start(&arguments, &mut config);
    telemetry.shutdown();
    outcome
}

fn load(arguments: &Arguments) -> anyhow::Result<Config> {
    let sources = Loader {
        base: Config::dev(),
        file: arguments.config.clone(),
        environment: runtime::environment::variables(),
        ..Loader::default()
    };
    let mut config = sources.load().context("the configuration is wrong")?;
    config.gateway.listen = arguments.listen.unwrap_or(config.gateway.listen);
    config.ops.listen = arguments.ops_listen.unwrap_or(config.ops.listen);
    Ok(config)
}

fn start(arguments: &Arguments, config: &mut Config) -> anyhow::Result<()> {
    let data_dir = &arguments.data_dir;
    std::fs::create_dir_all(data_dir)
        .with_context(|| format!("cannot create {}", data_dir.display()))?;
    // Before the first wait: from now on a signal ends the process gracefully.
    let shutdown = runtime::shutdown::on_signal()?;
    // A port in use is reported at once.
    let health = Health::new();
    let ops = runtime::ops::start(config.ops.listen, health.clone())?;
    let listener = api_gateway::listen(config)?;

    // Stopped when dropped, after everything that uses it.
    let server = private_database(config, data_dir)?
        .map(Keeper::start)
        .transpose()?;
    let server_lost = server.as_ref().map(Keeper::lost).unwrap_or_default();
    let dev_key = secrets::api_key(data_dir)?;
    if config.secrets.encryption_keys.is_empty() {
        config
            .secrets
            .encryption_keys
            .push(secrets::encryption_key(data_dir)?);
    }
    let demo = arguments
        .demo
        .then(|| demo::Demo::start(data_dir))
        .transpose()?;
    if let Some(demo) = &demo {
        config.platforms.extend(demo.platforms()?);
    } else if config.platforms.is_empty() {
        config.platforms.push(hacker_news());
    }

    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let outcome = runtime.block_on(async {
        health.keep_beating();
        let config = Arc::new(config.clone());
        prepare_database(&config, &dev_key).await?;
        let backbone = Backbone::in_process(&config)?;
        let gateway = Gateway::new(listener, &config, &backbone)?;
        let reachable = loopback(gateway.local_addr());
        let scheme = match config.gateway.tls_key_file.is_empty() {
            true => "http",
            false => "https",
        };
        let url = format!("{scheme}://{reachable}");
        secrets::write_profile(data_dir, &url, &dev_key.expose())?;
        let place = Place {
            api: gateway.local_addr(),
            ops: ops.address(),
            key: dev_key.expose(),
        };
        let services = Box::pin(services(&config, &shutdown, &health, backbone, gateway));
        let announcing = announce(&health, &shutdown, place, demo);
        let work = async {
            let (outcome, announced) = tokio::join!(services, announcing);
            outcome.and(announced)
        };
        let work = Box::pin(async {
            tokio::select! {
                outcome = work => outcome,
                () = server_lost.cancelled() => anyhow::bail!("the database server cannot be restarted"),
            }
        });
        runtime::service::drain(work, &shutdown, &health, config.ops.grace_period).await
    });
    // Tasks that are left must not keep the process alive.
    runtime.shutdown_background();
    outcome
}

/// Starts the private server, unless a database is configured.
fn private_database(config: &mut Config, data_dir: &Path) -> anyhow::Result<Option<Postgres>> {
    if !config.database.url.expose_secret().is_empty() {
        return Ok(None);
    }
    let server = Postgres::start(&private_home(data_dir), &Options::durable())?;
    config.database.url = SecretString::from(server.url());
    Ok(Some(server))
}

/// Replaces an unspecified address (all interfaces) with the loopback address.
fn loopback(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    address
}

/// Creates the schema, and the account `dev` with its key.
async fn prepare_database(config: &Config, key: &ApiKey) -> anyhow::Result<()> {
    let url = config.database.url.expose_secret();
    store::migrations::migrate(url).await?;
    let mut conn = store::establish(url)
        .await
        .context("cannot connect to the database")?;
    let now = Timestamp::now();
    let account = store::keys::ensure_account(&mut conn, ACCOUNT, now).await?;
    let new = store::keys::NewKey::new(account, key, Role::Owner);
    store::keys::insert(&mut conn, new, now).await?;
    Ok(())
}

/// Returns the platform that is watched without a configuration.
fn hacker_news() -> PlatformConfig {
    PlatformConfig {
        name: "hackernews".to_owned(),
        kind: Kind::HackerNews,
        source: SourceType::Forum,
        base_url: "https://hn.algolia.com/api/v1".parse().ok(),
        items_url: "https://hacker-news.firebaseio.com/v0".parse().ok(),
        poll_interval: None,
        access: runtime::config::Access::default(),
    }
}

/// Runs all four services in one context; the first that ends stops the others.
async fn services(
    config: &Arc<Config>,
    shutdown: &CancellationToken,
    health: &Health,
    backbone: Backbone,
    gateway: Gateway,
) -> anyhow::Result<()> {
    let context = |service: &'static str| Context {
        shutdown: shutdown.clone(),
        health: if service == "earshot" {
            health.clone()
        } else {
            health.of_service(service)
        },
        service,
    };
    let ended = async |service: &'static str, outcome: anyhow::Result<()>| {
        // All services are needed, so the others stop too, whether it failed or not.
        shutdown.cancel();
        outcome.context(service)
    };
    let work = async {
        let (gateway, compiler, scanner, dispatcher) = tokio::join!(
            async { ended("api-gateway", gateway.serve(shutdown.clone()).await).await },
            async {
                let context = context("manager-compiler");
                let run = manager_compiler::run(Arc::clone(config), context, backbone.clone());
                ended("manager-compiler", run.await).await
            },
            async {
                let run = scanner::run(Arc::clone(config), context("scanner"), backbone.clone());
                ended("scanner", run.await).await
            },
            async {
                let context = context("webhook-dispatcher");
                let run = webhook_dispatcher::run(Arc::clone(config), context, backbone.clone());
                ended("webhook-dispatcher", run.await).await
            },
        );
        gateway.and(compiler).and(scanner).and(dispatcher)
    };
    Box::pin(backbone.host(&context("earshot"), work)).await
}

struct Place {
    api: SocketAddr,
    ops: SocketAddr,
    key: String,
}

/// Prints the ready line once all services are ready, and starts the demo.
async fn announce(
    health: &Health,
    shutdown: &CancellationToken,
    place: Place,
    demo: Option<demo::Demo>,
) -> anyhow::Result<()> {
    while !health.report().is_ready() {
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = tokio::time::sleep(READY_INTERVAL) => {}
        }
    }
    let Place { api, ops, key } = place;
    let line = format!(
        "earshot ready api=http://{api} ops=http://{ops} key={key} console=http://{api}/console\n"
    );
    let mut out = std::io::stdout();
    // A closed stdout is not a reason to stop.
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
    if let Some(demo) = demo {
        demo.run(loopback(api), &key, shutdown).await?;
    }
    Ok(())
}
