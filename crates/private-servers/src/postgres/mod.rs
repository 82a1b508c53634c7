//! A private PostgreSQL server.
//!
//! Its home has the `data` directory, the server's log, the password and the lock. It listens only on
//! 127.0.0.1, on a private port, and has one role and one database, both named `earshot`.
//!
//! It can start on a home whose last parent was killed: an orphaned server is stopped cleanly ([`orphan`]), and
//! PostgreSQL recovers the `data` of a crash itself.
//!
//! [`install`] finds the server's programs, [`cluster`] creates and opens the data directory.

mod cluster;
mod install;
mod orphan;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use self::cluster::Cluster;
pub use self::install::{Installation, NotInstalled};
use self::orphan::PidFile;
use crate::home::Home;
use crate::log::Log;
use crate::ports::{free_port, is_free};
use crate::process::{Process, Reach};
use crate::tls::Tls;

/// Name of the role and the database.
const NAME: &str = "earshot";
/// Recovery after a crash may have much to read.
const START_TIMEOUT: Duration = Duration::from_secs(120);
/// Retries for temporary failures: a predecessor's memory still in use, or a port that is in use for a moment.
const RETRY_TIMEOUT: Duration = Duration::from_secs(15);
/// First a fast shutdown, which ends sessions and writes a checkpoint; then an immediate one.
const STOP: &[(Signal, Duration)] = &[
    (Signal::SIGINT, Duration::from_secs(30)),
    (Signal::SIGQUIT, Duration::from_secs(5)),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// True if data must survive a power failure. Otherwise tests run several times as fast.
    pub durable: bool,
    /// The port to listen on; `None` takes a free one at each start.
    pub port: Option<u16>,
    /// Certificate of the server, to accept encrypted connections too.
    pub tls: Option<Tls>,
    /// Further settings as `name=value`; they override ours.
    pub settings: Vec<String>,
    /// Environment variables of the server, which inherits none of ours.
    pub environment: Vec<(String, String)>,
}

impl Options {
    /// For data that matters.
    pub fn durable() -> Self {
        Self {
            durable: true,
            port: None,
            tls: None,
            settings: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// For tests.
    pub fn throwaway() -> Self {
        Self {
            durable: false,
            port: None,
            tls: None,
            settings: Vec::new(),
            environment: Vec::new(),
        }
    }
}

/// A running server; stopped when dropped.
#[derive(Debug)]
pub struct Postgres {
    cluster: Cluster,
    options: Options,
    password: String,
    port: u16,
    log: Log,
    process: Option<Process>,
    // The last field, so that the lock is released after everything else.
    _home: Home,
}

impl Postgres {
    /// Starts the server with the home `home`, and creates its data directory if it does not exist.
    pub fn start(home: &Path, options: &Options) -> Result<Self> {
        let home = Home::open(home)?;
        let password = home.secret("password")?;
        let mut log = Log::new(home.join("server.log"));
        let cluster = Cluster::open(&home, &password, options.durable, &mut log)
            .with_context(|| format!("prepare PostgreSQL in {}", home.path().display()))?;
        if let Some(tls) = &options.tls {
            cluster.write_tls(tls)?;
        }
        let mut server = Self {
            cluster,
            options: options.clone(),
            password,
            port: 0,
            log,
            process: None,
            _home: home,
        };
        server.launch()?;
        Ok(server)
    }

    /// Starts a standby of this server in the new home `home`: a copy by `pg_basebackup` that follows by streaming
    /// replication. It reaches this server at `port`, which may be a proxy's.
    ///
    /// This server needs the settings `wal_level=replica` and `max_wal_senders` of at least 2.
    pub fn start_standby(&self, home: &Path, port: u16) -> Result<Self> {
        let home = Home::open(home)?;
        home.set_secret("password", &self.password)?;
        let mut log = Log::new(home.join("server.log"));
        let primary = url(&self.password, port);
        let cluster = Cluster::copy(&home, &primary, &mut log)
            .with_context(|| format!("copy PostgreSQL to {}", home.path().display()))?;
        let mut server = Self {
            cluster,
            options: Options {
                port: None,
                ..self.options.clone()
            },
            password: self.password.clone(),
            port: 0,
            log,
            process: None,
            _home: home,
        };
        server.launch()?;
        Ok(server)
    }

    /// Makes a standby the primary; returns when it accepts changes.
    pub fn promote(&self) -> Result<()> {
        let promoted = self.query("SELECT pg_promote(true, 60)")?;
        if promoted != "t" {
            bail!("the standby was not promoted within 60 s");
        }
        Ok(())
    }

    /// The address of the server that another process runs in `home`, or `None` if no server runs.
    ///
    /// Waits for a server that is just starting.
    pub fn running_url(home: &Path) -> Result<Option<String>> {
        let deadline = Instant::now() + START_TIMEOUT;
        while Home::is_held(home) {
            if let Some(file) = PidFile::read(&home.join("data")).filter(|file| file.ready) {
                let path = home.join("password");
                let password = fs::read_to_string(&path)
                    .with_context(|| format!("read {}", path.display()))?;
                return Ok(Some(url(&password, file.port)));
            }
            if Instant::now() > deadline {
                bail!(
                    "the process that holds {} does not run PostgreSQL there",
                    home.display()
                );
            }
            sleep(Duration::from_millis(50));
        }
        Ok(None)
    }

    pub fn url(&self) -> String {
        url(&self.password, self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Replaces the certificate for the connections from now on, without a restart.
    pub fn renew(&self, tls: &Tls) -> Result<()> {
        self.cluster.write_tls(tls)?;
        self.query("SELECT pg_reload_conf()")?;
        Ok(())
    }

    /// Returns true if the server process runs; false after a crash.
    pub fn is_running(&mut self) -> bool {
        self.process
            .as_mut()
            .is_some_and(|process| process.ended().is_none())
    }

    /// Ends all sessions and stops; returns when the server is gone.
    pub fn stop(&mut self) {
        if let Some(process) = self.process.take() {
            process.stop(STOP);
        }
    }

    /// Kills the server as `kill -9` does.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts a stopped or killed server again: same port, same data.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        self.options.port = Some(self.port);
        self.launch()
    }

    /// Starts a stopped or killed server again with the same data, on another port.
    pub fn restart_elsewhere(&mut self) -> Result<()> {
        self.stop();
        self.options.port = None;
        self.launch()
    }

    /// The output of `psql` for the statements: rows as lines, columns separated by `|`.
    pub fn query(&self, sql: &str) -> Result<String> {
        let output = Command::new(self.cluster.program("psql"))
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-d", &self.url()])
            .args(["-c", sql])
            .output()
            .context("run psql")?;
        if !output.status.success() {
            bail!("{sql}: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout)
            .trim_end()
            .to_owned())
    }

    fn launch(&mut self) -> Result<()> {
        let give_up = Instant::now() + RETRY_TIMEOUT;
        loop {
            orphan::clear(self.cluster.path())?;
            self.port = match self.options.port {
                Some(port) => port,
                None => free_port()?,
            };
            let Err(output) = self.try_launch()? else {
                return Ok(());
            };

            let passes = output.contains("shared memory block")
                || output.contains("postmaster.pid")
                || output.contains("could not bind")
                    && (self.options.port.is_none() || is_free(self.port));
            if !passes || Instant::now() > give_up {
                bail!(
                    "PostgreSQL did not start on port {}; {} says:\n{}",
                    self.port,
                    self.log.path().display(),
                    self.log.last_lines()
                );
            }
            sleep(Duration::from_millis(200));
        }
    }

    /// Starts the process and waits until it accepts connections. If it ends first, returns its output.
    fn try_launch(&mut self) -> Result<Result<(), String>> {
        let mut command = self.cluster.command("postgres")?;
        command.args(settings(self.port, &self.options));
        command.envs(self.options.environment.iter().cloned());
        self.log.attach(&mut command)?;
        let mut process = Process::spawn(&mut command, Reach::Process, Signal::SIGINT)?;

        let deadline = Instant::now() + START_TIMEOUT;
        while Instant::now() < deadline {
            if process.ended().is_some() {
                return Ok(Err(self.log.since_start()));
            }
            let file = PidFile::read(self.cluster.path());
            if file
                .is_some_and(|file| file.ready && file.pid.as_raw().unsigned_abs() == process.id())
            {
                self.process = Some(process);
                return Ok(Ok(()));
            }
            sleep(Duration::from_millis(20));
        }
        bail!(
            "PostgreSQL was not ready within {} s:\n{}",
            START_TIMEOUT.as_secs(),
            self.log.last_lines()
        )
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

fn url(password: &str, port: u16) -> String {
    format!("postgres://{NAME}:{password}@127.0.0.1:{port}/{NAME}")
}

/// Settings for a small, private server on one machine.
fn settings(port: u16, options: &Options) -> Vec<String> {
    let mut settings = vec![
        format!("port={port}"),
        "listen_addresses=127.0.0.1".into(),
        // A socket would need a directory that both accounts can enter and whose path is short.
        "unix_socket_directories=".into(),
        "max_connections=200".into(),
        "shared_buffers=64MB".into(),
        "max_wal_size=256MB".into(),
        // There is no replication, unless further settings ask for it.
        "wal_level=minimal".into(),
        "max_wal_senders=0".into(),
        // Parallel queries need more /dev/shm than containers have.
        "max_parallel_workers_per_gather=0".into(),
        "jit=off".into(),
        "timezone=UTC".into(),
        "log_timezone=UTC".into(),
        "logging_collector=off".into(),
        "log_destination=stderr".into(),
    ];
    if options.tls.is_some() {
        settings.push("ssl=on".into());
    }
    if !options.durable {
        // Committed data still survives the server's death, and tests kill it.
        settings.extend(["fsync=off", "full_page_writes=off"].map(String::from));
    }
    settings.extend(options.settings.iter().cloned());
    settings
        .into_iter()
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}
