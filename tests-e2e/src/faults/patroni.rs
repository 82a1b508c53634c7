//! PostgreSQL with a synchronous standby under Patroni, which is promoted when the primary dies or freezes.
//!
//! The services reach the servers by one URL with both addresses. A failover must lose no commit that a client knows of.

use std::{
    collections::{BTreeSet, hash_map::RandomState},
    fs,
    hash::{BuildHasher, Hasher},
    io::Write as _,
    os::unix::{
        fs::{OpenOptionsExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use http::Method;
use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid, User},
};
use private_servers::{
    free_port,
    postgres::{Installation, Options},
};
use tempfile::TempDir;
use tokio::{
    task::{JoinHandle, block_in_place},
    time::sleep,
};
use tokio_postgres::NoTls;

use super::{
    books,
    fleet::{Fleet, Servers},
    load::{Load, World},
};
use crate::harness::{LOSS, api, eventually, process::Process};

const PROGRAMS: [&str; 2] = ["/usr/bin/patroni", "/usr/bin/etcd"];
const NAMES: [&str; 2] = ["one", "two"];
/// Name of the role and the database.
const NAME: &str = "earshot";
const PATIENCE: Duration = Duration::from_secs(120);
const STOP: Duration = Duration::from_secs(30);
const TICK: Duration = Duration::from_millis(20);
/// Posts per tenth of a second.
const POSTS: u64 = 3;
const LENGTH: Duration = Duration::from_secs(4);
/// Number of commits after which the new primary counts as found.
const COMMITS: u64 = 50;

/// Kills servers that Patroni has started, when the test dies: Patroni is killed then, and cannot stop them.
const GUARD: &str = r#"read -r _; sleep 1
for data in "$@"; do
    pid=$(head -n 1 "$data/postmaster.pid")
    if [ "$(readlink "/proc/$pid/cwd")" = "$data" ]; then kill -9 "$pid"; fi
done"#;

pub(super) fn servers() -> Servers {
    Servers {
        has_patroni: true,
        ..Options::throwaway().into()
    }
}

pub(super) async fn run(fleet: &Fleet) {
    let Some(patroni) = &fleet.patroni else {
        println!(
            "SKIPPED: Patroni or etcd is not installed (Debian packages `patroni`, `etcd-server`)"
        );
        return fleet.terminate();
    };
    let world = World::new(fleet).await;
    let mut load = Load::new(fleet, &world);
    fleet.query("CREATE TABLE written (number bigint PRIMARY KEY)");
    let writer = Writer::start(patroni.url());
    let until = Instant::now() + LENGTH;
    load.keep_publishing(POSTS, || Instant::now() < until).await;

    let primary = patroni.primary().expect("a primary");
    println!("the primary and its Patroni are killed");
    primary.kill();
    let (deadline, before) = (Instant::now() + PATIENCE, writer.count());
    let is_lasting = || {
        assert!(Instant::now() < deadline, "no server accepts changes");
        writer.count() < before + COMMITS
    };
    load.keep_publishing(POSTS, is_lasting).await;
    let successor = patroni.primary().expect("a primary");
    assert_ne!(successor.port, primary.port);
    let until = Instant::now() + LENGTH;
    load.keep_publishing(POSTS, || Instant::now() < until).await;

    let written = writer.finish().await;
    let pause = written.longest_pause;
    println!("the standby took over: no commit for {pause:.1?}");
    let stored = fleet.query("SELECT number FROM written");
    let stored: BTreeSet<i64> = stored.lines().map(|line| line.parse().unwrap()).collect();
    let lost: Vec<_> = written
        .confirmed
        .iter()
        .filter(|number| !stored.contains(number))
        .collect();
    let count = written.confirmed.len();
    assert!(
        lost.is_empty(),
        "{LOSS}of {count} confirmed commits are lost: {lost:?}"
    );
    println!("none of {count} confirmed commits is lost");
    books::check(fleet, &world, load.done(), Instant::now()).await;
    fleet.terminate();
}

/// Two servers, each with its Patroni, and an etcd. Dropping it stops all of them.
pub(super) struct Patroni {
    nodes: Vec<Node>,
    guard: Child,
    place: Place,
}

struct Node {
    port: u16,
    /// Address of Patroni's API.
    api: String,
    data: PathBuf,
    process: Mutex<Process>,
}

/// Settings that all nodes share.
struct Place {
    /// The directories with the programs, and with the nodes' data.
    bin: PathBuf,
    home: PathBuf,
    account: Option<User>,
    password: String,
    etcd_port: u16,
    _etcd: Process,
    directory: TempDir,
}

impl Patroni {
    /// Returns when the standby is synchronous; `None` if Patroni or etcd is not installed.
    pub(super) async fn start() -> Option<Self> {
        if !PROGRAMS.iter().all(|program| Path::new(program).is_file()) {
            return None;
        }
        let place = Place::new();
        let guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "guard"])
            .args(NAMES.map(|name| place.home.join(name)))
            .process_group(0)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut patroni = Self {
            nodes: vec![place.start(NAMES[0])],
            guard,
            place,
        };
        let create = format!("CREATE DATABASE {NAME}");
        let first = patroni.url_of(&address(patroni.nodes[0].port), "postgres");
        eventually("there is a primary", PATIENCE, async || {
            patroni.psql(&first, &create).ok()
        })
        .await;
        let second = patroni.place.start(NAMES[1]);
        patroni.nodes.push(second);
        patroni.wait_for_standby().await;
        Some(patroni)
    }

    /// Waits until Patroni has told the primary to wait for the standby.
    async fn wait_for_standby(&self) {
        let (client, url) = (api::client(), format!("{}/cluster", self.nodes[0].api));
        eventually("the standby is synchronous", PATIENCE, async || {
            let answer = api::try_send(&client, Method::GET, &url, &[], None).await;
            let cluster = answer.ok()?.json();
            let mut roles = cluster["members"].as_array()?.iter();
            roles
                .any(|member| member["role"] == "sync_standby")
                .then_some(())
        })
        .await;
        let synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'";
        eventually("the primary waits for it", PATIENCE, async || {
            (self.query(synchronous).ok()? == "1").then_some(())
        })
        .await;
    }

    /// Returns the URL of both servers.
    pub(super) fn url(&self) -> String {
        let servers = self.nodes.iter().map(|node| address(node.port));
        self.url_of(&servers.collect::<Vec<_>>().join(","), NAME)
    }

    fn url_of(&self, servers: &str, database: &str) -> String {
        let password = &self.place.password;
        format!("postgres://{NAME}:{password}@{servers}/{database}?target_session_attrs=read-write")
    }

    /// Returns the output of `sql` on the primary.
    pub(super) fn query(&self, sql: &str) -> Result<String, String> {
        self.psql(&self.url(), sql)
    }

    fn psql(&self, url: &str, sql: &str) -> Result<String, String> {
        let mut command = Command::new(self.place.bin.join("psql"));
        command.env_clear().env("PGCONNECT_TIMEOUT", "2");
        command.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql]);
        let output = block_in_place(|| command.output()).unwrap();
        if output.status.success() {
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.trim_end().to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    /// Returns the node that accepts changes, if there is one.
    fn primary(&self) -> Option<&Node> {
        let mut nodes = self.nodes.iter();
        nodes.find(|node| {
            let url = self.url_of(&address(node.port), "postgres");
            self.psql(&url, "SELECT 1").is_ok()
        })
    }

    pub(super) fn print_logs(&self) {
        for node in &self.nodes {
            node.process().print_log();
        }
    }
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let home = directory.path().canonicalize().unwrap().join("servers");
        fs::create_dir(&home).unwrap();
        let account = account();
        if let Some(account) = &account {
            give(&home, account);
        }
        let (etcd, etcd_port) = etcd(directory.path());
        Self {
            bin: Installation::find(None).unwrap().bin,
            home,
            account,
            password: secret(),
            etcd_port,
            _etcd: etcd,
            directory,
        }
    }

    /// Starts a node: Patroni, which creates the server's data.
    fn start(&self, name: &str) -> Node {
        let [port, api] = [(); 2].map(|()| free_port().unwrap());
        let path = self.home.join(format!("{name}.yml"));
        let mut file = fs::OpenOptions::new();
        let file = file.write(true).create_new(true).mode(0o600).open(&path);
        let settings = self.settings(name, port, api);
        file.unwrap().write_all(settings.as_bytes()).unwrap();
        let mut command = Command::new(PROGRAMS[0]);
        command.arg(&path).current_dir(&self.home);
        if let Some(account) = &self.account {
            give(&path, account);
            command.uid(account.uid.as_raw()).gid(account.gid.as_raw());
        }
        let log = format!("patroni-{name}");
        Node {
            port,
            api: format!("http://{}", address(api)),
            data: self.home.join(name),
            process: Mutex::new(Process::spawn(&log, &mut command, self.directory.path())),
        }
    }

    /// Settings of one node's Patroni. Twenty seconds are its shortest time to live.
    fn settings(&self, name: &str, port: u16, api: u16) -> String {
        let [port, api, etcd] = [port, api, self.etcd_port].map(address);
        let (bin, home) = (self.bin.display(), self.home.display());
        let password = &self.password;
        format!(
            "\
scope: earshot
name: {name}
restapi: {{ listen: '{api}', connect_address: '{api}' }}
etcd3: {{ host: '{etcd}' }}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 5
    synchronous_mode: true
    postgresql:
      parameters: {{ max_connections: 200, max_wal_senders: 5 }}
  initdb: [ encoding: UTF8, locale: C, no-sync ]
postgresql:
  listen: '{port}'
  connect_address: '{port}'
  bin_dir: '{bin}'
  data_dir: '{home}/{name}'
  pgpass: '{home}/{name}.pgpass'
  authentication:
    superuser: {{ username: {NAME}, password: '{password}' }}
    replication: {{ username: replicator, password: '{password}' }}
  basebackup: [ checkpoint: fast, no-sync ]
  pg_hba:
    - host all all 127.0.0.1/32 password
    - host replication replicator 127.0.0.1/32 password
  parameters:
    unix_socket_directories: ''
    shared_buffers: 64MB
    max_parallel_workers_per_gather: 0
    jit: 'off'
    fsync: 'off'
    full_page_writes: 'off'
"
        )
    }
}

impl Drop for Patroni {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.signal(Signal::SIGCONT);
            node.process().ask_to_end();
        }
        let until = Instant::now() + STOP;
        for node in &self.nodes {
            while node.process().ended().is_none() && Instant::now() < until {
                std::thread::sleep(TICK);
            }
            node.process().kill();
            node.signal(Signal::SIGKILL);
        }
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}

impl Node {
    fn process(&self) -> MutexGuard<'_, Process> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a signal to the server's main process, if it runs.
    fn signal(&self, signal: Signal) {
        let file = fs::read_to_string(self.data.join("postmaster.pid")).unwrap_or_default();
        let Some(pid) = file.lines().next().and_then(|line| line.parse().ok()) else {
            return;
        };
        // Another process may have the number of a server that was killed.
        let directory = fs::read_link(format!("/proc/{pid}/cwd"));
        if directory.is_ok_and(|directory| directory == self.data) {
            let _ = kill(Pid::from_raw(pid), signal);
        }
    }

    /// Kills Patroni and its server with SIGKILL.
    fn kill(&self) {
        // Patroni first, because it would start the server again.
        self.process().kill();
        self.signal(Signal::SIGKILL);
    }
}

fn address(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

/// PostgreSQL's account, because it refuses to run as root.
fn account() -> Option<User> {
    let is_root = Uid::effective().is_root();
    is_root.then(|| User::from_name("postgres").unwrap().expect("its account"))
}

fn give(path: &Path, account: &User) {
    let (user, group) = (account.uid.as_raw(), account.gid.as_raw());
    chown(path, Some(user), Some(group)).unwrap();
}

fn secret() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// Starts an etcd of one member. Returns its port too.
fn etcd(directory: &Path) -> (Process, u16) {
    let [port, peer_port] = [(); 2].map(|()| free_port().unwrap());
    let [client, peer] = [port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
    let mut command = Command::new(PROGRAMS[1]);
    command.args([
        "--name",
        "one",
        "--logger",
        "zap",
        "--log-outputs",
        "stderr",
    ]);
    command.arg("--data-dir").arg(directory.join("etcd"));
    for (option, value) in [
        ("--listen-client-urls", &client),
        ("--advertise-client-urls", &client),
        ("--listen-peer-urls", &peer),
        ("--initial-advertise-peer-urls", &peer),
        ("--initial-cluster", &format!("one={peer}")),
    ] {
        command.args([option, value]);
    }
    (Process::spawn("etcd", &mut command, directory), port)
}

/// A client that writes rows one by one, and remembers which ones the database confirmed.
struct Writer {
    confirmed: Arc<AtomicU64>,
    is_ending: Arc<AtomicBool>,
    task: JoinHandle<Written>,
}

struct Written {
    confirmed: Vec<i64>,
    /// Longest time between two confirmed commits.
    longest_pause: Duration,
}

impl Writer {
    fn start(url: String) -> Self {
        let (confirmed, is_ending) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let task = tokio::spawn(write(url, Arc::clone(&confirmed), Arc::clone(&is_ending)));
        Self {
            confirmed,
            is_ending,
            task,
        }
    }

    /// Number of confirmed commits so far.
    fn count(&self) -> u64 {
        self.confirmed.load(Ordering::SeqCst)
    }

    async fn finish(self) -> Written {
        self.is_ending.store(true, Ordering::SeqCst);
        self.task.await.unwrap()
    }
}

async fn write(url: String, count: Arc<AtomicU64>, is_ending: Arc<AtomicBool>) -> Written {
    let (mut confirmed, mut number) = (Vec::new(), 0);
    let (mut last, mut longest_pause) = (Instant::now(), Duration::ZERO);
    while !is_ending.load(Ordering::SeqCst) {
        let Ok((client, connection)) = tokio_postgres::connect(&url, NoTls).await else {
            sleep(TICK).await;
            continue;
        };
        tokio::spawn(connection);
        while !is_ending.load(Ordering::SeqCst) {
            number += 1;
            let insert = "INSERT INTO written VALUES ($1)";
            if client.execute(insert, &[&number]).await.is_err() {
                break;
            }
            confirmed.push(number);
            longest_pause = longest_pause.max(last.elapsed());
            last = Instant::now();
            count.fetch_add(1, Ordering::SeqCst);
            sleep(TICK).await;
        }
    }
    Written {
        confirmed,
        longest_pause,
    }
}
