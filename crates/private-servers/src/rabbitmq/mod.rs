//! A private RabbitMQ node, for tests.
//!
//! Its home has the node's data, log, configuration and Erlang cookie. The node and its epmd (the port mapper
//! of Erlang, which the whole machine would otherwise share) listen only on 127.0.0.1, on private ports that
//! stay the same over [`RabbitMq::restart`].
//!
//! The node runs under our own user, even under root: unlike PostgreSQL it allows this, and below `/root` no
//! other user could reach its files.
//!
//! [`install`] finds the programs.

mod install;

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

pub use self::install::{Installation, NotInstalled};
use crate::home::Home;
use crate::log::Log;
use crate::ports::free_port;
use crate::process::{Process, Reach, wait_until};
use crate::tls::Tls;

/// Time limit. A start takes about 6 s on two idle cores; more while they compile.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// On SIGTERM the node transfers its queues and closes its files.
const STOP: &[(Signal, Duration)] = &[(Signal::SIGTERM, Duration::from_secs(30))];
const STARTS: u32 = 3;

/// Small, on loopback, and with low requirements for the machine.
const CONFIG: &str = "\
log.console = true
log.console.level = warning
log.file = false
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 1GB
# The write-ahead log of quorum queues, 512 MB by default.
raft.wal_max_size_bytes = 33554432
";

/// Name of the first node of a cluster, and of a node alone.
const NAME: &str = "earshot@localhost";
const COOKIE: &str = ".erlang.cookie";

/// A running node; stopped when dropped.
#[derive(Debug)]
pub struct RabbitMq {
    installation: Installation,
    name: String,
    ports: Ports,
    speaks_tls: bool,
    log: Log,
    node: Option<Process>,
    /// Shared by the nodes of a cluster.
    epmd: Option<Arc<Process>>,
    // The last field, so that the lock is released after everything else.
    home: Home,
}

#[derive(Debug)]
struct Ports {
    amqp: u16,
    amqps: u16,
    distribution: u16,
    epmd: u16,
}

impl RabbitMq {
    /// Starts a node with the home `home`; returns when it accepts connections.
    ///
    /// Fails with [`NotInstalled`] if the machine has no RabbitMQ.
    pub fn start(home: &Path) -> Result<Self> {
        Self::start_with(home, None)
    }

    /// Like [`RabbitMq::start`]; with a certificate, also for encrypted connections.
    pub fn start_with(home: &Path, tls: Option<Tls>) -> Result<Self> {
        let mut server = Self::prepare(home, NAME, Ports::free()?)?;
        if let Some(tls) = &tls {
            server.write_tls(tls)?;
            server.speaks_tls = true;
        }
        server.launch_on_free_ports(Ports::free)?;
        Ok(server)
    }

    /// Starts a node with the home `home` that joins this one's cluster; `name` distinguishes the nodes.
    pub fn start_peer(&self, home: &Path, name: &str) -> Result<Self> {
        let epmd = self.ports.epmd;
        let ports = || {
            Ok(Ports {
                epmd,
                ..Ports::free()?
            })
        };
        let mut peer = Self::prepare(home, &format!("{name}@localhost"), ports()?)?;
        let cookie = fs::read_to_string(self.home.join(COOKIE)).context("read the cookie")?;
        peer.home.set_secret(COOKIE, &cookie)?;
        peer.epmd.clone_from(&self.epmd);
        peer.launch_on_free_ports(ports)?;
        peer.control(&["stop_app"])?;
        peer.control(&["join_cluster", &self.name])?;
        peer.control(&["start_app"])?;
        Ok(peer)
    }

    fn prepare(home: &Path, name: &str, ports: Ports) -> Result<Self> {
        let installation = Installation::find()?;
        let home = Home::open(home)?;
        write(&home.join("enabled_plugins"), "[].\n")?;
        write(&home.join("rabbitmq-env.conf"), "")?;
        Ok(Self {
            installation,
            name: name.to_owned(),
            ports,
            speaks_tls: false,
            log: Log::new(home.join("server.log")),
            node: None,
            epmd: None,
            home,
        })
    }

    fn launch_on_free_ports(&mut self, ports: impl Fn() -> Result<Ports>) -> Result<()> {
        for _ in 1..STARTS {
            // Another process may have taken one of the ports.
            match self.launch() {
                Err(_) if tells_of_taken_port(&self.log.since_start()) => self.ports = ports()?,
                done => return done,
            }
        }
        self.launch()
    }

    fn write_tls(&self, tls: &Tls) -> Result<()> {
        write(&self.home.join("server.crt"), &tls.certificate)?;
        write(&self.home.join("server.key"), &tls.key)
    }

    /// Replaces the certificate for the connections from now on, without a restart.
    pub fn renew(&self, tls: &Tls) -> Result<()> {
        self.write_tls(tls)?;
        self.control(&["eval", "ssl:clear_pem_cache()."])?;
        Ok(())
    }

    /// The address for the user `guest`, in the virtual host `/`.
    pub fn amqp_url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.ports.amqp)
    }

    /// Like [`RabbitMq::amqp_url`], encrypted. Only for a node with a certificate.
    pub fn amqps_url(&self) -> String {
        format!("amqps://guest:guest@localhost:{}/%2f", self.ports.amqps)
    }

    pub fn port(&self) -> u16 {
        self.ports.amqp
    }

    /// Returns true if the node's process runs; false after a crash.
    pub fn is_running(&mut self) -> bool {
        self.node
            .as_mut()
            .is_some_and(|node| node.ended().is_none())
    }

    /// Stops the node cleanly; returns when it is gone.
    pub fn stop(&mut self) {
        if let Some(node) = self.node.take() {
            node.stop(STOP);
        }
        self.leave_epmd();
    }

    /// Kills the whole Erlang machine, like `kill -9`.
    pub fn kill(&mut self) {
        self.node = None;
        self.leave_epmd();
    }

    /// Stops the port mapper, unless other nodes use it.
    fn leave_epmd(&mut self) {
        self.epmd.take_if(|epmd| Arc::strong_count(epmd) == 1);
    }

    /// Starts a stopped or killed node again: same ports, same data.
    pub fn restart(&mut self) -> Result<()> {
        self.stop();
        self.launch()
    }

    /// The output of `rabbitmqctl` with these arguments; takes a second or two.
    pub fn control(&self, arguments: &[&str]) -> Result<String> {
        let program = self.installation.server.with_file_name("rabbitmqctl");
        let output = self
            .script(&program)
            .args(["--quiet", "--timeout", "30"])
            .args(arguments)
            .output()
            .with_context(|| format!("run {}", program.display()))?;
        if !output.status.success() {
            bail!(
                "rabbitmqctl {arguments:?}: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn launch(&mut self) -> Result<()> {
        self.kill();
        write(&self.home.join("rabbitmq.conf"), &self.config())?;
        let deadline = Instant::now() + START_TIMEOUT;
        if self.epmd.is_none() {
            self.launch_epmd(deadline)?;
        }
        let mut command = self.node_command();
        self.log.attach(&mut command)?;
        let mut node = Process::spawn(&mut command, Reach::Group, Signal::SIGKILL)?;
        let mut ended = None;
        let ready = wait_until(deadline, || {
            ended = node.ended();
            ended.is_some() || speaks_amqp(self.ports.amqp)
        });
        match ended {
            Some(status) => bail!(
                "RabbitMQ ended while starting ({status}); {} says:\n{}",
                self.log.path().display(),
                self.log.last_lines()
            ),
            None if !ready => {
                bail!(
                    "RabbitMQ was not ready within {} s:\n{}",
                    START_TIMEOUT.as_secs(),
                    self.log.last_lines()
                )
            }
            None => self.node = Some(node),
        }
        Ok(())
    }

    fn launch_epmd(&mut self, deadline: Instant) -> Result<()> {
        let mut epmd = self.command("epmd");
        epmd.args([
            "-address",
            "127.0.0.1",
            "-port",
            &self.ports.epmd.to_string(),
        ]);
        self.log.attach(&mut epmd)?;
        let epmd = Process::spawn(&mut epmd, Reach::Process, Signal::SIGKILL)?;
        self.epmd = Some(Arc::new(epmd));
        wait_until(deadline, || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports.epmd)).is_ok()
        });
        Ok(())
    }

    fn config(&self) -> String {
        if !self.speaks_tls {
            return CONFIG.to_owned();
        }
        let path = |name: &str| self.home.join(name).display().to_string();
        format!(
            "{CONFIG}listeners.ssl.default = 127.0.0.1:{}\nssl_options.certfile = {}\n\
             ssl_options.keyfile = {}\nssl_options.verify = verify_none\n\
             ssl_options.fail_if_no_peer_cert = false\n",
            self.ports.amqps,
            path("server.crt"),
            path("server.key"),
        )
    }

    fn node_command(&self) -> Command {
        let mut command = self.script(&self.installation.server);
        command
            .env(
                "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
                "-kernel inet_dist_use_interface {127,0,0,1}",
            )
            // With this, the script becomes the Erlang machine instead of waiting for it.
            .env("RUNNING_UNDER_SYSTEMD", "true");
        command
    }

    /// One of RabbitMQ's scripts, for this node.
    fn script(&self, program: &Path) -> Command {
        let mut command = self.command(program);
        let home = |name: &str| self.home.join(name);
        command
            .env("RABBITMQ_NODENAME", &self.name)
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", self.ports.amqp.to_string())
            .env("RABBITMQ_DIST_PORT", self.ports.distribution.to_string())
            .env("RABBITMQ_MNESIA_BASE", home("data"))
            .env("RABBITMQ_LOG_BASE", home("log"))
            .env("RABBITMQ_PID_FILE", home("pid"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", home("enabled_plugins"))
            .env("RABBITMQ_CONFIG_FILE", home("rabbitmq.conf"))
            .env("RABBITMQ_CONF_ENV_FILE", home("rabbitmq-env.conf"));
        command
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", &self.installation.path)
            .env("LC_ALL", "C.UTF-8")
            .env("HOME", self.home.path())
            .env("ERL_EPMD_PORT", self.ports.epmd.to_string())
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .current_dir(self.home.path());
        command
    }
}

impl Drop for RabbitMq {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Ports {
    fn free() -> Result<Self> {
        Ok(Self {
            amqp: free_port()?,
            amqps: free_port()?,
            distribution: free_port()?,
            epmd: free_port()?,
        })
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}

/// Detects the messages of the listener, of the distribution, and of a foreign epmd for a port that is in use.
fn tells_of_taken_port(output: &str) -> bool {
    ["eaddrinuse", "in use", "already running"]
        .iter()
        .any(|words| output.contains(words))
}

/// Returns true if a broker responds: the response to the protocol header is a method frame (type 1).
fn speaks_amqp(port: u16) -> bool {
    let greet = || -> std::io::Result<u8> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"AMQP\x00\x00\x09\x01")?;
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        Ok(kind[0])
    };
    greet().is_ok_and(|kind| kind == 1)
}
