//! Two replicas of each of the four services, with the servers that they share. Some tests need one gateway and compiler.
//!
//! Each replica has a separate network: a proxy to PostgreSQL, one to RabbitMQ and one to the platforms. So one replica
//! can be cut off alone.

use std::{
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use client::Client;
use http::Method;
use private_servers::{Postgres, RabbitMq, postgres::Options};
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::{
    clock::Clock,
    disk::Disk,
    names::{self, Names},
    patroni::Patroni,
    slow_disk::SlowDisk,
};
use crate::harness::{
    api::{self, Api},
    config, eventually, free_address,
    process::Process,
    programs,
    proxy::Proxy,
    server_directory,
    simulator::Simulator,
    sql,
};

const REPLICAS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(180);
const STOP: Duration = Duration::from_secs(120);
const SERVICES: [&str; 4] = [
    "api-gateway",
    "manager-compiler",
    "scanner",
    "webhook-dispatcher",
];

/// The servers that a fleet uses.
pub(super) struct Servers {
    pub(super) postgres: Options,
    /// Number of RabbitMQ nodes.
    pub(super) nodes: usize,
    /// True if one gateway and one compiler are enough: the test neither kills nor cuts off one of two.
    pub(super) has_few_replicas: bool,
    /// True if the test makes clocks jump. Each look at the clock takes longer then.
    pub(super) has_clocks: bool,
    /// Size of PostgreSQL's disk, which is the machine's otherwise.
    pub(super) disk_megabytes: Option<u32>,
    /// True if scanners reach the platforms by a name.
    pub(super) has_names: bool,
    /// True if the test sets the speed of PostgreSQL's disk.
    pub(super) has_slow_disk: bool,
    /// True if Patroni runs PostgreSQL.
    pub(super) has_patroni: bool,
}

impl From<Options> for Servers {
    fn from(postgres: Options) -> Self {
        Self {
            postgres,
            nodes: 1,
            has_few_replicas: false,
            has_clocks: false,
            disk_megabytes: None,
            has_names: false,
            has_slow_disk: false,
            has_patroni: false,
        }
    }
}

/// A running fleet. Dropping it stops everything, processes before the servers that they use.
pub(super) struct Fleet {
    replicas: Vec<Replica>,
    nodes: Vec<Mutex<RabbitMq>>,
    /// Speed of PostgreSQL's disk, where it can be compiled. Dropped before the server, which must not hang then.
    pub(super) slow_disk: Option<SlowDisk>,
    /// `None` if Patroni runs it.
    postgres: Option<Mutex<Postgres>>,
    pub(super) patroni: Option<Patroni>,
    /// PostgreSQL's own disk, where this process may mount one.
    pub(super) disk: Option<Disk>,
    /// Names of the platforms, where scanners can have their own.
    pub(super) names: Option<Names>,
    pub(super) simulator: Simulator,
    has_clocks: bool,
    key: String,
    directory: TempDir,
}

/// Something that replicas reach over the network.
#[derive(Debug, Clone, Copy)]
pub(super) enum Remote {
    Database,
    Broker,
    Platforms,
}

/// A replica: one process at a time, with the same addresses across restarts.
pub(super) struct Replica {
    pub(super) program: &'static str,
    api: String,
    ops: String,
    pub(super) clock: Clock,
    /// In the order of [`Remote`].
    network: [Proxy; 3],
    config: PathBuf,
    process: Mutex<Option<Process>>,
}

impl Fleet {
    pub(super) async fn start(servers: &Servers) -> Self {
        let directory = server_directory();
        let simulator = Simulator::start(directory.path()).await;
        let home = directory.path();
        let disk = servers
            .disk_megabytes
            .and_then(|size| Disk::mount(&home.join("postgres"), size));
        let names = servers.has_names.then(|| Names::new(home)).flatten();
        let slow_disk = servers.has_slow_disk.then(SlowDisk::new).flatten();
        let mut options = servers.postgres.clone();
        if let Some(slow_disk) = &slow_disk {
            slow_disk.apply(&mut options);
        }
        let patroni = if servers.has_patroni {
            Patroni::start().await
        } else {
            None
        };
        let (postgres, nodes) = block_in_place(|| {
            std::thread::scope(|scope| {
                let nodes = scope.spawn(|| nodes(home, servers.nodes));
                let postgres = patroni.is_none().then(|| {
                    let postgres = Postgres::start(&home.join("postgres"), &options);
                    Mutex::new(postgres.unwrap())
                });
                (postgres, nodes.join().unwrap())
            })
        });
        let mut fleet = Self {
            replicas: Vec::new(),
            nodes: nodes.into_iter().map(Mutex::new).collect(),
            postgres,
            patroni,
            disk,
            slow_disk,
            names,
            simulator,
            has_clocks: servers.has_clocks,
            key: String::new(),
            directory,
        };
        for program in SERVICES {
            let is_alone =
                servers.has_few_replicas && ["api-gateway", "manager-compiler"].contains(&program);
            let replicas = if is_alone { 1 } else { REPLICAS };
            for number in 0..replicas {
                let replica = fleet.replica(program, number).await;
                fleet.replicas.push(replica);
            }
        }
        fleet.operator(&["migrate"]);
        let arguments = ["keys", "create", "--account", "acme", "--role", "OWNER"];
        fleet.key = fleet.operator(&arguments).trim().to_owned();
        fleet.mend().await;
        fleet
    }

    async fn replica(&self, program: &'static str, number: usize) -> Replica {
        let broker = self.rabbitmq().amqp_url();
        // Servers that Patroni runs are reached without a proxy.
        let (database, port) = match &self.patroni {
            Some(patroni) => (patroni.url(), 0),
            None => {
                let postgres = self.postgres();
                (postgres.url(), postgres.port())
            }
        };
        let [near_database, near_broker] =
            [port, self.rabbitmq().port()].map(|port| format!("127.0.0.1:{port}"));
        let platforms = self.simulator.url();
        let near_platforms = platforms.trim_start_matches("http://");
        let network = [
            Proxy::start(&near_database).await,
            Proxy::start(&near_broker).await,
            Proxy::start(near_platforms).await,
        ];
        let mut near_platforms = network[Remote::Platforms as usize].url();
        if self.names_for(program).is_some() {
            near_platforms = near_platforms.replace("127.0.0.1", names::NAME);
        }
        let settings = config::faults(
            &near_platforms,
            platforms,
            &database.replace(&near_database, network[Remote::Database as usize].address()),
            &broker.replace(&near_broker, network[Remote::Broker as usize].address()),
        );
        let name = format!("{program}-{number}");
        let config = self.directory.path().join(format!("{name}.toml"));
        std::fs::write(&config, settings).unwrap();
        Replica {
            program,
            api: free_address(),
            ops: free_address(),
            clock: Clock::new(self.directory.path(), &name),
            network,
            config,
            process: Mutex::default(),
        }
    }

    /// Returns the names of a program that has its own.
    fn names_for(&self, program: &str) -> Option<&Names> {
        self.names.as_ref().filter(|_| program == "scanner")
    }

    /// Runs `earshot …`, which must succeed, and returns its output.
    pub(super) fn operator(&self, arguments: &[&str]) -> String {
        let mut command = programs::command("earshot");
        command.args(arguments);
        command.arg("--config").arg(&self.replicas[0].config);
        let ended = block_in_place(|| programs::finish(&mut command, PATIENCE));
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.stdout
    }

    pub(super) fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// Returns each replica's proxy to `remote`.
    pub(super) fn ways(&self, remote: Remote) -> Vec<&Proxy> {
        let replicas = self.replicas.iter();
        replicas.map(|replica| replica.way(remote)).collect()
    }

    /// Makes all replicas reach `remote` at another port.
    pub(super) async fn redirect(&self, remote: Remote, port: u16) {
        for way in self.ways(remote) {
            way.cut();
            way.aim(&format!("127.0.0.1:{port}"));
            way.mend().await;
        }
    }

    /// Returns a client of the first gateway, as customers' programs use it.
    pub(super) fn client(&self) -> Client {
        let mut gateways = self.replicas.iter();
        let gateway = gateways.find(|replica| replica.program == "api-gateway");
        let url = format!("http://{}", gateway.unwrap().api);
        let client = Client::new(url.parse().unwrap(), self.key.as_str().into()).unwrap();
        // After a fault, lists that the database does not answer keep the account's share of bytes for half a minute.
        client.with_retries(client::Retries { times: 20 })
    }

    /// Returns a client of each gateway.
    pub(super) fn apis(&self) -> Vec<Api> {
        let gateways = self
            .replicas
            .iter()
            .filter(|replica| replica.program == "api-gateway");
        gateways
            .map(|replica| Api::new(&format!("http://{}", replica.api), &self.key).patient())
            .collect()
    }

    pub(super) fn postgres(&self) -> MutexGuard<'_, Postgres> {
        let postgres = self.postgres.as_ref().expect("Patroni does not run it");
        postgres.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the first node of RabbitMQ.
    pub(super) fn rabbitmq(&self) -> MutexGuard<'_, RabbitMq> {
        self.node(0)
    }

    pub(super) fn node(&self, at: usize) -> MutexGuard<'_, RabbitMq> {
        let node = self.nodes[at].lock();
        node.unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the output of `sql`, which must succeed.
    pub(super) fn query(&self, sql: &str) -> String {
        match &self.patroni {
            Some(patroni) => patroni.query(sql).unwrap(),
            None => sql::query(&self.postgres(), sql),
        }
    }

    /// Returns the path of `name` in the directory of this fleet.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts a replica that is not running.
    pub(super) fn start_replica(&self, replica: &Replica) {
        let mut process = replica.process();
        if process.as_mut().is_some_and(|one| one.ended().is_none()) {
            return;
        }
        // Drop the old process's watcher before another process can reuse its process id.
        *process = None;
        let mut command = match self.names_for(replica.program) {
            Some(names) => names.command(replica.program),
            None => programs::command(replica.program),
        };
        command.arg("--config").arg(&replica.config);
        command.env("EARSHOT_GATEWAY__LISTEN", &replica.api);
        command.env("EARSHOT_OPS__LISTEN", &replica.ops);
        if self.has_clocks {
            replica.clock.apply(&mut command);
        }
        let directory = self.directory.path();
        *process = Some(Process::spawn(replica.program, &mut command, directory));
    }

    /// Starts everything that is not running, and returns when all is ready.
    pub(super) async fn mend(&self) {
        for replica in &self.replicas {
            replica.resume();
            self.start_replica(replica);
        }
        for replica in &self.replicas {
            replica.ready().await;
        }
    }

    /// Sends SIGTERM to all at once; each must drain and exit 0.
    pub(super) fn terminate(&self) {
        for replica in &self.replicas {
            replica.ask_to_end();
        }
        for replica in &self.replicas {
            replica.wait_for_end();
        }
    }

    pub(super) fn print_logs(&self) {
        if let Some(patroni) = &self.patroni {
            patroni.print_logs();
        }
        for replica in &self.replicas {
            if let Some(process) = &*replica.process() {
                process.print_log();
            }
        }
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        self.replicas.clear();
        // A clean end takes seconds, and what they have is not needed any more.
        for node in &mut self.nodes {
            node.get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .kill();
        }
    }
}

/// Starts a cluster of so many nodes.
fn nodes(home: &Path, count: usize) -> Vec<RabbitMq> {
    let first = RabbitMq::start(&home.join("rabbitmq")).unwrap();
    let peers: Vec<RabbitMq> = std::thread::scope(|scope| {
        let peers = (1..count).map(|number| {
            let (first, name) = (&first, format!("earshot-{number}"));
            scope.spawn(move || first.start_peer(&home.join(&name), &name).unwrap())
        });
        let peers: Vec<_> = peers.collect();
        peers.into_iter().map(|peer| peer.join().unwrap()).collect()
    });
    std::iter::once(first).chain(peers).collect()
}

impl Replica {
    /// Returns the proxy through which this replica alone reaches `remote`.
    pub(super) fn way(&self, remote: Remote) -> &Proxy {
        &self.network[remote as usize]
    }

    /// Kills the replica with SIGKILL.
    pub(super) fn kill(&self) {
        if let Some(process) = &mut *self.process() {
            process.kill();
        }
    }

    /// Sends SIGTERM; the replica must drain and exit 0.
    pub(super) fn terminate(&self) {
        self.ask_to_end();
        self.wait_for_end();
    }

    fn ask_to_end(&self) {
        self.process().as_ref().expect("it runs").ask_to_end();
    }

    fn wait_for_end(&self) {
        let mut process = self.process();
        let process = process.as_mut().expect("it runs");
        let status = block_in_place(|| process.wait_for_end(STOP));
        assert!(status.success(), "{}: {status}", self.program);
    }

    pub(super) async fn ready(&self) {
        let (client, url) = (api::client(), format!("http://{}/readyz", self.ops));
        let what = format!("{} is ready", self.program);
        eventually(&what, PATIENCE, async || {
            let answer = api::try_send(&client, Method::GET, &url, &[], None).await;
            if let Some(process) = &mut *self.process()
                && let Some(status) = process.ended()
            {
                panic!("{} ended: {status}\n{}", self.program, process.output());
            }
            answer.ok().filter(|answer| answer.status == 200)
        })
        .await;
    }

    /// Asserts that the replica's liveness probe succeeds.
    pub(super) async fn check_alive(&self) {
        let url = format!("http://{}/healthz", self.ops);
        let answer = api::try_send(&api::client(), Method::GET, &url, &[], None).await;
        assert_eq!(answer.unwrap().status, 200, "{}", self.program);
    }

    /// Stops the replica with SIGSTOP.
    pub(super) fn freeze(&self) {
        if let Some(process) = &*self.process() {
            process.pause();
        }
    }

    /// Resumes the replica with SIGCONT.
    pub(super) fn resume(&self) {
        if let Some(process) = &*self.process() {
            process.resume();
        }
    }

    /// Returns the bytes of memory, and the number of open files and sockets.
    pub(super) fn holds(&self) -> (u64, usize) {
        let id = self.process().as_ref().expect("it runs").id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = resident.and_then(|text| text.trim().strip_suffix(" kB"));
        let files = std::fs::read_dir(format!("/proc/{id}/fd")).unwrap().count();
        (kilobytes.unwrap().parse::<u64>().unwrap() * 1_024, files)
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
