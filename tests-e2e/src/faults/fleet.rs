//! Two replicas of each of the four services, with the servers that they share.

use std::{
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use client::Client;
use http::Method;
use private_servers::{Postgres, RabbitMq, postgres::Options};
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::clock::Clock;
use crate::harness::{
    api::{self, Api},
    config, eventually, free_address,
    process::Process,
    programs,
    proxy::Proxy,
    simulator::Simulator,
};

const REPLICAS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(90);
const STOP: Duration = Duration::from_secs(40);
const SERVICES: [&str; 4] = [
    "api-gateway",
    "manager-compiler",
    "scanner",
    "webhook-dispatcher",
];

/// A running fleet. Dropping it stops everything, processes before the servers that they use.
pub(super) struct Fleet {
    replicas: Vec<Replica>,
    /// Proxies to PostgreSQL and to RabbitMQ.
    pub(super) links: [Proxy; 2],
    rabbitmq: Mutex<RabbitMq>,
    postgres: Mutex<Postgres>,
    pub(super) simulator: Simulator,
    key: String,
    config: PathBuf,
    directory: TempDir,
}

/// A replica: one process at a time, with the same addresses across restarts.
pub(super) struct Replica {
    pub(super) program: &'static str,
    api: String,
    ops: String,
    pub(super) clock: Clock,
    process: Mutex<Option<Process>>,
}

impl Fleet {
    pub(super) async fn start(options: &Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let simulator = Simulator::start(directory.path()).await;
        let home = directory.path();
        let (postgres, rabbitmq) = block_in_place(|| {
            std::thread::scope(|scope| {
                let rabbitmq = scope.spawn(|| RabbitMq::start(&home.join("rabbitmq")));
                let postgres = Postgres::start(&home.join("postgres"), options).unwrap();
                (postgres, rabbitmq.join().unwrap().unwrap())
            })
        });
        let config = directory.path().join("earshot.toml");
        let (database, broker) = (postgres.url(), rabbitmq.amqp_url());
        let [near_database, near_broker] =
            [postgres.port(), rabbitmq.port()].map(|port| format!("127.0.0.1:{port}"));
        let links = [
            Proxy::start(&near_database).await,
            Proxy::start(&near_broker).await,
        ];
        let settings = config::distributed(
            simulator.url(),
            &database.replace(&near_database, links[0].address()),
            &broker.replace(&near_broker, links[1].address()),
        );
        std::fs::write(&config, settings).unwrap();
        let replicas = SERVICES.iter().flat_map(|program| {
            (0..REPLICAS).map(move |at| Replica {
                program,
                api: free_address(),
                ops: free_address(),
                clock: Clock::new(home, &format!("{program}-{at}")),
                process: Mutex::default(),
            })
        });
        let replicas = replicas.collect();
        let mut fleet = Self {
            replicas,
            links,
            rabbitmq: Mutex::new(rabbitmq),
            postgres: Mutex::new(postgres),
            simulator,
            key: String::new(),
            config,
            directory,
        };
        fleet.operator(&["migrate"]);
        let arguments = ["keys", "create", "--account", "acme", "--role", "OWNER"];
        fleet.key = fleet.operator(&arguments).trim().to_owned();
        fleet.mend().await;
        fleet
    }

    /// Runs `earshot …`, which must succeed, and returns its output.
    fn operator(&self, arguments: &[&str]) -> String {
        let mut command = programs::command("earshot");
        command.args(arguments).arg("--config").arg(&self.config);
        let ended = block_in_place(|| programs::finish(&mut command, PATIENCE));
        assert_eq!(ended.code, Some(0), "{ended:#?}");
        ended.stdout
    }

    pub(super) fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// Returns a client of the first gateway, as customers' programs use it.
    pub(super) fn client(&self) -> Client {
        let mut gateways = self.replicas.iter();
        let gateway = gateways.find(|replica| replica.program == "api-gateway");
        let url = format!("http://{}", gateway.unwrap().api);
        Client::new(url.parse().unwrap(), self.key.as_str().into()).unwrap()
    }

    /// Returns a client of each gateway.
    pub(super) fn apis(&self) -> Vec<Api> {
        let gateways = self
            .replicas
            .iter()
            .filter(|replica| replica.program == "api-gateway");
        gateways
            .map(|replica| Api::new(&format!("http://{}", replica.api), &self.key))
            .collect()
    }

    pub(super) fn postgres(&self) -> MutexGuard<'_, Postgres> {
        self.postgres.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn rabbitmq(&self) -> MutexGuard<'_, RabbitMq> {
        self.rabbitmq.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a replica that is not running.
    pub(super) fn start_replica(&self, replica: &Replica) {
        let mut process = replica.process();
        if process.as_mut().is_some_and(|one| one.ended().is_none()) {
            return;
        }
        // Drop the old process's watcher before another process can reuse its process id.
        *process = None;
        let mut command = programs::command(replica.program);
        command.arg("--config").arg(&self.config);
        command.env("EARSHOT_GATEWAY__LISTEN", &replica.api);
        command.env("EARSHOT_OPS__LISTEN", &replica.ops);
        replica.clock.apply(&mut command);
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

    /// Sends SIGTERM to each; all must drain and exit 0.
    pub(super) fn terminate(&self) {
        for replica in &self.replicas {
            replica.terminate();
        }
    }

    pub(super) fn print_logs(&self) {
        for replica in &self.replicas {
            if let Some(process) = &*replica.process() {
                process.print_log();
            }
        }
    }
}

impl Replica {
    /// Kills the replica with SIGKILL.
    pub(super) fn kill(&self) {
        if let Some(process) = &mut *self.process() {
            process.kill();
        }
    }

    /// Sends SIGTERM; the replica must drain and exit 0.
    pub(super) fn terminate(&self) {
        let mut process = self.process();
        let process = process.as_mut().expect("it runs");
        let status = block_in_place(|| process.terminate(STOP));
        assert!(status.success(), "{}: {status}", self.program);
    }

    pub(super) async fn ready(&self) {
        let (client, url) = (api::client(), format!("http://{}/readyz", self.ops));
        let what = format!("{} is ready", self.program);
        eventually(&what, PATIENCE, async || {
            let answer = api::try_send(&client, Method::GET, &url, &[], None).await;
            answer.ok().filter(|answer| answer.status == 200)
        })
        .await;
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
