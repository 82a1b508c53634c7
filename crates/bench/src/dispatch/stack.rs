//! The servers, and the measured dispatcher.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use private_servers::{
    RabbitMq, free_port,
    postgres::{Options, Postgres},
};
use tokio::net::TcpStream;

use super::cpu;

pub(crate) const KEY: &str = "bench:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";

pub(crate) struct Stack {
    home: PathBuf,
    url: String,
    dispatcher: Option<Child>,
    settings: BTreeMap<&'static str, String>,
    last: Vec<f64>,
    spent: Vec<f64>,
    rabbitmq: Arc<Mutex<RabbitMq>>,
    postgres: Postgres,
}

impl Stack {
    pub(crate) async fn start(home: &Path) -> Result<Self> {
        let _ = fs::remove_dir_all(home);
        fs::create_dir_all(home)?;
        let postgres = Postgres::start(&home.join("postgres"), &Options::durable())?;
        let rabbitmq = RabbitMq::start(&home.join("rabbitmq"))?;
        let url = postgres.url();
        store::migrations::migrate(&url).await?;
        Ok(Self {
            home: home.to_owned(),
            url,
            dispatcher: None,
            settings: BTreeMap::new(),
            last: vec![0.0; 3],
            spent: vec![0.0; 3],
            rabbitmq: Arc::new(Mutex::new(rabbitmq)),
            postgres,
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn rabbitmq(&self) -> MutexGuard<'_, RabbitMq> {
        self.rabbitmq.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a killed RabbitMQ again, in another thread: it takes seconds, and the load goes on.
    pub(crate) fn restart_rabbitmq(&self) -> tokio::task::JoinHandle<Result<()>> {
        let rabbitmq = Arc::clone(&self.rabbitmq);
        tokio::task::spawn_blocking(move || {
            let mut rabbitmq = rabbitmq.lock().unwrap_or_else(PoisonError::into_inner);
            rabbitmq.restart()
        })
    }

    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.settings.insert(name, value.to_owned());
    }

    pub(crate) fn unset(&mut self, name: &'static str) {
        self.settings.remove(name);
    }

    pub(crate) async fn start_dispatcher(&mut self) -> Result<()> {
        self.dispatcher = Some(self.spawn_dispatcher().await?);
        Ok(())
    }

    /// Starts another dispatcher, which the caller ends.
    pub(crate) async fn spawn_dispatcher(&self) -> Result<Child> {
        let program = std::env::current_exe()?.with_file_name("webhook-dispatcher");
        let ops = format!("127.0.0.1:{}", free_port()?);
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.home.join("dispatcher.log"))?;
        let process = Command::new(&program)
            .env("EARSHOT_DATABASE__URL", &self.url)
            .env("EARSHOT_BUS__URL", self.rabbitmq().amqp_url())
            .env("EARSHOT_OPS__LISTEN", &ops)
            .env("EARSHOT_SECRETS__ENCRYPTION_KEYS", KEY)
            .env("EARSHOT_OUTBOUND__ALLOW_CIDRS", "127.0.0.0/8")
            .env("EARSHOT_OUTBOUND__ALLOW_HTTP", "true")
            .envs(&self.settings)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("start {}", program.display()))?;
        let begin = Instant::now();
        while TcpStream::connect(&ops).await.is_err() {
            if begin.elapsed() > Duration::from_secs(10) {
                bail!("the dispatcher does not start; see dispatcher.log");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(process)
    }

    /// Kills the dispatcher with SIGKILL.
    pub(crate) fn kill_dispatcher(&mut self) {
        if let Some(mut process) = self.dispatcher.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    pub(crate) fn dispatcher_megabytes(&self) -> Result<f64> {
        let process = self.dispatcher.as_ref().context("no dispatcher runs")?;
        cpu::megabytes(process.id())
    }

    /// Returns the CPU seconds of dispatcher, PostgreSQL and RabbitMQ.
    pub(crate) fn cpu(&mut self) -> Result<f64> {
        let used = cpu::of_descendants(
            |name| match name {
                "webhook-dispatc" => 0,
                name if name.starts_with("postgres") => 1,
                _ => 2,
            },
            3,
        )?;
        self.spent = used
            .iter()
            .zip(&self.last)
            .map(|(used, last)| used - last)
            .collect();
        let sum = used.iter().sum();
        self.last = used;
        Ok(sum)
    }

    /// Returns the CPU time between the last two measurements, by process.
    pub(crate) fn shares(&self) -> String {
        format!(
            "dispatcher {:.2}, PostgreSQL {:.2}, RabbitMQ {:.2} s",
            self.spent[0], self.spent[1], self.spent[2]
        )
    }

    pub(crate) fn stop(mut self) -> Result<()> {
        self.kill_dispatcher();
        self.rabbitmq().kill();
        self.postgres.kill();
        fs::remove_dir_all(&self.home).context("remove the servers' home")
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        self.kill_dispatcher();
    }
}
